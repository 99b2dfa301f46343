# frozen_string_literal: true

require "etc"
require "json"
require "helper_case"
require "helper_on_demand"

# `oribi cgi serve`: the server behind an index.cgi, and clients that start it as the shim does.
class CgiServeTest < Helper::Case
  # Answers in the order in which requests were begun.
  APP = <<~'RUBY'
    release = File.read(File.join(__dir__, "release"))
    raise "no such release" if release.empty?

    count = 0
    use Rack::Lint
    run(lambda do |env|
      number = count += 1
      File.read("fifo") if env["PATH_INFO"] == "/hold"
      said = { "/where" => "#{Dir.pwd} #{ENV['RACK_ENV']} #{Process.uid}", "/release" => release }
      body = said.fetch(env["PATH_INFO"], "#{Process.pid} #{number}")
      [200, { "content-type" => "text/plain" }, [body]]
    end)
  RUBY

  def place(config = nil, **options)
    files = { "release" => "1", "oribi.rb" => config }
    @place ||= Helper::Cgi.new(app: APP, files: files, **options)
  end

  def teardown
    super
    @place&.clean_up
  end

  # Lets in everyone who waits at the app's fifo until the block is satisfied.
  def release_until
    wait_until("nobody waits any more") do
      begin
        File.open(place.path("fifo"), File::WRONLY | File::NONBLOCK).close
      rescue Errno::ENXIO
        nil
      end
      yield
    end
  end

  def modes(*names) = names.map { |name| File.lstat(File.join(place.run, name)).mode & 0o777 }

  def test_of_many_first_hits_one_starts_the_server
    place
    answers = Array.new(20) { Thread.new { place.get("/where") } }.map(&:value)
    assert_equal ["#{File.realpath(place.directory)} production #{Process.uid}"],
                 answers.map(&:body).uniq
    assert_equal 1, place.started
    assert_equal "#{place.pids.first}\n", File.read(File.join(place.run, "server.lock"))
    assert_equal [0o700, 0o600, 0o600, 0o600], modes(".", "socket", "lock", "server.lock")
    assert_equal ["alive (#{place.pids.first})", 0], place.cgi("status")
  end

  def test_what_an_administrator_can_say
    assert_equal ["dead", 1], place.cgi("status")
    assert_equal ["no server runs; the next request starts one", 0], place.cgi("stop")
    place.get
    place.write("release", "2")
    said, status = place.cgi("restart")
    assert_match(/generation 2 serves/, said)
    assert_equal 0, status
    assert_equal "2", place.get("/release").body
    pid = place.pids.first
    assert_match(/is served by process #{pid} already/, place.cgi("serve").first)
    said, status = place.cgi("stop")
    assert_match(/the server \(pid #{pid}\) has ended/, said)
    assert_equal 0, status
    assert_equal ["dead (#{pid})", 1], place.cgi("status")
    refute_path_exists File.join(place.run, "socket")
    assert_empty place.failed
    # And again.
    assert_equal 200, place.get.status
    assert_equal 2, place.started
  end

  # Whoever has come while the app loads is answered first.
  def test_a_server_that_starts_is_not_stopped_under_its_clients
    place("after_mold_fork { File.read('fifo') }")
    hit = Thread.new { place.get.status }
    wait_until("it starts") { place.cgi("status").last.zero? && place.listens? }
    stop = Thread.new { place.cgi("stop").last }
    sleep 0.3
    release_until { !hit.alive? }
    assert_equal [200, 0], [hit.value, stop.value]
    assert_empty place.failed
  end

  def test_requests_run_beside_each_other
    place.get
    held = Array.new(4) { Thread.new { place.get("/hold").body.to_i } }
    wait_until("four run") { waiting == [0, 4] }
    release_until { held.none?(&:alive?) }
    assert_equal 4, held.map(&:value).uniq.size
  end

  # All of them in one process, each in its turn.
  def test_single_affinity
    place("affinity :single\nworkers 4\nthreads 2")
    first = place.client.write(request("/hold"))
    wait_until("the first runs") { waiting == [0, 1] }
    others = Array.new(6) do |index|
      client = place.client.write(request("/"))
      wait_until("#{index + 1} wait") { waiting == [index + 1, 1] }
      client
    end
    release_until { waiting == [0, 0] }
    answers = [first, *others].map { |client| client.reply.answer.body.split.map(&:to_i) }
    assert_equal 1, answers.map(&:first).uniq.size
    assert_equal (1..7).to_a, answers.map(&:last)
  ensure
    [first, *others].each { |client| client&.close }
  end

  def request(target)
    Helper::FastCgi.request(Helper::FastCgi.params(target), keep: false)
  end

  # How many requests wait, and how many workers are at work.
  def waiting
    environment, *words = place.oribi("status", "--pid", place.pids.first.to_s, "--json")
    status = JSON.parse(IO.popen([environment, *words], &:read))
    app = status["mounts"].first
    workers = app["generations"].flat_map { |generation| generation["workers"] }
    [app["queue"]["waiting"], workers.count { |worker| worker["requests"].any? }]
  end

  def test_a_change_loses_no_request
    place("watch \"release\"").get
    answers = Queue.new
    over = false
    clients = Array.new(2) { Thread.new { answers << place.get("/release") until over } }
    changes = { "release" => "2", "config.ru" => "#{APP}# again" }
    changes.each_with_index do |(name, text), index|
      place.write(name, text)
      wait_until("a restart: #{place.log}") { place.log.include?("generation #{index + 2} serves") }
    end
    # Settings are another server's.
    place.write("oribi.rb", "workers 3")
    wait_until("it serves again: #{place.log}") { place.log.include?("3 workers of 1 thread") }
    over = true
    clients.each(&:join)
    answers = Array.new(answers.size) { answers.pop }
    assert_equal [200], answers.map(&:status).uniq
    assert_equal %w[1 2], answers.map(&:body).uniq.sort
    assert_equal 2, place.started
  end

  def test_settings_that_are_wrong_change_nothing
    place.get
    place.write("oribi.rb", "workers 'many'")
    wait_until("it is refused: #{place.log}") { place.log.include?("the settings stay") }
    assert_match(/oribi.rb:1: workers: "many" is not a number/, place.log)
    assert_equal 200, place.get.status
    assert_equal 1, place.started
  end

  def test_a_server_that_was_killed
    place.get
    Process.kill("KILL", place.pids.first)
    # Its front goes within a second.
    wait_until("nobody listens") { !place.listens? }
    assert_path_exists File.join(place.run, "socket")
    assert_equal 200, place.get.status
    assert_equal 2, place.started
  end

  def test_what_does_not_load_leaves_the_old_code_serving
    place.get
    place.write("config.ru", "raise 'not today'")
    wait_until("it fails: #{place.log}") { place.log.match?(/did not boot: .*not today/) }
    assert_equal "1", place.get("/release").body
    assert_equal 1, place.started
  end

  def test_no_hit_is_lost_while_it_ends_again_and_again
    place("idle_timeout 0.1\nworkers 1")
    clients = Array.new(3) do |index|
      chance = Random.new(index)
      Thread.new { Array.new(8) { sleep(chance.rand * 0.3) && place.get } }
    end
    assert_equal [200], clients.flat_map(&:value).map(&:status).uniq
    assert_operator place.started, :>, 2
    assert_empty place.failed
  end

  # The last line of its log is what the web server's log gets.
  def test_an_app_that_does_not_load
    place.write("release", "")
    error = assert_raises(Minitest::Assertion, EOFError, Errno::ECONNRESET) { place.get }
    wait_until("it ends") { place.ended?(place.pids.first) }
    assert_match(/no such release/, place.log.lines.last, error.message)
    refute_empty place.failed
    place.write("release", "1")
    assert_equal 200, place.get.status
  end

  def test_a_directory_without_an_app
    File.unlink(place.path("config.ru"))
    said, status = place.cgi("serve")
    assert_equal 1, status
    assert_match(/has neither server.cgi nor config.ru/, said)
    assert_match(/name the directory of the app/, oribi_serve("/nowhere"))
  end

  def oribi_serve(directory)
    environment, *words = place.oribi("cgi", "serve", directory)
    IO.popen([environment, *words, { err: %i[child out] }], &:read)
  end

  def test_a_run_directory_that_somebody_has_prepared
    Dir.rmdir(place.run)
    File.symlink(place.directory, place.run)
    assert_match(/oribi: #{place.run} is not a directory: remove it/, place.cgi("serve").first)
    File.unlink(place.run)
    Dir.mkdir(place.run)
    File.chmod(0o755, place.run)
    assert_match(/is open to others \(mode 0755\): chmod 700/, place.cgi("serve").first)
    return unless Process.uid.zero?

    File.chmod(0o700, place.run)
    File.chown(65_534, nil, place.run)
    assert_match(/belongs to another user \(uid 65534\)/, place.cgi("serve").first)
    assert_equal ["dead", 1], place.cgi("status")
  end

  SCRIPT = <<~'RUBY'
    #!/usr/bin/env ruby
    require "acgi"
    $count = 0
    ACGI.each_cgi do |cgi|
      warn "release 1 was asked"
      exit(7) if cgi.path_info == "/exit"
      cgi.out("type" => "text/plain") { "#{$count += 1} #{Dir.pwd} #{cgi.params['a']} release 1" }
    end
  RUBY

  def test_a_script_stays_in_memory
    place("affinity :single")
    place.write("server.cgi", SCRIPT)
    here = File.realpath(place.directory)
    assert_equal "1 #{here} [\"b c\"] release 1", place.get("/?a=b+c").body
    assert_equal "2 #{here} [] release 1", place.get.body
    client = place.client
    reply = client.ask("/exit", keep: false)
    assert_equal [7, "release 1 was asked\n"], [reply.status, reply.errors[/.*asked\n/]]
    place.write("server.cgi", SCRIPT.gsub("release 1", "release 2"))
    wait_until("the new script serves") { place.get.body.end_with?("release 2") }
    assert_equal 1, place.started
  ensure
    client&.close
  end

  def test_a_script_has_one_thread
    place("threads 2")
    place.write("server.cgi", "")
    assert_match(/threads is 2, but ENV and the streams .* one for the whole process/,
                 place.cgi("serve").first)
  end

  if Helper.can_be_another_user?
    def test_it_needs_no_privileges
      user = Etc.getpwnam("www-data")
      place(before: ["setpriv", "--reuid=www-data", "--regid=www-data", "--clear-groups"],
            uid: user.uid)
      FileUtils.chmod(0o755, place.directory)
      FileUtils.touch(File.join(place.run, "lock"))
      FileUtils.chown("www-data", nil, File.join(place.run, "lock"))
      assert_match(/ #{user.uid}\z/, place.get("/where").body)
      stat = File.stat(File.join(place.run, "socket"))
      assert_equal [user.uid, 0o600], [stat.uid, stat.mode & 0o777]
    end
  end
end
