# frozen_string_literal: true

require "helper_case"
require "json"
require "time"

# The access log, read back by what reads such logs.
class AccessLogTest < Helper::Case
  # Apache's, as every log analyser has it.
  COMBINED = /\A(?<host>\S+)\ \S+\ \S+\ \[(?<time>[^\]]+)\]\ "(?<request>(?:[^"\\]|\\.)*)"
              \ (?<status>\d{3})\ (?<bytes>\d+|-)
              (?:\ "(?<referer>(?:[^"\\]|\\.)*)"\ "(?<agent>(?:[^"\\]|\\.)*)")?\n\z/x
  HOSTILE = ["User-Agent: a\"b\\c\td \xC3\xA4\xFF[31m".b, "Referer: x\" 200 1 \"-\" \"y"].freeze

  def serve(format, *arguments)
    start("log.ru", "-w", "1", "--access-log", "access", "--access-log-format", format, *arguments)
  end

  def finish
    @server.clean_up
    @server = nil
  end

  def written(count = 1, name: "access")
    wait_for_lines(name, count)
    File.binread(File.join(server.directory, name)).lines
  end

  # A line's fields, however it is written.
  def read(line, format)
    case format
    when "json" then JSON.parse(line)
    when "ltsv" then line.chomp.split("\t").to_h { |field| field.split(":", 2) }
    else COMBINED.match(line)&.named_captures or flunk("not Apache's: #{line}")
    end
  end

  def test_common_and_combined_are_apache_s
    { "common" => [nil, nil], "combined" => %w[http://from/here me/1.0] }.each do |format, said|
      serve(format)
      before = Time.now.floor
      get("/a?b=c", "Referer: http://from/here", "User-Agent: me/1.0", "X-Request-Id: id.1")
      connect.ask("HEAD /")
      first, second = written(2).map { |line| read(line, format) }
      assert_equal ["127.0.0.1", "GET /a?b=c HTTP/1.1", "200", "4", *said],
                   first.values_at("host", "request", "status", "bytes", "referer", "agent")
      time = Time.strptime(first["time"], "%d/%b/%Y:%H:%M:%S %z")
      assert_includes before..Time.now, time
      assert_equal ["HEAD / HTTP/1.1", "-"], second.values_at("request", "bytes")
      finish
    end
  end

  def test_json
    serve("json")
    answer = get("/a?b=c", "User-Agent: me", "X-Request-Id: id.1")
    assert_equal "id.1", answer.body
    found = read(written.first, "json")
    assert_operator Time.now - Time.iso8601(found.delete("time")), :<, Helper::PATIENCE
    times = %w[queue_time service_time duration].map { |name| found.delete(name) }
    assert_equal [Float] * 3, times.map(&:class)
    assert_operator times[2], :>=, times[1]
    assert_equal({ "client" => "127.0.0.1", "method" => "GET", "uri" => "/a?b=c",
                   "protocol" => "HTTP/1.1", "host" => "test", "mount" => "/",
                   "status" => 200, "bytes" => 4,
                   "complete" => true, "referer" => nil, "user_agent" => "me",
                   "request_id" => "id.1", "worker" => 1 }, found)
  end

  def test_ltsv
    serve("ltsv")
    get("/a?b=c", "X-Request-Id: id.1")
    found = read(written.first, "ltsv")
    assert_equal %w[127.0.0.1 GET /a?b=c HTTP/1.1 200 4 1 id.1 true - -],
                 found.values_at(*%w[host method uri protocol status size worker reqid complete
                                     referer ua])
    %w[queuetime apptime reqtime].each { |label| assert_match(/\A\d+\.\d{6}\z/, found[label]) }
    assert Time.strptime(found["time"], "[%d/%b/%Y:%H:%M:%S %z]")
  end

  # What a client sends stays within its field, and the log within printable ASCII.
  def test_hostile_fields
    { "combined" => %w[request referer agent], "ltsv" => %w[uri referer ua],
      "json" => %w[uri referer user_agent] }.each do |format, names|
      serve(format)
      connect.ask("GET /x%0a%22?q=%22%0d%0a", *HOSTILE)
      lines = written
      assert_equal 1, lines.size
      refute_match(/[^\t\n -~]/n, lines.first) unless format == "json"
      uri, referer, agent = read(lines.first, format).values_at(*names)
      assert_includes uri, "/x%0a%22?q=%22%0d%0a"
      if format == "json"
        assert_equal "x\" 200 1 \"-\" \"y", referer
        assert_equal "a\"b\\c\td ä\uFFFD[31m", agent
      else
        assert_equal 'x\x22 200 1 \x22-\x22 \x22y', referer
        assert_equal 'a\x22b\x5Cc\x09d \xC3\xA4\xFF[31m', agent
      end
      finish
    end
  end

  def test_request_ids
    serve("json")
    given = ["a b", "a\"b", "x" * 129, ""].map { |id| get("/", "X-Request-Id: #{id}").body }
    given << get("/").body << get("/", "X-Request-Id: one", "X-Request-Id: two").body
    assert_equal given.size, given.uniq.size
    given.each { |id| assert_match(/\A[\w.-]{16,128}\z/, id) }
    ids = written(given.size).map { |line| read(line, "json")["request_id"] }
    assert_equal given, ids
  end

  def test_what_waits_and_what_leaves
    serve("json")
    door = gate("gate")
    first = ask_for("/hold")
    door.arrived
    second = ask_for("/behind")
    leaver = ask_for("/left")
    began = Helper.now
    Helper.wait_until("a fifth of a second passes") { Helper.now - began > 0.2 }
    leaver.reset
    left = read(written.first, "json")
    assert_equal ["/left", 499, nil, false, nil],
                 left.values_at("uri", "status", "worker", "complete", "service_time")
    door.open
    [first, second].each(&:answer)
    held, behind = written(3).drop(1).map { |line| read(line, "json") }
    assert_equal %w[/hold /behind], [held["uri"], behind["uri"]]
    assert_operator held["queue_time"], :<, 0.2
    assert_operator held["service_time"], :>=, 0.2
    assert_operator behind["queue_time"], :>=, 0.15
    assert_operator behind["service_time"], :<, held["service_time"]
  end

  def test_refusals_have_no_worker
    serve("json", "--body-limit", "10")
    assert_equal 413, connect.ask("POST /", body: "x" * 11).status
    found = read(written.first, "json")
    assert_equal [413, nil, nil], found.values_at("status", "worker", "queue_time")
  end

  def test_the_client_that_a_proxy_names
    serve("json", "--trusted-proxies", "127.0.0.1")
    get("/", "X-Forwarded-For: 192.0.2.7")
    assert_equal "192.0.2.7", read(written.first, "json")["client"]
  end

  # None of it gets to where requests are made of it.
  def test_what_is_no_request
    { "json" => [nil, nil], "combined" => "-", "ltsv" => %w[- -] }.each do |format, expected|
      serve(format)
      assert_equal 400,
                   connect.write("GET / HTTP/1.1\r\nHost: a\r\nX: \x1B\x00\r\n\r\n").head.status
      found = read(written.first, format)
      assert_equal "400", found["status"].to_s
      names = format == "combined" ? "request" : %w[method uri]
      assert_equal expected, names.is_a?(Array) ? found.values_at(*names) : found[names]
      finish
    end
  end

  # As logrotate does it, while requests come: each is in one of the files, once.
  def test_rotation_loses_nothing
    serve("json")
    files = ["access"]
    asked = 0
    client = connect
    5.times do |number|
      files << "access.#{number}"
      100.times { client.get("/?#{asked += 1}") }
      File.rename(*[files[0], files.last].map { |name| File.join(server.directory, name) })
      100.times { client.get("/?#{asked += 1}") }
      server.signal("USR1")
      Helper.wait_until("a new file") { File.exist?(File.join(server.directory, "access")) }
    end
    client.get("/?#{asked += 1}")
    server.signal("TERM")
    server.wait
    found = files.flat_map { |name| written(0, name: name) }
    uris = found.map { |line| read(line, "json")["uri"] }
    uris.sort_by! { |uri| uri[2..].to_i }
    assert_equal((1..asked).map { |number| "/?#{number}" }, uris)
  end

  def test_standard_output
    start("log.ru", "-w", "1", "--access-log", "stdout", "--access-log-format", "common")
    get("/")
    wait_for_log(%r{^127\.0\.0\.1 - - \[[^\]]+\] "GET / HTTP/1\.1" 200 \d+$})
  end

  def test_a_log_that_cannot_be_opened_is_refused_at_the_start
    @server = Helper::Server.new(:oribi, "--access-log", "no/such/directory/log")
    assert_equal 1, @server.wait
    assert_match(%r{^oribi: access_log: cannot open /.*/no/such/directory/log: }, @server.log)
  end
end

# The error log: all that supervisor, front, molds and workers say.
class ErrorLogTest < Helper::Case
  def serve(format, how: :oribi, **options)
    arguments = ["--workers=1", "--error-log=errors", "--error-log-format=#{format}"]
    @server = Helper::Server.new(how, *arguments, app: Helper::Case.source("log.ru"), **options)
    wait_for_text(/workers? of/)
    @port = text[%r{listening on http://\S+:(\d+)}, 1].to_i
  end

  def finish
    @server.clean_up
    @server = nil
  end

  def text
    File.binread(File.join(@server.directory, "errors")).force_encoding("UTF-8")
  rescue Errno::ENOENT
    ""
  end

  def wait_for_text(pattern)
    Helper.wait_until("#{pattern.inspect} in the error log: #{text}; #{@server.log}") do
      text.scrub.match(pattern)
    end
  end

  attr_reader :port

  # The last line may still be on its way.
  def records = text.lines.grep(/\n\z/).map { |line| JSON.parse(line) }

  def wait_for_record(&block)
    Helper.wait_until("a record: #{text}") { records.find(&block) }
  end

  def test_json
    %i[oribi rackup].each do |how|
      serve("json", how: how, env: { "RACK_ENV" => "production" })
      worker = @server.workers(1).first
      assert_equal 500, get("/boom", "X-Request-Id: abc").status
      found = wait_for_record { |record| record["exception"] }
      expected = { "role" => "worker", "pid" => worker.pid, "worker" => 1, "generation" => 1,
                   "exception" => "ArgumentError", "method" => "GET", "path" => "/boom",
                   "request_id" => "abc",
                   "message" => "ArgumentError: boom\n\x1e{\"forged\":1}\nthird \uFFFDline" }
      assert_equal expected, found.slice(*expected.keys)
      assert_match(/config\.ru:\d+/, found["backtrace"].first)
      assert Time.iso8601(found["time"])
      assert_equal "supervisor", records.find { |r| r["message"].include?("listening") }["role"]
      assert_empty @server.log, "nothing anywhere else"
      finish
    end
  end

  def test_what_the_app_writes
    serve("json")
    get("/warn")
    wait_for_record { |record| record["message"] == "one line\n\tindented" }
    wait_for_record { |record| record["message"] == "another line" }
    get("/child")
    child = wait_for_record { |record| record["message"] == "from a child" }
    # Nobody can say who it was once it is dead.
    assert_includes ["app", nil], child["role"]
    get("/large")
    wait_for_record { |record| record["message"] == "x" * 300_000 }
  end

  def test_text_has_the_time_in_front
    serve("text")
    assert_match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d \[#{@server.pid}\] oribi: /,
                 text)
    get("/boom")
    wait_for_text(%r{ oribi: worker 1: GET /boom: .*boom \(ArgumentError\)$})
  end

  def test_rotation
    serve("json")
    old = File.join(@server.directory, "old")
    File.rename(File.join(@server.directory, "errors"), old)
    get("/warn")
    Helper.wait_until("the line is in the old file") { File.read(old).include?("another line") }
    @server.signal("USR1")
    wait_for_record { |record| record["message"].start_with?("USR1") }
    get("/child")
    wait_for_record { |record| record["message"] == "from a child" }
    refute_includes File.read(old), "from a child"
  end

  def test_the_last_words_are_written
    serve("text")
    @server.signal("TERM")
    assert_equal 0, @server.wait
    assert_match(/TERM: finishing/, text)
    assert_empty @server.log
  end

  def test_an_app_that_does_not_load
    arguments = ["--error-log=errors", "--error-log-format=json"]
    @server = Helper::Server.new(:oribi, *arguments, app: "raise 'no database'\n")
    assert_equal 1, @server.wait
    found = records.find { |record| record["message"] == "RuntimeError: no database" }
    assert_equal ["mold", 1], [found["role"], found["generation"]]
    assert_match(/config\.ru:1:/, found["backtrace"].first)
    assert(records.any? { |record| record["message"].include?("the app did not load") })
  end
end
