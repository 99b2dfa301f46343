# frozen_string_literal: true

require "helper_case"

# Whom a request is from, and whom it asks, when proxies lie in front.
class ForwardedTest < Helper::Case
  # What a proxy at the end of a chain sends; 10.1.1.1 is another proxy.
  SENT = ["X-Forwarded-For: 6.6.6.6, 192.0.2.1, 10.1.1.1", "X-Forwarded-Proto: https",
          "X-Forwarded-Host: shop.example", "X-Real-IP: 192.0.2.1",
          "Forwarded: for=192.0.2.2;proto=https;host=\"forwarded.example:8443\""].freeze

  def env_of(client, *fields)
    unpack(client.get("/env", *fields)).transform_values(&:first)
  end

  def trusting(*networks, field: nil)
    arguments = networks.flat_map { |network| ["--trusted-proxies", network] }
    arguments += ["--forwarded", field] if field
    start("rack.ru", "-w", "1", *arguments)
  end

  def assert_untouched(env)
    assert_equal ["127.0.0.1", "http", "test", "test", "80", nil],
                 env.values_at("REMOTE_ADDR", "rack.url_scheme", "HTTP_HOST", "SERVER_NAME",
                               "SERVER_PORT", "HTTPS")
  end

  def test_undeclared_all_passes_as_it_was_sent
    start("rack.ru", "-w", "1")
    env = env_of(connect, *SENT)
    assert_untouched(env)
    assert_equal ["6.6.6.6, 192.0.2.1, 10.1.1.1", "https", "192.0.2.1"],
                 env.values_at("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_X_REAL_IP")
    assert env["HTTP_FORWARDED"]
  end

  def test_strangers_are_not_believed
    trusting("10.0.0.0/8", "unix")
    env = env_of(connect, *SENT, "X-Forwarded-Anything: x", "X-Request-Id: kept")
    assert_untouched(env)
    assert_equal %w[HTTP_HOST HTTP_VERSION HTTP_X_REQUEST_ID], env.keys.grep(/\AHTTP_/).sort
  end

  def test_x_forwarded_of_a_trusted_proxy
    trusting("127.0.0.0/8", "10.0.0.0/8")
    client = connect
    env = env_of(client, *SENT)
    assert_equal ["192.0.2.1", "", "https", "shop.example", "shop.example", "443", "on"],
                 env.values_at("REMOTE_ADDR", "REMOTE_PORT", "rack.url_scheme", "HTTP_HOST",
                               "SERVER_NAME", "SERVER_PORT", "HTTPS")
    assert_equal "https", env["HTTP_X_FORWARDED_PROTO"]
    # The proxy does not set it, so a client has.
    refute env.key?("HTTP_FORWARDED")
    # Each request of the connection for itself.
    assert_untouched(env_of(client))
    env = env_of(client, "X-Forwarded-For: [2001:db8::1]:99", "X-Forwarded-Port: 8080")
    assert_equal ["2001:db8::1", "99", "http", "test", "8080"],
                 env.values_at("REMOTE_ADDR", "REMOTE_PORT", "rack.url_scheme", "SERVER_NAME",
                               "SERVER_PORT")
  end

  def test_garbage_of_a_trusted_proxy_is_ignored
    trusting("127.0.0.1")
    env = env_of(connect, "X-Forwarded-For: who knows", "X-Forwarded-Proto: gopher",
                 "X-Forwarded-Host: a b", "X-Forwarded-Port: 99999")
    assert_untouched(env)
  end

  def test_forwarded_of_a_trusted_proxy
    trusting("127.0.0.1", field: "forwarded")
    env = env_of(connect, *SENT)
    assert_equal ["192.0.2.2", "https", "forwarded.example:8443", "forwarded.example", "8443"],
                 env.values_at("REMOTE_ADDR", "rack.url_scheme", "HTTP_HOST", "SERVER_NAME",
                               "SERVER_PORT")
    assert_empty env.keys.grep(/\AHTTP_X_/)
  end

  def test_none_means_that_no_header_counts
    trusting("127.0.0.1", field: "none")
    env = env_of(connect, *SENT)
    assert_untouched(env)
    assert_empty env.keys.grep(/\AHTTP_(X_|FORWARDED)/)
  end

  def test_every_client_of_a_unix_socket
    directory = Dir.mktmpdir("oribi-forwarded")
    path = File.join(directory, "a.sock")
    start("rack.ru", "-w", "1", "-b", "unix://#{path}", "--trusted-proxies", "unix")
    env = env_of(keep(Helper::Client.unix(path)), *SENT.first(2))
    # 10.1.1.1 is nobody here.
    assert_equal ["10.1.1.1", "https"], env.values_at("REMOTE_ADDR", "rack.url_scheme")
    assert_untouched(env_of(connect, *SENT))
  ensure
    FileUtils.remove_entry(directory)
  end
end
