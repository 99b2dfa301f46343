# frozen_string_literal: true

require "helper_case"

# Apps in mruby, where the server was built with it.
module Mruby
  BINARY = Oribi::Binary.path
  BUILT = IO.popen([BINARY, "--engine", "mruby", "--workers", "0", "/none.ru"], err: %i[child out],
                   &:read)
            .then do |said|
    !said.include?("built without")
  end
end

# The contract: one server for all of it.
class MrubyTest < Helper::Case
  serve "mruby.ru", "--engine", "mruby", "--workers", "2", "--limit-memory", "32m"

  def self.runnable_methods = Mruby::BUILT ? super : []

  ENV_OF_CRUBY = <<~'RUBY'
    run(lambda do |env|
      names = env.keys.select { |name| name == name.upcase }
      [200, { "content-type" => "text/plain" }, [names.map { |name| "#{name}=#{env[name]}" }.join("\n")]]
    end)
  RUBY
  # What two connections to two servers cannot share.
  OWN = %w[REMOTE_PORT SERVER_PORT].freeze

  def test_the_env_is_what_a_worker_of_cruby_says
    fields = ["X-One: 1", "Cookie: c", "Accept: */*", "Content-Type: text/x"]
    said = connect.ask("POST /env?a=1&b", *fields, body: "abc").body.lines(chomp: true)
    self.class.stop
    @server = Helper::Server.new(:oribi, "--workers", "1", app: ENV_OF_CRUBY).ready
    wanted = connect.ask("POST /env?a=1&b", *fields, body: "abc").body.lines(chomp: true)
    sort = ->(lines) { lines.grep(/\A[A-Z_]+=/).reject { |line| OWN.include?(line[/\A\w+/]) }.sort }
    assert_equal sort.call(wanted), sort.call(said)
    assert_equal ["[1, 3] false true false \"http\"", "Float"], said.last(2)
  end

  def test_bodies_reach_the_app
    [["", 0], ["one\ntwo", 2], ["#{'x' * 99}\n" * 30_000, 30_000]].each do |body, lines|
      sum = body.each_byte.sum % 65_521
      first = body.lines.first.to_s
      rest = [first.bytesize - 3, 0].max
      answer = connect.ask("POST /body", body: body).body
      assert_equal "#{body.bytesize} #{lines} #{body[0, 3]} #{rest} #{sum}", answer
    end
    chunked = connect
    chunked.write("POST /size HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" \
                  "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
    assert_equal "7", chunked.answer.body
  end

  def test_replies_are_what_the_app_returned
    answer = get("/headers")
    assert_equal [201, "ok"], [answer.status, answer.body]
    raw = connect
    raw.write(Helper::Client.request("GET /headers"))
    head = raw.answer.fields.map { |name, value| "#{name.downcase}: #{value}" }
    assert_equal ["x-list: a", "x-list: b", "set-cookie: c=1", "set-cookie: d=2"],
                 head.grep(/\A(x-list|set-cookie)/)
    assert_empty head.grep(/\Arack/)
    assert_equal 204, get("/none").status
    mapped = get("/mapped/on")
    assert_equal ["/mapped /on", "middleware"], [mapped.body, mapped["x-by"]]
  end

  def test_bodies_are_streamed_and_closed
    assert_equal "one\ntwo\n", get("/stream").body
    assert_equal 3_000_000, get("/large").body.bytesize
    wait_until("both are closed; log: #{server.log}") do
      server.log =~ /^closed 3$/ && server.log =~ /^closed 30$/
    end
    cut = connect
    cut.write(Helper::Client.request("GET /broken"))
    assert_includes cut.rest, "one\n"
    wait_until("it is logged and closed") do
      server.log.include?("the stream broke") && server.log =~ /^closed 2$/
    end
    head = connect
    head.write(Helper::Client.request("HEAD /stream"))
    assert_equal 200, head.answer(bodiless: true).status
  end

  def test_exceptions_are_answered_and_logged_with_their_lines
    %w[/boom /nothing /bad].each { |path| assert_equal 500, get(path).status }
    line = Helper::Case.source("mruby.ru").lines.index do |text|
      text.include?("raise ArgumentError")
    end + 1
    wait_until("they are logged: #{server.log}") do
      server.log.include?("GET /boom: config.ru:#{line}:in fail: boom\n" \
                          "and more (ArgumentError)\n\tfrom config.ru:") &&
        server.log.include?("GET /bad: the app's header name \"x bad\" is not one") &&
        server.log.include?("GET /nothing: the app returned nil, not [status, headers, body]")
    end
    get("/errors")
    get("/finished")
    wait_until("the app's own words") do
      server.log.include?("to the log\ntwice\n") && server.log =~ /^finished$/
    end
  end

  # By memory, and by depth: the app's error, and the workers serve on.
  def test_a_script_that_runs_away_is_stopped
    pids = server.workers(2).map(&:pid)
    3.times { assert_equal 500, get("/memory").status }
    assert_equal 500, get("/recurse").status
    wait_until("both are logged: #{server.log}") do
      server.log.include?("NoMemoryError") && server.log.include?("SystemStackError")
    end
    4.times { assert_equal "hello", get.body }
    assert_equal pids.sort, server.workers(2).map(&:pid).sort
  end

  def test_who_is_killed_is_missed_once
    held = ask_for("/forever")
    running = []
    busy = wait_until("a worker runs") do
      running << server.find("worker").find { |worker| worker.state == "R" }
      pids = running.last(5).map { |worker| worker&.pid }
      running.last if running.last && pids.tally.values == [5]
    end
    Process.kill("KILL", busy.pid)
    assert_equal 502, held.answer.status
    wait_until("another has come") { server.workers(2).none? { |worker| worker.pid == busy.pid } }
    assert_equal "hello", get.body
  end
end

# Levels, limits of time, deploys: each a server of its own.
class MrubyLevelsTest < Helper::Case
  def self.runnable_methods = Mruby::BUILT ? super : []

  def test_prefork_keeps_an_interpreter_for_exactly_so_many_requests
    start("mruby.ru", "--engine", "mruby", "--workers", "1", "--max-requests", "3")
    pid = server.workers(1).first.pid
    assert_equal %w[1 2 3 1 2 3 1], Array.new(7) { get("/count").body }
    assert_equal pid, server.workers(1).first.pid
  end

  def test_each_thread_has_an_interpreter
    start("mruby.ru", "--engine", "mruby", "--workers", "1", "--threads", "3", "--max-requests",
          "4")
    # Which of them takes a request is not said; how often each began anew is.
    counts = Array.new(24) { get("/count").body.to_i }
    assert_operator counts.max, :<=, 4
    assert_operator counts.count(1), :>=, 6
    ask_for("/forever")
    5.times { assert_equal "hello", get.body }
  end

  def test_fresh_requests_find_nothing_of_others
    start("mruby.ru", "--engine", "mruby", "--workers", "1", "--isolation", "fresh",
          "--limit-memory", "32m")
    pid = server.workers(1).first.pid
    clean = get("/see").body
    assert_match(/\A\[nil, false, false, false, false, true, \d+, nil, false\]\z/, clean)
    6.times do
      assert_equal "left", get("/leave").body
      assert_equal clean, get("/see").body
      assert_equal "1", get("/count").body
    end
    lucks = Array.new(8) { get("/random").body }
    assert_equal lucks.uniq, lucks
    assert_equal 500, get("/memory").status
    assert_equal clean, get("/see").body
    assert_equal "[1, 3] false false true \"http\"", get("/env").body.lines(chomp: true)[-2]
    assert_equal pid, server.workers(1).first.pid
  end

  # What is looked at above is there to be seen.
  def test_prefork_shows_what_a_request_has_left
    start("mruby.ru", "--engine", "mruby", "--workers", "1")
    clean = get("/see").body
    get("/leave")
    left = get("/see").body
    pairs = clean[1..-2].split(", ").zip(left[1..-2].split(", "))
    assert_empty(pairs.select { |before, after| before == after })
    assert_equal %w[1 2], Array.new(2) { get("/count").body }
  end

  def test_a_script_that_runs_for_too_long_is_stopped
    start("mruby.ru", "--engine", "mruby", "--workers", "1", "--request-timeout", "0.3")
    assert_equal 504, get("/forever").status
    assert_equal "hello", get.body
  end

  def test_new_code_comes_with_a_restart_and_bad_code_does_not
    start("mruby.ru", "--engine", "mruby", "--workers", "1",
          files: { "release.rb" => "RELEASE = 'one'" })
    release = ->(text) { File.write(File.join(server.directory, "release.rb"), text) }
    assert_equal "one", get("/release").body
    release.call("RELEASE = 'two'")
    server.signal("USR2")
    wait_until("the new code; log: #{server.log}") { get("/release").body == "two" }
    release.call("RELEASE = (")
    server.signal("USR2")
    wait_until("it is refused: #{server.log}") { server.log =~ /release\.rb:1: syntax error/ }
    assert_equal "two", get("/release").body
    server.signal("TERM")
    assert_equal 0, server.wait
    assert_empty server.left_over
  end

  # With mruby alone nothing of Ruby's is started, nor looked for.
  def test_it_needs_no_ruby
    Dir.mktmpdir("oribi-test") do |directory|
      File.write(File.join(directory, "hello.ru"), 'run ->(env) { [200, {}, ["hello"]] }')
      socket = File.join(directory, "socket")
      File.write(File.join(directory, "oribi.toml"), <<~TOML)
        bind = ["unix://#{socket}"]
        engine = "mruby"
        workers = 1
        [[mount]]
        path = "/"
        rackup = "hello.ru"
      TOML
      log = File.join(directory, "log")
      alone = { "PATH" => "/nowhere", "ORIBI_RUNTIME_DIR" => File.join(directory, "control") }
      pid = Process.spawn(alone, Mruby::BINARY, "-C", "oribi.toml",
                          chdir: directory, unsetenv_others: true, %i[out err] => log)
      wait_until("it serves: #{File.read(log)}") { File.read(log).include?("worker of") }
      assert_equal "hello", keep(Helper::Client.unix(socket)).get.body
      assert_equal %w[front mold worker], Helper.family(pid).drop(1).map(&:role)
      Process.kill("TERM", pid)
      _, status = Process.wait2(pid)
      pid = nil
      assert_equal 0, status.exitstatus
    ensure
      Process.kill("KILL", pid) && Process.wait(pid) if pid
    end
  end
end
