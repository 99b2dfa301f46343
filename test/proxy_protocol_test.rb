# frozen_string_literal: true

require "helper_case"

# Connections that begin with a PROXY header, and those that should.
class ProxyProtocolTest < Helper::Case
  OPTIONS = ["-w", "1", "--proxy-protocol"].freeze
  ONE = "PROXY TCP4 192.0.2.7 198.51.100.1 4711 8443\r\n"
  SIGNATURE = "\r\n\r\n\0\r\nQUIT\n".b
  TWO = SIGNATURE + [0x21, 0x21, 36].pack("CCn") +
        %w[20010db8000000000000000000000001 20010db8000000000000000000000002].pack("H32H32") +
        [4711, 8443].pack("nn")
  LOCAL = SIGNATURE + [0x20, 0x00, 0].pack("CCn")

  def unpack(answer) = super.transform_values(&:first)

  def ends(env) = env.values_at("REMOTE_ADDR", "REMOTE_PORT", "SERVER_NAME", "SERVER_PORT")

  # Without Host the server's name is the address that was connected to.
  def ask(*parts)
    client = connect
    parts.each { |part| client.write(part) }
    client.write("GET /env HTTP/1.0\r\n\r\n")
    ends(unpack(client.answer))
  end

  def test_whose_connection_it_is
    start "rack.ru", *OPTIONS, "--trusted-proxies", "127.0.0.0/8"
    four = ["192.0.2.7", "4711", "198.51.100.1", "8443"]
    assert_equal four, ask(ONE)
    assert_equal four, ask(*ONE.chars)
    assert_equal ["2001:db8::1", "4711", "2001:db8::2", "8443"], ask(TWO)
    own = ask(LOCAL)
    assert_equal ["127.0.0.1", "127.0.0.1", port.to_s], own.values_at(0, 2, 3)
    # The rest of the connection is as any other: in one write, kept, with a body.
    client = connect.write(ONE + Client.request("GET /env"))
    assert_equal "192.0.2.7", unpack(client.answer)["REMOTE_ADDR"]
    assert_equal "192.0.2.7", unpack(client.get("/env"))["REMOTE_ADDR"]
  end

  def test_bad_headers_end_the_connection
    start "rack.ru", *OPTIONS, "--trusted-proxies", "127.0.0.0/8", "--first-byte-timeout", "0.2",
          "--head-timeout", "0.2"
    bad = ["GET /env HTTP/1.1\r\nHost: a\r\n\r\n", "PROXY TCP4 a b 1 2\r\n", "PROXY #{'x' * 200}",
           SIGNATURE + [0x31, 0x21, 36].pack("CCn")]
    bad.each { |bytes| assert connect.write(bytes).ended?, bytes }
    wait_for_log(/the client 127.0.0.1:\d+ counts as a proxy .*does not begin with a PROXY header/)
    # Those that never come to an end.
    ["", ONE[0, 20], SIGNATURE].each { |bytes| assert connect.write(bytes).ended?, bytes }
    assert_equal "192.0.2.7", ask(ONE).first
  end

  def test_from_others_it_is_no_request
    start "rack.ru", *OPTIONS, "--trusted-proxies", "203.0.113.0/24"
    answer = connect.write(ONE).answer
    assert_equal [400, "close"], [answer.status, answer["connection"]]
    assert_equal 200, get("/env").status
  end

  def test_clients_behind_a_proxy_are_counted_one_by_one
    start "rack.ru", *OPTIONS, "--trusted-proxies", "127.0.0.1", "--connections-per-peer", "1"
    held = connect.write(ONE).tap { |client| assert_equal 200, client.get("/env").status }
    assert_equal 429, connect.write(ONE).answer.status
    assert_equal 200, connect.write(TWO).get("/env").status
    assert_equal 200, held.get("/env").status
  end
end
