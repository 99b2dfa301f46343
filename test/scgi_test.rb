# frozen_string_literal: true

require "helper_case"

# The SCGI door, as a web server sees it.
class ScgiTest < Helper::Case
  serve "queue.ru", "-w", "2", "-b", "scgi://127.0.0.1:0", "-b", "tcp://127.0.0.1:0"

  def scgi_port = Integer(server.log[%r{listening on scgi://\S+:(\d+)$}, 1], 10)

  def scgi = keep(Helper::Client.tcp(scgi_port))

  def headers(target, length: 0, method: "GET", **others)
    path, query = target.split("?", 2)
    { "CONTENT_LENGTH" => length.to_s, "SCGI" => "1", "REQUEST_METHOD" => method,
      "REQUEST_URI" => target, "SCRIPT_NAME" => "", "PATH_INFO" => path,
      "QUERY_STRING" => query.to_s, "SERVER_PROTOCOL" => "HTTP/1.1", "HTTP_HOST" => "test",
      "SERVER_NAME" => "test", "SERVER_PORT" => "80", "REMOTE_ADDR" => "192.0.2.1" }
      .merge(others.transform_keys(&:to_s))
  end

  def netstring(headers)
    block = headers.map { |name, value| "#{name}\0#{value}\0".b }.join
    "#{block.bytesize}:#{block},".b
  end

  def request(target, body: "", **others)
    netstring(headers(target, length: body.bytesize, **others)) << body.b
  end

  # Everything until the server closes: head and body.
  def rest(client)
    all = +""
    loop { all << client.socket.readpartial(65_536) }
  rescue EOFError
    all.split("\r\n\r\n", 2)
  end

  def ask(target, **others) = rest(scgi.write(request(target, **others)))

  def test_a_request_and_its_reply
    head, body = ask("/one?a=1")
    assert_match(/\AStatus: 200 OK\r\n/, head)
    assert_equal "GET /one?a=1", body.split(" ", 2).last.strip
  end

  def test_bodies_of_any_size_and_bytes_one_by_one
    [1, 16_384, 100_000, 3_000_000].each do |size|
      _, body = ask("/big", body: "b" * size, method: "POST")
      assert_equal "POST /big? #{'b' * size}".hash, body.split(" ", 2).last.hash, size
    end
    client = scgi
    request("/slowly", body: "abc", method: "PUT").each_char { |byte| client.write(byte) }
    assert_equal "PUT /slowly? abc", rest(client).last.split(" ", 2).last
  end

  def test_what_is_no_scgi_is_cut_off
    good = netstring(headers("/x"))
    late = headers("/x").to_a.rotate(1)
    [
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n", ":,", "0:,", "-1:x,", "01:a,", "99999999:", "5:abcde,",
      good.sub(/,\z/, ";"), netstring(late), netstring(headers("/x").merge("SCGI" => "2")),
      netstring(headers("/x").except("SCGI")), good.sub(/\A\d+/, "x")
    ].each do |bytes|
      client = scgi.write(bytes)
      client.socket.close_write
      assert_empty client.socket.read.to_s[/\AStatus: 200/].to_s, bytes.inspect
    end
    assert_match(/\AStatus: 200/, ask("/fine").first)
    assert_empty(lines("called").grep(%r{/x}))
  end

  def test_refusals_come_as_replies
    start("queue.ru", "-w", "1", "--head-limit", "2k", "--body-limit", "1000", "--uri-limit", "200",
          "--queue-timeout", "0.5", "-b", "scgi://127.0.0.1:0")
    # The second is still being sent when it is refused.
    [2000, 10_000_000].each do |size|
      assert_match(/\AStatus: 413/, ask("/", body: "x" * size, method: "POST").first)
    end
    assert_match(/\AStatus: 414/, ask("/#{'x' * 300}").first)
    gate = gate("gate")
    held = scgi.write(request("/gate"))
    gate.arrived
    assert_match(/\AStatus: 503/, ask("/waits").first)
    gate.open
    assert_match(/\AStatus: 200/, rest(held).first)
  end

  def test_a_body_that_ends_early_is_not_run
    client = scgi.write(netstring(headers("/early", length: 10, method: "POST")), "short")
    client.socket.close_write
    refute_match(/\AStatus: 200/, client.socket.read)
    assert_equal 200, get("/fine").status
    assert_empty(lines("called").grep(%r{/early}))
  end

  # As some clients do: the end of what they send says nothing about what they want.
  def test_a_client_that_has_closed_its_sending_side_is_answered
    client = scgi.write(request("/half"))
    client.socket.close_write
    assert_equal "GET /half?", rest(client).last.split(" ", 2).last.strip
  end

  def test_timeouts
    start("queue.ru", "-w", "1", "--head-timeout", "0.6", "--first-byte-timeout", "0.6",
          "--body-timeout", "0.6", "-b", "scgi://127.0.0.1:0")
    assert_equal [], rest(scgi)
    assert_equal [], rest(scgi.write("70:CONTENT_LENGTH"))
    late = scgi.write(netstring(headers("/", length: 3, method: "POST")))
    assert_match(/\AStatus: 408/, rest(late).first)
  end

  def test_over_a_unix_socket
    path = File.join(Dir.mktmpdir("oribi-door"), "s")
    start("queue.ru", "-w", "1", "-b", "scgi+unix://#{path}")
    client = keep(Helper::Client.unix(path))
    assert_match(/\AStatus: 200/, rest(client.write(request("/unix"))).first)
  ensure
    FileUtils.rm_rf(File.dirname(path))
  end

  def test_large_replies
    start("reply.ru", "-w", "1", "-b", "scgi://127.0.0.1:0")
    expected = "#{'x' * 1_000_000}#{'y' * 4_000_000}"
    %w[/array/big /stream/big].each { |path| assert_equal expected.hash, ask(path).last.hash, path }
  end
end
