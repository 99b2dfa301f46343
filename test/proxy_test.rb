# frozen_string_literal: true

require "digest"
require "helper_backend"
require "helper_gateways"
require "helper_case"

# A mount that other servers run: one queue in front of them, whatever they do.
class ProxyTest < Helper::Case
  include Helper::Gateways

  BIG = Random.new(7).bytes(5 << 20)

  # Sockets of the backends, which come and go under the feet of one server.
  PLACE = Dir.mktmpdir("oribi-proxy")
  Minitest.after_run { FileUtils.remove_entry(PLACE) }

  CONFIG = <<~TOML.freeze
    queue_timeout = 0
    [[mount]]
    path = "/one"
    proxy = ["unix:#{PLACE}/one"]
    [[mount]]
    path = "/two"
    proxy = ["unix:#{PLACE}/two-a", "unix:#{PLACE}/two-b"]
    max = 1
    [[mount]]
    path = "/hasty"
    proxy = ["unix:#{PLACE}/hasty"]
    request_timeout = 0.3
    queue_timeout = 0.6
    [[mount]]
    path = "/again"
    proxy = ["unix:#{PLACE}/again-a", "unix:#{PLACE}/again-b"]
    retry_idempotent = true
    [[mount]]
    path = "/thin"
    proxy = ["unix:#{PLACE}/thin-a", "unix:#{PLACE}/thin-b"]
    [[mount]]
    path = "/puma"
    proxy = ["unix:#{PLACE}/puma"]
    max = 2
  TOML

  APP = <<~'RUBY'
    run(lambda do |env|
      sleep 0.005
      sum = env["rack.input"].read.to_s.sum
      size = env["QUERY_STRING"].to_i
      said = "#{env['REQUEST_METHOD']} #{env['PATH_INFO']} #{env['HTTP_HOST']} #{sum} #{Process.pid}\n"
      [200, { "Content-Type" => "text/plain" }, [said, "x" * size]]
    end)
  RUBY

  def self.shared
    files = { "oribi.toml" => CONFIG, "thin.ru" => APP }
    arguments = ["-C", "oribi.toml", "--front-threads=2", *DOORS]
    @shared ||= Helper::Server.new(:oribi, *arguments, app: nil, files: files).ready
  end

  def teardown
    super
    @backends&.each(&:stop)
    @others&.each do |pid|
      Process.kill("KILL", pid)
      Process.wait(pid)
    end
  end

  def backend(name, &answer)
    (@backends ||= []) << Helper::Backend.new("#{PLACE}/#{name}", &answer)
    @backends.last
  end

  # Answers after so many seconds, and keeps the connection.
  def answering(name, after: 0, **options)
    backend(name) do |request|
      sleep after
      request.reply(name, **options)
      true
    end
  end

  # Asks `count` times at once, each on a connection of its own; the bodies.
  def crowd(count, path)
    clients = Array.new(count) { ask_for(path) }
    clients.map { |client| client.answer.then { |answer| [answer.status, answer.body] } }
  end

  def other(*command)
    options = { chdir: server.directory, in: File::NULL, out: "#{server.directory}/others",
                err: %i[child out] }
    (@others ||= []) << Process.spawn({ "RACK_ENV" => "production" }, *command, **options)
    @others.last
  end

  def await_socket(name)
    wait_until("#{name} listens: #{File.read("#{server.directory}/others")}") do
      UNIXSocket.new("#{PLACE}/#{name}").close || true
    rescue SystemCallError
      nil
    end
  end

  def test_gateways_lead_there_too
    server
    one = backend("one") { |request| request.reply("<#{request.body}>", "X-A: 1") || true }
    answer = fastcgi.ask("/one/f?q=1", body: "by fastcgi", HTTP_X_MINE: "yes").answer
    assert_equal [200, "<by fastcgi>", "1"], [answer.status, answer.body, answer["x-a"]]
    assert_equal [200, "<by scgi>"], scgi("/one/s", "by scgi", method: "PUT")
    assert_equal ["POST /one/f?q=1 HTTP/1.1", "PUT /one/s HTTP/1.1"], one.requests.map(&:line)
    assert_equal [%w[test yes], ["test", nil]], (one.requests.map { |r| [r["host"], r["x-mine"]] })
  end

  def test_a_burst_waits_and_no_backend_sees_two_at_once
    server
    two = %w[two-a two-b].map { |name| answering(name, after: 0.002) }
    answers = crowd(200, "/two")
    assert_equal [[200, "two-a"], [200, "two-b"]], answers.uniq.sort
    assert_equal [1, 1], two.map(&:most)
    assert_equal(200, two.sum { |backend| backend.requests.size })
    assert_operator two.sum(&:connections), :<, 20, "connections are kept"
  end

  def test_a_stuck_backend_holds_up_nobody_else_and_its_request_is_answered
    server
    stuck = nil
    release = Queue.new
    %w[two-a two-b].each do |name|
      backend(name) do |request|
        release.pop if request.line.include?("/stuck") && (stuck = name)
        request.reply(name)
        true
      end
    end
    held = ask_for("/two/stuck")
    wait_until("somebody is stuck") { stuck }
    assert_equal [[200, (%w[two-a two-b] - [stuck]).first]], crowd(20, "/two").uniq
    release << true
    assert_equal stuck, held.answer.body
  end

  def test_the_dead_are_skipped_and_used_again
    server
    backends = %w[two-a two-b].to_h { |name| [name, answering(name)] }
    # The one that was used last is the first to be asked.
    dead = get("/two").body
    alive, = backends.keys - [dead]
    @backends.delete(backends.fetch(dead)).stop
    answers = Array.new(3) { connect.ask("POST /two", body: "x") }
    answers += Array.new(2) { get("/two") }
    assert_equal [[200, alive]], answers.map { |answer| [answer.status, answer.body] }.uniq
    wait_for_log(%r{mount two: unix:#{PLACE}/#{dead} cannot be reached: .*: is it running\?$})
    # Nobody is there at all: requests wait for a restart.
    @backends.delete(backends.fetch(alive)).stop
    waiting = ask_for("/two")
    wait_for_log(%r{mount two: unix:#{PLACE}/#{alive} cannot be reached})
    answering(dead)
    assert_equal dead, waiting.answer.body
    wait_for_log(%r{mount two: unix:#{PLACE}/#{dead} is back$})
    assert_equal 1, server.log.scan("#{dead} is back").size
    answering(alive, after: 0.05)
    wait_for_log(%r{mount two: unix:#{PLACE}/#{alive} is back$})
  end

  def test_what_a_backend_is_told_and_what_its_client_gets
    server
    one = backend("one") do |request|
      request.reply("made", "Content-Type: text/plain", "Keep-Alive: timeout=5", "X-Mine: a",
                    "X-Mine: b", "Trailer: X", "Connection: keep-alive, X-Gone", "X-Gone: 1",
                    status: "201 Created")
      true
    end
    asked = Helper::Client.request(
      "PUT /one/a%2Fb//c?d=%20", "Connection: X-Hop, keep-alive", "X-Hop: 1", "X-Stay: 2",
      "TE: trailers", "Proxy: evil", "Under_score: 1", "X-Forwarded-For: 10.0.0.1",
      "Expect: 100-continue", body: "body"
    )
    client = connect.write(asked)
    assert_equal 100, client.head.status
    answer = client.answer
    assert_equal [201, "made", %w[a b]], [answer.status, answer.body, answer["x-mine"]]
    %w[keep-alive trailer x-gone].each { |name| assert_nil answer[name] }
    request = one.requests.last
    assert_equal ["PUT /one/a%2Fb//c?d=%20 HTTP/1.1", "body"], [request.line, request.body]
    assert_equal(["test", "2", "10.0.0.1, 127.0.0.1", "http", "test", "4", "1.1 oribi"],
                 %w[host x-stay x-forwarded-for x-forwarded-proto x-forwarded-host content-length
                    via].map { |name| request[name] })
    assert_match(/\At=\d+\.\d{6}\z/, request["x-request-start"])
    %w[x-hop te proxy under_score expect connection].each { |name| assert_nil request[name], name }
    connect.write("GET /one HTTP/1.0\r\n\r\n").answer
    assert_match(/\A127\.0\.0\.1:\d+\z/, one.requests.last["host"])
  end

  def test_replies_without_a_body_and_without_a_length
    server
    backend("one") do |request|
      case request.line
      when /HEAD/ then request.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")
      when /204/ then request.socket.write("HTTP/1.1 204 No Content\r\n\r\n")
      when /304/ then request.socket.write("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n")
      when /early/
        request.socket.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        request.reply("late")
      when /chunks/
        request.socket.write("HTTP/1.1 200 OK\r\n" \
                             "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n" \
                             "3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n")
      else
        request.socket.write("HTTP/1.0 200 OK\r\n\r\nto the end")
        next
      end
      true
    end
    client = connect
    head = client.ask("HEAD /one")
    assert_equal [200, "99"], [head.status, head["content-length"]]
    assert_equal([204, 304], %w[/one/204 /one/304].map { |path| client.get(path).status })
    assert_equal(%w[abc late], %w[/one/chunks /one/early].map { |path| client.get(path).body })
    assert_equal "to the end", client.get("/one/close").body
    old = connect.write("GET /one/close HTTP/1.0\r\n\r\n").answer
    assert_equal ["to the end", nil], [old.body, old["transfer-encoding"]]
  end

  def test_what_goes_wrong_has_its_status
    server
    one = backend("one") do |request|
      request.socket.write("220 smtp.example\r\n") if request.line.include?("smtp")
      half = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nha"
      request.socket.write(half) if request.line.include?("half")
    end
    assert_equal 502, get("/one/smtp").status
    assert_equal 502, get("/one/lost").status
    assert_equal 2, one.requests.size, "not asked again"
    half = ask_for("/one/half")
    # It depends on how fast the rest does not come.
    assert_includes [200, 502], half.head.status
    hasty = answering("hasty", after: 0.5)
    first = ask_for("/hasty")
    wait_until("it is there") { hasty.requests.any? }
    patient = ask_for("/hasty")
    assert_equal 504, first.answer.status
    # It is the second one's turn only when the first one's is really over.
    assert_equal 504, patient.answer.status
    assert_equal 1, hasty.most
    wait_until("it is free") { hasty.requests.size == 2 }
    refused = crowd(3, "/hasty").map(&:first)
    assert_includes refused, 503
  end

  def test_who_breaks_off_is_asked_again_elsewhere_if_that_is_allowed
    server
    backend("again-a") { |request| request.socket.close }
    answering("again-b")
    answers = Array.new(2) { get("/again") }
    assert_equal [[200, "again-b"]], answers.map { |a| [a.status, a.body] }.uniq
  end

  def test_large_bodies_both_ways_and_slow_clients
    server
    digest = Digest::SHA256.hexdigest(BIG)
    one = backend("one") do |request|
      request.reply(request.body.empty? ? BIG : Digest::SHA256.hexdigest(request.body))
      true
    end
    slow = ask_for("/one/slow")
    head = slow.head
    assert_equal digest, connect.ask("POST /one", body: BIG).body, "the slow one holds nobody up"
    assert_equal digest, Digest::SHA256.hexdigest(slow.take(Integer(head["content-length"])))
    chunks = BIG.scan(/.{1,60000}/mn).map { |part| "#{part.bytesize.to_s(16)}\r\n#{part}\r\n" }
    client = connect.write("POST /one HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n",
                           *chunks, "0\r\n\r\n")
    assert_equal digest, client.answer.body
    assert_equal BIG.bytesize.to_s, one.requests.last["content-length"]
  end

  def test_who_leaves_leaves_the_queue
    server
    release = Queue.new
    one = backend("one") do |request|
      release.pop if request.line.include?("first")
      request.reply(request.line)
      true
    end
    first = ask_for("/one/first")
    wait_until("the first is there") { one.requests.size == 1 }
    gone = ask_for("/one/gone")
    later = ask_for("/one/later")
    # Half of it is read already: its answer is not waited for.
    gone.reset
    first.reset
    sleep 0.02
    assert_equal 1, one.requests.size, "the backend is busy, whoever waits for it"
    release << true
    assert_equal 200, later.answer.status
    assert_equal(%w[/one/first /one/later], one.requests.map { |request| request.line.split[1] })
    assert_equal 1, one.most
  end

  def test_a_kept_connection_that_a_backend_closes_loses_nothing
    server
    one = backend("one") do |request|
      request.reply("ok")
      # Announces nothing, and closes.
      false
    end
    assert_equal [200] * 20, Array.new(20) { get("/one").status }
    assert_equal 20, one.requests.size
    posted = Array.new(5) { connect.ask("POST /one", body: "x").status.tap { sleep 0.01 } }
    assert_equal [200] * 5, posted
  end

  def test_a_connection_that_becomes_another
    server
    one = backend("one") do |request|
      next request.reply("plain") && true unless request["upgrade"]

      key = request["sec-websocket-key"]
      request.socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n" \
                           "Connection: Upgrade\r\nX-Key: #{key}\r\n\r\nwelcome")
      request.socket.write(request.socket.readpartial(99).upcase)
      request.socket.read
    end
    client = ask_for("/one", "Connection: keep-alive, Upgrade", "Upgrade: websocket",
                     "Sec-WebSocket-Key: abc")
    head = client.head
    assert_equal [101, "abc", "websocket"], [head.status, head["x-key"], head["upgrade"]]
    assert_equal "Upgrade", one.requests.last["connection"].capitalize
    assert_equal "welcome", client.take(7)
    other = ask_for("/one")
    client.write("hello")
    assert_equal "HELLO", client.take(5)
    assert other.quiet?, "the backend is busy"
    client.close
    assert_equal "plain", other.answer.body
  end

  def test_thin_and_puma
    server
    %w[thin-a thin-b].each do |name|
      other("thin", "start", "--quiet", "--rackup", "thin.ru", "--socket", "#{PLACE}/#{name}")
    end
    other("puma", "-q", "-t", "2:2", "-b", "unix://#{PLACE}/puma", "thin.ru")
    %w[thin-a thin-b puma].each { |name| await_socket(name) }
    %w[thin puma].each do |name|
      answers = crowd(40, "/#{name}/a?5")
      assert_equal [200], answers.map(&:first).uniq
      said = answers.map { |_, body| body[/\A(.*) \d+\nx{5}\z/, 1] }
      assert_equal ["GET /#{name}/a test 0"], said.uniq
      assert_equal 2, answers.map { |_, body| body[/(\d+)\n/, 1] }.uniq.size if name == "thin"
      upload = connect.ask("POST /#{name}", body: BIG)
      assert_equal ["POST /#{name} test #{BIG.sum}"], [upload.body[/\A(.*) \d+\n/, 1]]
      assert_operator get("/#{name}?3000000").body.bytesize, :>, 3_000_000
    end
    # One of two is killed under load.
    killed, = @others
    answers = Thread.new { crowd(60, "/thin") }
    Process.kill("KILL", killed)
    statuses = answers.value.map(&:first)
    assert_operator statuses.count(200), :>=, 59, statuses.tally.to_s
  end
end
