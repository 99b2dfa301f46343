# frozen_string_literal: true

require "helper_case"

# Connections that an app takes: what goes through, and how they end.
class HijackTest < Helper::Case
  serve "hijack.ru", "-w", "1"

  def setup
    get("/pid")
    %w[ended heard left talked].each { |name| FileUtils.rm_f(File.join(server.directory, name)) }
  end

  def assert_echo(client, line = "one")
    client.write("#{line}\n")
    assert_equal "<#{line}>\n", client.take(line.size + 3)
  end

  def greet(client)
    assert_equal "hello\n", client.take(6)
    client
  end

  def test_bytes_go_both_ways_while_the_worker_serves_others
    client = greet(ask_for("/full/echo"))
    2.times { assert_echo(client) }
    # The only worker has no part in it any more.
    assert_match(/\A\d+\z/, get("/pid").body)
    other = greet(ask_for("/full/echo"))
    [client, other].each { |each| assert_echo(each, "x" * 50_000) }
  end

  def test_the_response_is_what_the_app_writes
    answer = get("/full/now")
    assert_equal [200, "at once", nil], [answer.status, answer.body, answer["date"]]
  end

  def test_what_came_behind_the_request_reaches_the_app
    client = connect.write("#{Client.request('GET /full/echo')}one\ntwo\n")
    greet(client)
    assert_equal "<one>\n<two>\n", client.take(12)
  end

  def test_earlier_answers_go_first
    requests = %w[/pid /large /full/echo].map { |path| Client.request("GET #{path}") }
    client = connect.write("#{requests.join}one\n")
    # While nobody reads, the large answer is not yet written.
    wait_until("the worker is past them") { get("/pid") }
    assert_match(/\A\d+\z/, client.answer.body)
    assert_equal 10_000_000, client.answer.body.size
    greet(client)
    assert_equal "<one>\n", client.take(6)
  end

  def test_the_request_body_is_in_rack_input
    [3, 100_000, 1_000_000].each do |size|
      assert_equal "A" * size, connect.ask("POST /full/input", body: "a" * size).body
    end
  end

  def test_whatever_the_app_returns_is_ignored
    client = greet(ask_for("/nonsense"))
    assert client.ended?
    refute_match(/nonsense/, server.log)
    assert_match(/\A\d+\z/, get("/pid").body)
  end

  def test_an_exception_after_hijacking_is_logged_and_no_more
    client = greet(ask_for("/full/raise"))
    assert client.ended?
    wait_for_log(%r{GET /full/raise: .*after hijacking \(RuntimeError\)})
    assert_match(/\A\d+\z/, get("/pid").body)
  end

  def test_hijacking_twice_gives_the_same_and_too_late_is_an_error
    assert_match(/\A\w+.*\n\z/, ask_for("/twice").rest)
    assert_equal "first too late to hijack: the response has begun", get("/late").body
  end

  def test_another_thread_of_the_app_may_hijack
    assert_equal "from a thread\n", ask_for("/thread").rest
  end

  def test_all_of_a_large_answer_arrives_before_the_end
    assert_equal 20_000_000, get("/full/big").body.size
  end

  def test_an_app_that_closes_without_having_read_all_is_heard_to_its_end
    client = ask_for("/full/big")
    # More than anybody on the way keeps.
    writer = Thread.new { client.write("x" * 10_000_000) }
    writer.report_on_exception = false
    assert_equal 20_000_000, client.answer.body.size
  ensure
    writer.kill
  end

  def test_a_client_that_has_nothing_more_to_say_still_listens
    client = greet(ask_for("/full/echo"))
    assert_echo(client)
    client.socket.close_write
    assert_equal "bye\n", client.rest
    assert_equal "echo", wait_for_lines("ended", 1).first
  end

  def test_an_app_that_has_nothing_more_to_say_still_listens
    client = ask_for("/full/half")
    assert_equal "all I say\n", client.rest
    client.write("and I answer")
    assert_empty lines("heard")
    client.socket.close_write
    assert_equal ["and I answer"], wait_for_lines("heard", 1)
  end

  def test_a_client_that_leaves_is_noticed
    %i[close reset].each_with_index do |way, index|
      client = greet(ask_for("/full/write"))
      client.public_send(way)
      @clients.delete(client)
      assert_equal ["gone"] * (index + 1), wait_for_lines("left", index + 1)
    end
  end

  def test_over_a_unix_socket
    Dir.mktmpdir("oribi-hijack") do |directory|
      start("hijack.ru", "-w", "1", "-b", "unix://#{directory}/a.sock")
      client = keep(Client.unix("#{directory}/a.sock"))
      greet(client.write(Client.request("GET /full/echo")))
      assert_echo(client)
      client.socket.close_write
      assert_equal "bye\n", client.rest
    end
  end

  def test_behind_a_head_of_the_apps
    client = ask_for("/partial/echo")
    head = client.head
    assert_equal [200, "text/plain", "close", nil],
                 [head.status, *%w[content-type connection transfer-encoding].map { |n| head[n] }]
    assert_echo(greet(client))
    assert_match(/\A\d+\z/, get("/pid").body)
    client.socket.close_write
    assert_equal "bye\n", client.rest
  end

  def test_such_a_head_is_as_the_app_gave_it
    client = ask_for("/keep")
    assert_equal "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nX-Case: as given\r\n" \
                 "Connection: x-own\r\ncontent-length: 5\r\n\r\nwhole", client.rest
  end

  def test_an_exception_behind_such_a_head_ends_the_connection
    client = ask_for("/partial/raise")
    assert_equal 200, client.head.status
    assert client.ended?
    wait_for_log(%r{GET /partial/raise: .*in rack\.hijack \(RuntimeError\)})
    assert_match(/\A\d+\z/, get("/pid").body)
  end

  def test_a_body_called_to_switch_protocols
    client = ask_for("/switch", "Connection: upgrade", "Upgrade: echo")
    head = client.head
    assert_equal [101, "echo", "upgrade"], [head.status, head["upgrade"], head["connection"]]
    assert_echo(greet(client))
  end

  # The example of RFC 6455, section 1.3.
  def web_socket(path)
    client = ask_for(path, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
    head = client.head
    assert_equal [101, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="], [head.status, head["sec-websocket-accept"]]
    client
  end

  # A masked frame.
  def frame(kind, text)
    mask = [7, 11, 13, 17]
    [0x80 | kind, 0x80 | text.bytesize, *mask].pack("C6") <<
      text.bytes.map.with_index { |byte, i| byte ^ mask[i % 4] }.pack("C*")
  end

  def test_web_sockets
    %w[/full/websocket /partial/websocket].each_with_index do |path, index|
      client = web_socket(path)
      client.write(frame(1, "one"), frame(1, "two"))
      assert_equal "\x81\x05<one>\x81\x05<two>".b, client.take(14)
      client.write(frame(1, "x" * 100))
      assert_equal "\x81\x66<#{'x' * 100}>".b, client.take(104)
      client.write(frame(8, "\x03\xE8".b))
      assert_equal "\x88\x02\x03\xE8".b, client.rest
      assert_equal ["websocket"] * (index + 1), wait_for_lines("talked", index + 1)
    end
    web_socket("/full/websocket").close
    assert_equal "cut", wait_for_lines("talked", 3).last
  end

  # Rack has it since 3.1.
  def test_rack_protocol
    client = ask_for("/protocol", "Connection: upgrade", "Upgrade: echo, other/2")
    head = client.head
    return assert_equal(500, head.status) if Helper.rack < 3.1

    assert_equal [101, "echo", "upgrade", "1"],
                 [head.status, *%w[upgrade connection x-a].map { |name| head[name] }]
    assert_echo(greet(client))
  end
end

# How hijacked connections end with the processes that serve them.
class HijackEndTest < Helper::Case
  def hijack
    client = ask_for("/full/deaf")
    assert_equal "hello\n", client.take(6)
    client
  end

  def test_when_its_worker_dies
    start("hijack.ru", "-w", "1")
    client = hijack
    Process.kill("KILL", Integer(get("/pid").body))
    assert client.ended?
    assert_match(/\A\d+\z/, get("/pid").body)
  end

  def test_a_server_that_ends_does_not_wait_for_it
    start("hijack.ru", "-w", "1", "--shutdown-timeout=60")
    client = hijack
    server.signal("TERM")
    assert_equal 0, server.wait(within: 10)
    assert client.ended?
  end
end

# 103 Early Hints, which a server has to be told to send.
class EarlyHintsTest < Helper::Case
  serve "hijack.ru", "-w", "1", "--early-hints"

  def hint(client, *links)
    head = client.head
    found = [head["link"]].flatten.map { |link| link[/<(.*)>/, 1] }
    assert_equal [103, links], [head.status, found]
  end

  def test_they_come_while_the_app_still_works
    door = gate("gate")
    client = ask_for("/hints/gate")
    hint(client, "/a.css")
    door.open
    assert_equal "page", client.answer.body
    assert_match(/\A\d+\z/, client.get("/pid").body)
  end

  def test_several_and_pipelined
    client = connect.write(Client.request("GET /hints/two") * 2)
    2.times do
      hint(client, "/a.css")
      hint(client, "/b.css", "/c.js")
      assert_equal "page", client.answer.body
    end
  end

  def test_they_do_not_make_the_response
    client = ask_for("/hints/raise")
    hint(client, "/a.css")
    answer = client.answer
    assert_equal [500, "Internal Server Error\n"], [answer.status, answer.body]
    assert_match(/\A\d+\z/, client.get("/pid").body)
  end

  def test_a_hijacked_connection_comes_after_them
    client = ask_for("/hints/hijack")
    hint(client, "/a.css")
    assert_equal "raw\n", client.rest
  end

  def test_clients_of_http_1_0_get_none
    client = connect.write("GET /hints/two HTTP/1.0\r\n\r\n")
    answer = client.answer
    assert_equal [200, "page"], [answer.status, answer.body]
  end

  def test_not_there_unless_wanted
    start("hijack.ru", "-w", "1")
    assert_equal "nil", get("/hints/two").body
  end
end
