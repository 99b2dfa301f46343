# frozen_string_literal: true

require "helper_server"
require "json"
require "open3"

# The commands that speak to a running server, and the socket they speak over.
module Control
  include Helper

  # The app of `Server`, which loads slowly as long as there is a file `slow`.
  SLOW = Server::APP.sub("use", "sleep 0.01 while File.exist?('slow')\nuse")

  def setup
    @runtime = Dir.mktmpdir("oribi-runtime")
    @servers = []
  end

  def teardown
    # Servers take their neighbours for leftovers: all of them end before the first is looked after.
    @servers.each { |server| server.signal("KILL") unless server.ended? }
    @servers.each(&:wait)
    @servers.each(&:clean_up)
    FileUtils.remove_entry(@runtime)
  end

  # Where sockets are that nobody has said a word about.
  def directory = File.join(@runtime, "sockets")

  def start(*arguments, **options) = launch(*arguments, **options).ready

  def launch(*arguments, how: self.how, **options)
    env = { "ORIBI_RUNTIME_DIR" => directory }
    @servers << Server.new(how, *arguments, env: env, **options)
    @servers.last
  end

  # What a command prints, and its exit status.
  def oribi(*words, chdir: "/")
    output, status = Open3.capture2e({ "ORIBI_RUNTIME_DIR" => directory }, Oribi::Binary.path,
                                     *words.map(&:to_s), chdir: chdir)
    [output, status.exitstatus]
  end

  def done(*words, **options)
    output, status = oribi(*words, **options)
    assert_equal 0, status, output
    output
  end

  def refused(*words, **options)
    output, status = oribi(*words, **options)
    assert_equal 1, status, output
    output
  end

  def status(*words) = JSON.parse(done("status", "--json", *words))

  # The only mount.
  def app(status) = status["mounts"].first

  # The workers of the generation that serves.
  def workers(status) = app(status)["generations"].find { |g| g["role"] == "serving" }["workers"]

  def socket(server) = File.join(directory, "#{server.pid}.sock")

  def mode(path) = File.stat(path).mode & 0o777

  def test_status_of_a_server_that_rests
    server = start("--workers", "2")
    server.get
    found = status
    supervisor, mold, front = %w[supervisor mold front].map { |role| server.one(role).pid }
    assert_equal [2, server.pid, supervisor, "running"],
                 found.values_at("form", "pid", "supervisor", "state")
    assert_equal ["/", "", false, "serving", "cruby", "prefork", 2, 1, 1],
                 app(found).values_at("name", "path", "declared", "state", "engine", "isolation",
                                      "workers", "threads", "serving")
    assert_equal File.realpath(server.directory), found["directory"]
    assert_match(%r{\Ahttp://127\.0\.0\.1:\d+\z}, found["addresses"].first)
    assert_equal({ "waiting" => 0, "oldest_ms" => nil }, app(found)["queue"])
    assert_equal front, found["front"]["pid"]
    assert_equal [mold, "ready", RUBY_VERSION],
                 app(found)["generations"].first["mold"].values_at("pid", "state", "ruby")
    pids = workers(found).to_h { |worker| worker.values_at("nr", "pid") }
    assert_equal(server.workers(2).to_h { |worker| [worker.nr, worker.pid] }, pids)
    assert_workers_rest(workers(found))
  end

  def assert_workers_rest(workers)
    assert_equal(1, workers.sum { |worker| worker["served"] })
    workers.each do |worker|
      assert_equal ["idle", []], worker.values_at("state", "requests")
      assert_operator worker["rss"], :>, worker["pss"]
      assert_operator worker["pss"], :>, 1 << 20
    end
  end

  def test_status_names_what_runs_and_what_waits
    server = start("--workers", "1")
    server.hold
    waiting = Array.new(2) { Thread.new { server.response("/waits") } }
    found = Helper.wait_until("two wait") do
      now = status
      queue = app(now)["queue"]
      now if queue["waiting"] == 2 && queue["oldest_ms"] >= 20
    end
    worker = workers(found).first
    assert_equal "busy", worker["state"]
    request = worker["requests"].first
    assert_equal [1, "GET", "/hold"], request.values_at("thread", "method", "path")
    # It was taken before the others came.
    assert_operator request["age_ms"], :>=, app(found)["queue"]["oldest_ms"]
    text = done("status")
    assert_match(/^queue 2 waiting, the oldest for \d/, text)
    assert_match(%r{^ +1 +#{worker['pid']}  busy .* GET /hold$}, text)
    server.release
    assert_equal(%w[200 200], waiting.map { |thread| thread.value.code })
    assert_equal 3, workers(status).first["served"]
  end

  def test_a_stop_waits_until_the_server_is_gone
    server = start("--workers", "1")
    server.hold
    stop = Thread.new { oribi("stop") }
    Helper.wait_until("the end begins") { server.log.include?("stop: finishing what runs") }
    assert_equal "stopping", status["state"]
    assert_match(/the server is stopping/, refused("restart"))
    assert stop.alive?
    server.release
    output, code = stop.value
    assert_equal 0, code, output
    assert_match(/^the server \(pid #{server.pid}\) has ended$/, output)
    # Nothing is waited for here.
    assert server.ended?
    assert_equal 0, server.wait
    refute_path_exists socket(server)
  end

  def test_a_stop_that_does_not_wait
    server = start("--workers", "1")
    server.hold
    done("stop", "--now")
    assert_equal 131, server.wait
    assert_match(/stop --now: ending at once/, server.log)
  end

  def test_a_restart_says_how_it_went
    server = start("--workers", "1")
    output = done("restart")
    assert_match(/^generation 2 boots$/, output)
    assert_match(/^generation 2 serves \(booted in \d+\.\d s\)$/, output)
    worker = server.workers(1, generation: 2).first
    assert_equal worker.pid, server.get.to_i

    File.write(File.join(server.directory, "broken"), "")
    output = refused("restart")
    assert_match(/no database here.*generation 2 serves on$/, output)
    assert_equal worker.pid, server.get.to_i
    assert_equal 2, app(status)["serving"]
  end

  def test_a_rollback_and_when_there_is_nothing_to_go_back_to
    server = start("--workers", "1", "--rollback-window", "60")
    assert_match(/no generation is held.*rollback_window/, refused("rollback"))
    first = server.get.to_i
    done("restart")
    assert_equal(%w[held serving], app(status)["generations"].map { |g| g["role"] })
    refute_equal first, server.get.to_i
    assert_equal "generation 1 serves again\n", done("rollback")
    assert_equal first, server.get.to_i
    assert_match(/no generation is held/, refused("rollback"))
  end

  def test_more_workers_and_fewer
    server = start("--workers", "1")
    assert_equal "3 workers, before 1\n", done("scale", 3)
    assert_equal 3, server.workers(3).size
    assert_equal "2 workers, before 3\n", done("scale", 2)
    server.workers(2)
    [0, 10_000].each { |count| assert_match(/1 to 512 are/, refused("scale", count)) }
    assert_equal 2, app(status)["workers"]
  end

  def test_logs_are_opened_again
    server = start("--workers", "1", "--access-log=access.log")
    log = File.join(server.directory, "access.log")
    server.get("/before")
    Helper.wait_until("it is logged") { File.read(log).include?("/before") }
    File.rename(log, "#{log}.1")
    done("reopen-logs")
    # The front has been told, and gets to it.
    Helper.wait_until("a request is in the new file") do
      server.get("/after")
      File.exist?(log) && File.read(log).include?("/after")
    end
  end

  def test_the_socket_is_its_owners_alone
    server = start("--workers", "1")
    assert_equal [0o700, 0o600], [mode(directory), mode(socket(server))]
    assert_equal "socket", File.ftype(socket(server))
    server.signal("TERM")
    server.wait
    assert_empty Dir.children(directory)
  end

  def test_a_path_of_its_own
    server = start("--workers", "1", "--control=own.sock")
    path = File.join(server.directory, "own.sock")
    assert_equal 0o600, mode(path)
    assert_equal server.pid, status("--control", path)["pid"]
    assert_match(/^oribi .* pid #{server.pid} /, done("--control", path, "status"))
    assert_match(/no server of yours is running/, refused("status"))
    server.signal("KILL")
    server.wait
    Helper.wait_until("nobody listens any more") do
      oribi("status", "--control", path).first.include?("no server listens on #{path}")
    end
  end
end

# Started as `oribi config.ru`.
class ControlOfOribiTest < Minitest::Test
  include Control

  def how = :oribi

  def test_every_client_of_a_restart_is_told_of_the_last_one
    server = start("--workers", "1", app: SLOW)
    slow = File.join(server.directory, "slow")
    File.write(slow, "")
    first = Thread.new { oribi("restart") }
    Helper.wait_until("generation 2 boots") { server.log.include?("generation 2 boots") }
    second = Thread.new { oribi("restart") }
    Helper.wait_until("generation 3 boots") { server.log.include?("generation 3 boots") }
    assert_match(/no answer in time/, refused("restart", "--timeout", 1))
    File.delete(slow)
    [first, second].each do |client|
      output, code = client.value
      assert_equal 0, code, output
      assert_match(/^generation 4 serves/, output)
    end
  end

  def test_a_client_is_told_that_the_server_ended
    server = start("--workers", "1", app: SLOW)
    File.write(File.join(server.directory, "slow"), "")
    client = Thread.new { oribi("restart") }
    Helper.wait_until("generation 2 boots") { server.log.include?("generation 2 boots") }
    server.signal("KILL")
    output, code = client.value
    assert_equal 1, code, output
    assert_match(/the server ended before it had answered/, output)
  end

  def test_one_of_several_servers
    servers = [start("--workers", "1"), start("--workers", "1", how: :rackup)]
    several = refused("status")
    assert_match(/several servers are running: name one with --pid/, several)
    servers.each do |server|
      assert_match(/--pid #{server.pid} +#{File.realpath(server.directory)}  http:/, several)
      assert_equal server.pid, status("--pid", server.pid)["pid"]
      assert_match(/ pid #{server.pid} /, done("status", chdir: server.directory))
    end
    # Under rackup the supervisor is another process.
    assert_equal servers[1].pid, status("--pid", servers[1].one("supervisor").pid)["pid"]
    assert_match(/process #{Process.pid} has no control socket in/,
                 refused("status", "--pid", Process.pid))
    done("stop", "--pid", servers[0].pid)
    assert_equal servers[1].pid, status["pid"]
  end

  def test_what_killed_servers_leave_is_removed_by_the_next
    server = start("--workers", "1")
    server.signal("KILL")
    server.wait
    assert_path_exists socket(server)
    assert_match(/no server of yours is running .*--control/, refused("status"))
    refute_path_exists socket(server)

    UNIXServer.new(File.join(directory, "4194305.sock")).close
    other = start("--workers", "1")
    assert_equal [File.basename(socket(other))], Dir.children(directory)
  end

  def test_a_directory_that_others_may_enter_is_not_used
    Dir.mkdir(directory, 0o755)
    server = start("--workers", "1")
    assert_match(/status and its like will not work here: .* chmod 700 #{directory}$/, server.log)
    assert_empty Dir.children(directory)
    assert_match(/not looked into: .*mode 0755/, refused("status"))
  end

  def test_a_path_that_was_asked_for_must_be_had
    start("--workers", "1", "--control=#{@runtime}/a.sock")
    { "a.sock" => /another server listens there/, "no/b.sock" => /its directory does not exist/,
      "x" * 108 => /longer than sockets may have/ }.each do |name, why|
      server = launch("--workers", "1", "--control=#{@runtime}/#{name}")
      assert_equal 1, server.wait
      assert_match(/^oribi: control socket #{@runtime}.*#{why}/, server.log)
    end
  end

  def test_clients_of_all_sorts_disturb_nobody
    server = start("--workers", "1", app: SLOW)
    connect = -> { UNIXSocket.new(socket(server)) }
    # More than it takes in, and all silent; and one in the middle of its line.
    silent = Array.new(20) { connect.call }
    half = connect.call.tap { |client| client.write('{"command":"sta') }
    assert_equal "idle", workers(status).first["state"]

    { "\0\xFF\r\n" => /not a request/, "GET / HTTP/1.1\r\n" => /not a request/,
      "#{'[' * 9000}\n" => /not a request/, "{\"command\":\"halt\"}\n" => /unknown variant `halt`/,
      "{\"command\":\"scale\",\"workers\":\"2\"}\n" => /invalid type/ }.each do |line, why|
      client = connect.call
      client.write(line)
      assert_match(why, JSON.parse(client.gets)["failed"])
      client.close
    end

    # Who goes while a restart lasts is not told, and nobody minds.
    File.write(File.join(server.directory, "slow"), "")
    connect.call.tap { |client| client.puts('{"command":"restart"}') && client.gets }.close
    File.delete(File.join(server.directory, "slow"))
    server.workers(1, generation: 2)
    assert_match(/\A\d+ /, server.get)
    # The first of the silent had to make room.
    assert_nil silent.first.read_nonblock(1, exception: false)
    assert_equal 2, app(status)["serving"]
    refute_match(/restart ignored|panicked/, server.log)
  ensure
    [*silent, half].compact.each(&:close)
  end

  def test_one_that_does_not_read_its_answer_is_not_waited_for
    server = start("--workers", "1")
    clients = Array.new(10) do
      UNIXSocket.new(socket(server)).tap { |client| client.puts('{"command":"status"}') }
    end
    assert_match(/\A\d+ /, server.get)
    assert_equal "running", status["state"]
  ensure
    clients&.each(&:close)
  end

  if Process.uid.zero?
    NOBODY = 65_534

    def as_nobody
      read, write = IO.pipe
      pid = fork do
        Process::GID.change_privilege(NOBODY)
        Process::UID.change_privilege(NOBODY)
        write.write(yield.to_s)
        exit!(0)
      end
      write.close
      read.read.tap { Process.wait(pid) }
    end

    def ask_as_nobody(path)
      as_nobody do
        client = UNIXSocket.new(path)
        begin
          client.puts('{"command":"stop"}')
        rescue Errno::EPIPE
          # It has been refused already.
        end
        client.gets
      rescue SystemCallError => error
        error.class
      end
    end

    def test_others_are_refused_whatever_the_mode_says
      server = start("--workers", "1", "--control=#{@runtime}/a.sock")
      File.chmod(0o755, @runtime)
      path = File.join(@runtime, "a.sock")
      assert_equal "Errno::EACCES", ask_as_nobody(path)
      File.chmod(0o666, path)
      assert_match(/this server is another user's/, ask_as_nobody(path))
      assert_match(/\A\d+ /, server.get)
      assert_equal "running", status("--control", path)["state"]
    end
  end
end

# Started as `rackup -s Oribi`.
class ControlOfRackupTest < Minitest::Test
  include Control

  def how = :rackup
end
