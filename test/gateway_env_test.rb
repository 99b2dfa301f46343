# frozen_string_literal: true

require "helper_case"
require "helper_fastcgi"
require "helper_web_servers"

# A server with all doors, and the ways to them.
class GatewayCase < Helper::Case
  F = Helper::FastCgi
  DOORS = %w[-b fastcgi://127.0.0.1:0 -b scgi://127.0.0.1:0].freeze

  def port_of(door) = Integer(server.log[%r{listening on #{door}://\S+:(\d+)$}, 1], 10)

  def fastcgi = keep(F.tcp(port_of("fastcgi")))

  # The reply to a request over FastCGI, on a connection of its own.
  def ask(target, **params) = fastcgi.ask(target, **params)

  # The body of a reply over SCGI.
  def ask_scgi(target)
    params = F.params(target, body: "").sort_by { |name, _| name == "CONTENT_LENGTH" ? 0 : 1 }
    block = [*params, %w[SCGI 1]].flatten.map { |word| "#{word}\0" }.join
    client = keep(Helper::Client.tcp(port_of("scgi")))
    client.write("#{block.bytesize}:#{block},").rest.split("\r\n\r\n", 2).last
  end

  def assert_serves = assert_match(/\A\d+\z/, ask("/pid").answer.body)
end

# What the env of a request through a gateway promises, and what becomes of an app that wants more.
class GatewayEnvTest < GatewayCase
  serve "gateway.ru", "-w", "1", *DOORS, "--early-hints"

  PROMISES = %w[rack.hijack rack.hijack? rack.early_hints rack.protocol rack.errors].freeze

  def promises(body)
    Marshal.load(body).slice(*PROMISES) # rubocop:disable Security/MarshalLoad
  end

  def test_only_what_works_is_promised
    through = { "rack.hijack?" => "false", "rack.errors" => "#<Oribi::RackErrors>" }
    assert_equal through, promises(ask("/env", HTTP_UPGRADE: "websocket").answer.body)
    assert_equal through, promises(ask_scgi("/env"))
    straight = promises(get("/env", "Upgrade: websocket", "Connection: upgrade").body)
    assert_equal ["#<Oribi::Hijack>", "true", "#<Oribi::EarlyHints>", "#<IO:<STDERR>>"],
                 straight.values_at("rack.hijack", "rack.hijack?", "rack.early_hints",
                                    "rack.errors")
    assert_equal rack >= 3.1, straight.key?("rack.protocol")
  end

  def test_whoever_wants_the_connection_gets_500_and_a_reason
    %w[hijack protocol status].each do |what|
      reply = ask("/wrong/#{what}")
      assert_equal 500, reply.answer.status
      reason = /a gateway, which keeps its client's connection: look at rack.hijack\?/
      assert_match(%r{\Aoribi: GET /wrong/#{what}: the app's reply has .*#{reason}}, reply.errors)
      wait_for_log(%r{worker 1: GET /wrong/#{what}: the app's reply has .*#{reason}})
    end
    assert_serves
  end

  def test_a_hijack_kept_from_another_request_is_refused
    assert_equal "kept", get("/keep").body
    assert_match(/\AIOError: .*through a gateway/, ask("/kept").answer.body)
  end

  def test_a_body_that_calls_reads_the_request_and_then_its_end
    ["", "abc", "x" * 300_000].each do |body|
      reply = ask("/callable", body: body)
      assert_equal "<#{body}>nil".hash, reply.answer.body.hash
      assert_equal "within\nbehind\n", reply.errors
    end
  end
end

# `rack.errors` over FastCGI, which is its STDERR.
class GatewayErrorsTest < GatewayCase
  serve "gateway.ru", "-w", "1", *DOORS

  def test_everything_written_arrives_in_order
    assert_equal "one\ntwo\nthree\nf\xFCnf".b, ask("/all").errors
    assert_equal "a1b2c\nd\n007\n[true, false, false, \"#<Oribi::RackErrors>\"]\n",
                 ask("/raw").errors
    assert_equal "from a thread\n", ask("/thread").errors
  end

  def test_errors_of_a_body_come_with_its_reply
    reply = ask("/talking")
    assert_equal ["onetwo", "before o\nbefore t\nafter all\nclosed\n"],
                 [reply.answer.body, reply.errors]
    reply = ask("/filed")
    assert_equal [File.read(File.join(server.directory, "config.ru")), "closed\n"],
                 [reply.answer.body, reply.errors]
    # No body is asked for; it is closed all the same.
    reply = ask("/talking", method: "HEAD")
    assert_equal ["", "closed\n"], [reply.answer.body, reply.errors]
  end

  # More than a window, before a body that is more than one too.
  def test_errors_of_any_size
    [[1, 1], [100, 100_000], [1_000_000, 10], [70_000, 3_000_000], [3_000_000, 3_000_000],
     [0, 200_000]].each do |errors, size|
      reply = ask("/size/#{errors}/#{size}")
      assert_equal size, reply.answer.body.count("x"), [errors, size]
      assert_equal "#{'e' * errors}before x\nafter all\nclosed\n".hash, reply.errors.hash
      assert_equal [0, 0], [reply.status, reply.protocol]
    end
  end

  def test_who_does_not_read_harms_nobody_else
    # As much as a window holds; beyond that the worker waits for the web server.
    client = fastcgi.write(F.request(F.params("/size/1500000/10")))
    assert_serves
    reply = client.reply
    assert_equal [10, 0], [reply.answer.body.count("x"), reply.protocol]
  end

  def test_an_exception_is_one_line_there_and_a_backtrace_in_our_log
    reply = ask("/raise")
    assert_equal 500, reply.answer.status
    assert_match(%r{\Aoribi: GET /raise: ArgumentError: on purpose \(.*config.ru:\d+\)\n\z},
                 reply.errors)
    wait_for_log(%r{worker 1: GET /raise: .*on purpose \(ArgumentError\)\n\tfrom})
  end

  def test_an_exception_when_the_reply_has_begun
    client = fastcgi.write(F.request(F.params("/raise/later"), keep: false))
    reply = client.reply_until { |one| one.errors.include?("NoMethodError") }
    assert_match(%r{\Abegun\nbefore o\nclosed\noribi: GET /raise/later: NoMethodError: .*\n\z},
                 reply.errors)
    assert_serves
  end

  def test_an_exception_of_close_does_not_cut_the_reply
    reply = ask("/stuck")
    assert_equal ["onetwo", 0], [reply.answer.body, reply.protocol]
    assert_match(%r{after all\noribi: GET /stuck: RuntimeError: stuck \(.*\)\n\z}, reply.errors)
  end

  def test_what_is_no_body_after_all
    reply = ask("/wrong/part")
    assert_equal [500, "Internal Server Error\n"], [reply.answer.status, reply.answer.body]
    assert_match(/Integer, not String\n\z/, reply.errors)
  end

  def test_what_comes_too_late_or_from_a_child_is_in_our_log
    { "/late" => /^too late$/, "/forked" => /^from the child$/ }.each do |path, line|
      reply = ask(path)
      assert_equal ["", path], [reply.errors, "/#{reply.answer.body}"]
      wait_for_log(line)
    end
    assert_equal "onetwo", ask_scgi("/talking")
    wait_for_log(/^before o\nbefore t\nafter all\nclosed$/)
    assert_serves
  end
end

# Requests that end badly, and workers of several threads.
class GatewayEndsTest < GatewayCase
  def test_last_words_are_said
    start("gateway.ru", "-w", "1", *DOORS, "--request-timeout", "0.5")
    reply = ask("/die")
    assert_equal [502, "last words\n"], [reply.answer.status, reply.errors]
    client = fastcgi.write(F.request(F.params("/die/later")))
    reply = client.reply_until { |one| one.errors == "last words\n" }
    assert_equal "first", reply.answer.body
    reply = ask("/hang")
    assert_equal [504, "about to hang\n"], [reply.answer.status, reply.errors]
    assert_serves
  end

  # The second leaves a log behind that is no UTF-8.
  def test_exceptions_that_are_hard_to_tell
    start("gateway.ru", "-w", "1", *DOORS)
    client = fastcgi
    reply = client.ask("/raise/lines")
    assert_match(%r{\Aoribi: GET /raise/lines: RuntimeError: one \(.*:\d+\)\n\z}, reply.errors)
    reply = client.ask("/raise/encoding")
    assert_equal 500, reply.answer.status
    assert_match(%r{\Aoribi: GET /raise/encoding: RuntimeError: t.*\n\z}n, reply.errors)
  end

  def test_each_thread_has_its_own_errors_and_a_warm_up_has_none
    start("gateway.ru", "-w", "1", "-t", "2", *DOORS, "--warm-up", "/talking")
    assert_match(/^before o\nbefore t\nafter all\nclosed\n/, server.log)
    gate = gate("gate")
    held = fastcgi.write(F.request(F.params("/hold")))
    gate.arrived
    replies = Array.new(20) { |index| ask("/size/#{index}/1").errors }
    assert_equal (0..19).map { |size| "#{'e' * size}before x\nafter all\nclosed\n" }, replies
    gate.open
    assert_equal "before\nbehind\n", held.reply.errors
  end
end

# What becomes of errors in real web servers, each with its example's configuration.
class GatewayWebServerTest < GatewayCase
  serve "gateway.ru", "-w", "1", *DOORS

  def teardown
    super
    @web&.stop
  end

  def behind(kind)
    text = File.read(File.join(Helper::ROOT, "examples/behind-#{kind}/fastcgi.conf"))
    port = free_port
    text = text.gsub(/\b8080\b/, port.to_s).gsub(/\b9000\b/, port_of("fastcgi").to_s)
    @web = Helper::WebServer.new(kind, text).ready(port)
    keep(Helper::Client.tcp(port))
  end

  # By the examples' own names.
  %i[nginx lighttpd apache].each do |kind|
    define_method("test_errors_are_in_the_log_of_#{kind}") do
      client = behind(kind)
      # Far more than the web server keeps of it, then as little as it takes.
      assert_equal 10, client.get("/size/1000000/10").body.size
      assert_equal 3_000_000, client.get("/size/100000/3000000").body.size
      assert_equal "onetwo", client.get("/talking").body
      assert_equal 500, client.get("/raise").status
      wait_until("the errors are in #{@web.log[0, 3000]}") do
        ["closed", "GET /raise: ArgumentError: on purpose"].all? { |line| @web.log.include?(line) }
      end
    end
  end
end
