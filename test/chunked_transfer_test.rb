# frozen_string_literal: true

require "helper_case"

# With `chunked_transfer false` a reply of unknown length ends with its connection, as with Rhebok.
class ChunkedTransferTest < Helper::Case
  serve "reply.ru", "-w", "2", "--chunked-transfer=no"

  # It is longer than what a worker can have written before anybody looks, which has a length.
  def test_the_connection_ends_a_reply_of_unknown_length
    client = ask_for("/stream/big")
    head = client.head
    assert_equal ["HTTP/1.1", 200, "close"], [head.version, head.status, head["connection"]]
    assert_nil head["transfer-encoding"]
    assert_nil head["content-length"]
    assert_equal "#{'x' * 1_000_000}#{'y' * 4_000_000}", client.rest
  end

  def test_each_part_arrives_while_the_app_still_waits
    door = gate("gate")
    client = ask_for("/stream")
    assert_equal "close", client.head["connection"]
    assert_equal "first\n", client.take(6)
    door.open
    assert_equal "second\n", client.rest
  end

  def test_what_has_a_length_keeps_its_connection_and_comes_first
    start("http.ru", "-w", "1", "--chunked-transfer=0")
    client = connect
    2.times { assert_equal "GET /whole", client.get("/whole").body }
    assert_equal 200, client.ask("HEAD /parts").status
    door = gate("gate")
    client.write(*%w[/whole /whole /gated /whole].map { |path| Client.request("GET #{path}") })
    2.times { assert_equal "GET /whole", client.answer.body }
    head = client.head
    assert_equal ["HTTP/1.1", "close"], [head.version, head["connection"]]
    door.open
    assert_equal "first, second", client.rest
  end

  def test_a_client_of_http_1_0_sees_its_own_version
    head = connect.write("GET /stream/many HTTP/1.0\r\n\r\n").head
    assert_equal ["HTTP/1.0", 200, nil], [head.version, head.status, head["transfer-encoding"]]
  end

  # A plain end would look like the reply's.
  def test_a_reply_that_is_cut_short_ends_with_a_reset
    ["GET /stream HTTP/1.1\r\nHost: test\r\n\r\n", "GET /stream HTTP/1.0\r\n\r\n"].each do |line|
      door = gate("gate")
      client = connect.write(line)
      client.head
      assert_equal "first\n", client.take(6)
      door.arrived
      busy = wait_until("a worker at the gate") { server.find("worker").find { |w| at_gate?(w) } }
      Process.kill("KILL", busy.pid)
      assert_raises(Errno::ECONNRESET) { client.rest }
      door.release
    end
  end

  # Has the gate open to read.
  def at_gate?(worker)
    Dir["/proc/#{worker.pid}/fd/*"].any? do |fd|
      File.readlink(fd).end_with?("/gate")
    rescue SystemCallError
      # It has just been closed.
      false
    end
  end
end
