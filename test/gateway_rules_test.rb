# frozen_string_literal: true

require "helper_case"
require "helper_fastcgi"
require "json"

# What holds for HTTP holds for requests through a gateway too: whose word is taken, where the app
# lies, limits, the access log.
class GatewayRulesTest < Helper::Case
  F = Helper::FastCgi
  DOOR = %w[-b fastcgi://127.0.0.1:0].freeze

  def fastcgi = keep(F.tcp(Integer(server.log[%r{listening on fastcgi://\S+:(\d+)$}, 1], 10)))

  def env_of(target = "/env", **params)
    unpack(fastcgi.ask(target, **params).answer).transform_values(&:first)
  end

  FORWARDED = { "HTTP_X_FORWARDED_FOR" => "198.51.100.7", "HTTP_X_FORWARDED_PROTO" => "https",
                "HTTP_X_FORWARDED_HOST" => "public.example", "HTTP_FORWARDED" => "for=1.2.3.4" }
              .freeze

  def test_only_trusted_proxies_in_front_of_the_web_server_are_believed
    start("rack.ru", "-w", "1", "--trusted-proxies", "192.0.2.0/24", *DOOR)
    env = env_of(**FORWARDED)
    assert_equal ["198.51.100.7", "https", "public.example", "public.example", "443", "on"],
                 env.values_at("REMOTE_ADDR", "rack.url_scheme", "HTTP_HOST", "SERVER_NAME",
                               "SERVER_PORT", "HTTPS")
    refute env.key?("HTTP_FORWARDED")
    env = env_of(**FORWARDED, REMOTE_ADDR: "203.0.113.1")
    assert_equal ["203.0.113.1", "http", "test", "test"],
                 env.values_at("REMOTE_ADDR", "rack.url_scheme", "HTTP_HOST", "SERVER_NAME")
    assert_empty env.keys.grep(/FORWARDED/)
  end

  def test_without_declared_proxies_the_app_judges_itself
    start("rack.ru", "-w", "1", *DOOR)
    env = env_of(**FORWARDED)
    assert_equal ["192.0.2.1", "1234", "http", "198.51.100.7", "for=1.2.3.4"],
                 env.values_at("REMOTE_ADDR", "REMOTE_PORT", "rack.url_scheme",
                               "HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED")
    # What programs would obey, and what would pass for something of Rack's.
    env = env_of(HTTP_PROXY: "http://evil", "rack.input" => "x", HTTPS: "on", HTTP_HOST: "")
    refute env.key?("HTTP_PROXY")
    refute_equal "x", env["rack.input"]
    assert_equal %w[https test 80], env.values_at("rack.url_scheme", "SERVER_NAME", "SERVER_PORT")
  end

  def test_a_prefix
    start("rack.ru", "-w", "1", "--prefix", "/app", *DOOR, "-b", "tcp://127.0.0.1:0")
    kept = connect
    # Web servers decode what they say of the path.
    [->(target) { env_of(target, PATH_INFO: target.sub("%2F", "/")) },
     ->(target) { unpack(kept.get(target)).transform_values(&:first) }].each do |ask|
      %w[/env /env/ /env/a%2Fb/].each do |rest|
        env = ask.call("/app#{rest}")
        assert_equal ["/app", rest, "/app#{rest}"],
                     env.values_at("SCRIPT_NAME", "PATH_INFO", "REQUEST_URI")
      end
    end
    %w[/ /env /apple /x/app/env].each do |elsewhere|
      assert_equal 404, fastcgi.get(elsewhere).status
      # The connection goes on.
      assert_equal 404, kept.get(elsewhere).status
    end
  end

  def test_connections_beyond_the_limit_are_told_so
    start("queue.ru", "-w", "1", "--connections", "1", *DOOR)
    first = fastcgi
    assert_equal 200, first.get("/").status
    second = fastcgi
    reply = second.ask("/")
    assert_equal [503, 2], [reply.answer.status, reply.protocol]
    assert second.ended?
    assert_equal 200, first.get("/").status
  end

  def test_a_web_server_that_takes_nothing_is_cut_off
    start("reply.ru", "-w", "1", "--write-timeout", "0.3", "--reply-spool", "0", *DOOR)
    client = fastcgi.write(F.request(F.params("/array/big")))
    wait_for_log(/takes nothing of its reply/)
    assert_equal 200, fastcgi.get("/pid").status
    client.close
    @clients.delete(client)
  end

  def test_the_access_log
    path = File.join(Dir.mktmpdir("oribi-log"), "log")
    start("rack.ru", "-w", "1", "--access-log", path, "--access-log-format", "json", *DOOR)
    env = env_of("/env?a=1", HTTP_X_REQUEST_ID: "abc-1")
    assert_equal "abc-1", env["HTTP_X_REQUEST_ID"]
    refute_nil env_of("/env")["HTTP_X_REQUEST_ID"]
    assert_equal 400, fastcgi.get("/env", HTTP_HOST: "a b").status
    found = wait_until("three lines") { File.readlines(path).then { |all| all if all.size == 3 } }
    first, second, refused = found.map { |line| JSON.parse(line) }
    assert_equal ["192.0.2.1", "GET", 200], first.values_at("client", "method", "status")
    assert_equal %w[/env?a=1 abc-1], first.values_at("uri", "request_id")
    assert_equal [200, 400], [second["status"], refused["status"]]
  ensure
    FileUtils.rm_rf(File.dirname(path))
  end
end
