# frozen_string_literal: true

require "digest/sha2"
require "helper_case"

# HTTP/1.1 and 1.0, byte by byte: how messages begin, end and follow each other.
class HttpTest < Helper::Case
  serve "http.ru", "-w", "2"

  def test_a_connection_is_kept
    client = connect
    3.times do |i|
      answer = client.get("/#{i}")
      assert_equal ["HTTP/1.1", 200, "GET /#{i}"], [answer.version, answer.status, answer.body]
      assert_nil answer["connection"]
    end
    assert client.quiet?
  end

  def test_a_client_may_close
    client = connect
    answer = client.get("/a", "Connection: close")
    assert_equal ["GET /a", "close"], [answer.body, answer["connection"]]
    assert client.ended?
  end

  def test_an_app_may_close
    client = connect
    assert_equal "last", client.get("/close").body
    assert client.ended?
  end

  def test_http_1_0_closes
    client = connect
    answer = client.ask("GET /whole HTTP/1.0")
    assert_equal [200, "GET /whole", "10"], [answer.status, answer.body, answer["content-length"]]
    assert client.ended?
  end

  def test_http_1_0_may_keep_the_connection
    client = connect
    2.times do |i|
      answer = client.ask("GET /whole/#{i} HTTP/1.0", "Connection: keep-alive")
      assert_equal ["GET /whole/#{i}", "keep-alive"], [answer.body, answer["connection"]]
    end
    assert client.quiet?
  end

  def test_http_1_0_gets_no_chunks
    door = gate("gate")
    client = connect.write(Client.request("GET /gated HTTP/1.0", "Connection: keep-alive"))
    head = client.head
    assert_equal [nil, nil], [head["transfer-encoding"], head["content-length"]]
    assert_equal "first, ", client.take(7)
    door.open
    # What follows is all there is: only the connection's end says so.
    assert_equal "second", client.rest
  end

  def test_requests_in_one_packet_are_answered_in_order
    client = connect
    client.write((1..20).map { |i| Client.request("GET /#{i}") }.join)
    (1..20).each { |i| assert_equal "GET /#{i}", client.answer.body }
    assert client.quiet?
  end

  def test_a_request_right_behind_a_body_is_a_request
    client = connect
    client.write(Client.request("POST /echo", body: "GET /no HTTP/1.1\r\n\r\n") +
                 Client.request("GET /yes") +
                 Client.request("POST /echo", "Transfer-Encoding: chunked") +
                 "3\r\nabc\r\n0\r\n\r\n" +
                 Client.request("GET /too"))
    assert_equal ["GET /no HTTP/1.1\r\n\r\n", "GET /yes", "abc", "GET /too"],
                 Array.new(4) { client.answer.body }
    assert client.quiet?
  end

  # Whatever else has come by then: some clients send a line end too many behind a body.
  def test_an_answer_does_not_wait_for_the_rest_of_the_next_request
    client = connect
    client.write(Client.request("POST /echo", body: "abc"), "\r\nGET /ne")
    assert_equal "abc", client.answer.body
    client.write("xt HTTP/1.1\r\nHost: test\r\n\r\n")
    assert_equal "GET /next", client.answer.body
  end

  def test_an_answer_does_not_wait_for_the_next_one
    door = gate("gate")
    client = connect
    client.write(%w[/a /gated /b].map { |path| Client.request("GET #{path}") }.join)
    assert_equal "GET /a", client.answer.body
    client.head
    assert_equal "first, ", client.chunk
    door.open
    assert_equal ["second", nil], [client.chunk, client.chunk]
    assert_equal "GET /b", client.answer.body
  end

  def test_lengths_and_chunks
    client = connect
    known = client.get("/whole/parts")
    assert_equal ["15", nil, "one, two, three"],
                 [known["content-length"], known["transfer-encoding"], known.body]
    given = client.get("/length")
    assert_equal ["9", nil, "nine long"],
                 [given["content-length"], given["transfer-encoding"], given.body]
    empty = client.get("/whole/empty")
    assert_equal ["0", ""], [empty["content-length"], empty.body]
    assert client.quiet?
  end

  def test_a_stream_is_chunked_and_arrives_as_it_is_written
    door = gate("gate")
    client = ask_for("/gated")
    head = client.head
    assert_equal [200, "chunked"], [head.status, head["transfer-encoding"]]
    assert_equal "first, ", client.chunk
    door.open
    assert_equal ["second", nil], [client.chunk, client.chunk]
    assert_equal "GET /behind", client.get("/behind").body
  end

  def test_head_has_the_headers_and_no_body
    client = connect
    answer = client.ask("HEAD /length")
    assert_equal [200, "9", "text/plain"],
                 [answer.status, answer["content-length"], answer["content-type"]]
    answer = client.ask("HEAD /parts")
    assert_equal 200, answer.status
    # Its GET is chunked, so a length would be a lie.
    assert_nil answer["content-length"]
    assert_equal "GET /behind", client.get("/behind").body
    assert client.quiet?
  end

  def test_head_drops_the_body_of_a_careless_app
    client = connect
    answer = client.ask("HEAD /careless")
    assert_equal [200, "6"], [answer.status, answer["content-length"]]
    assert_equal 200, client.ask("HEAD /careless/stream").status
    assert_equal "GET /behind", client.get("/behind").body
    assert client.quiet?
  end

  def test_204_and_304_have_no_body
    client = connect
    %w[/status /careless].product([204, 304]).each do |path, status|
      answer = client.get("#{path}/#{status}")
      assert_equal [status, "\"1\""], [answer.status, answer["etag"]]
      assert_nil answer["transfer-encoding"]
      assert_nil answer["content-length"] if status == 204
      assert_equal "GET /behind", client.get("/behind").body
    end
    assert client.quiet?
  end

  def test_every_answer_has_one_date
    assert_match(/\A[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\z/, get["date"])
  end

  def test_methods_arrive_as_they_are
    client = connect
    %w[GET POST PUT PATCH DELETE OPTIONS PROPFIND].each do |method|
      assert_equal "#{method} /m", client.ask("#{method} /m").body
    end
  end

  def test_nonsense_is_400_and_the_end
    ["GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\nA B: c\r\n\r\n",
     "GET /a b HTTP/1.1\r\n\r\n", "nonsense\r\n\r\n"].each do |bytes|
      client = connect.write(bytes)
      assert_equal 400, client.answer.status, bytes
      assert client.ended?
    end
    assert_equal 200, get.status
  end

  def test_curl_agrees
    assert_equal ["GET /a", 0], curl(url("/a"))
    assert_equal ["GET /a", 0], curl("--http1.0", url("/a"))
    assert_equal ["one, two, three", 0], curl(url("/parts"))
    assert_equal ["GET /aGET /b", 0], curl(url("/a"), url("/b"))
    head, status = curl("--head", url("/length"))
    assert_equal 0, status
    assert_match(/\AHTTP\/1.1 200 OK\r\n.*^content-length: 9\r\n.*\r\n\r\n\z/m, head)
  end
end

# Expect: 100-continue: the client sends its body when it is told to, or after a while of its own.
class ContinueTest < Helper::Case
  serve "http.ru", "-w", "2"

  def test_100_comes_when_the_body_is_wanted
    client = connect
    client.write(Client.request("POST /echo", "Expect: 100-continue", "Content-Length: 4"))
    interim = client.head
    assert_equal [100, []], [interim.status, interim.fields]
    client.write("body")
    answer = client.answer
    assert_equal [200, "body"], [answer.status, answer.body]
    assert_equal "GET /behind", client.get("/behind").body
  end

  def test_100_comes_for_chunks
    client = connect
    client.write(Client.request("POST /echo", "Expect: 100-continue", "Transfer-Encoding: chunked"))
    assert_equal 100, client.head.status
    client.write("4\r\nbody\r\n0\r\n\r\n")
    assert_equal "body", client.answer.body
  end

  def test_no_100_without_a_body
    client = connect
    answer = client.get("/a", "Expect: 100-continue")
    assert_equal [200, "GET /a"], [answer.status, answer.body]
    answer = client.ask("POST /a", "Expect: 100-continue", "Content-Length: 0")
    assert_equal [200, "POST /a"], [answer.status, answer.body]
  end

  def test_no_100_in_front_of_a_413
    client = connect
    client.write(Client.request("POST /echo", "Expect: 100-continue",
                                "Content-Length: #{1 << 40}"))
    assert_equal 413, client.answer.status
    assert client.ended?
  end

  def test_curl_agrees
    body = "x" * 100_000
    file = File.join(server.directory, "upload")
    File.write(file, body)
    output, = curl("--verbose", "-H", "Expect: 100-continue", "--data-binary", "@#{file}",
                   url("/digest"))
    assert_includes output, "< HTTP/1.1 100 Continue"
    assert_includes output, "#{Digest::SHA256.hexdigest(body)} 100000 \"100000\""
  end
end

# Where clients come in.
class ListenersTest < Helper::Case
  def test_ipv4_ipv6_and_unix_at_once
    directory = Dir.mktmpdir("oribi-http")
    path = File.join(directory, "a.sock")
    start("http.ru", "-w", "2", "-b", "tcp://[::1]:0", "-b", "unix://#{path}",
          "-b", "tcp://127.0.0.1:0")
    ports = server.log.scan(%r{^oribi: listening on http://(.*):(\d+)$})
    assert_equal ["127.0.0.1", "[::1]", "127.0.0.1"], ports.map(&:first)
    clients = ports.map { |host, port| keep(Client.tcp(Integer(port, 10), host.tr("[]", ""))) }
    clients << keep(Client.unix(path))
    # Twice each, in turns, all connections open.
    2.times do |i|
      clients.each { |client| assert_equal "GET /#{i}", client.get("/#{i}").body }
      clients.each { |client| assert_equal "one, two, three", client.get("/parts").body }
    end
    assert_equal ["GET /a", 0], curl("--unix-socket", path, "http://test/a")
    assert_equal ["GET /a", 0], curl("http://[::1]:#{ports[1][1]}/a")
  ensure
    FileUtils.remove_entry(directory)
  end
end
