# frozen_string_literal: true

require "helper_case"

# Clients that close their sending side: some still want their answer, some have left.
class HalfCloseTest < Helper::Case
  def ask_and_close(path) = ask_for(path).tap { |client| client.socket.close_write }

  # What was asked of the app.
  def paths = lines("called").map { |line| line.split[1] }

  def test_the_answer_still_comes
    start "queue.ru", "-w", "1"
    client = ask_and_close("/one")
    assert_equal 200, client.answer.status
    assert client.ended?
    client = connect.write(Client.request("POST /body", body: "x" * 300_000))
    client.socket.close_write
    assert_equal 200, client.answer.status
    client = connect.write(Client.request("GET /a") + Client.request("GET /b"))
    client.socket.close_write
    assert_equal %w[/a? /b?], Array.new(2) { client.answer.body.split.last }
    assert client.ended?
  end

  def test_what_has_begun_is_waited_for
    start "queue.ru", "-w", "1", "--half-close-timeout", "0.1"
    door = gate("gate")
    client = ask_and_close("/gate")
    door.arrived
    queued = ask_and_close("/queued")
    # When the one that waits in the queue is given up, so would be the other.
    assert queued.ended?
    assert client.quiet?
    door.open
    assert_equal 200, client.answer.status
    assert_equal 200, get("/last").status
    assert_equal ["/gate?", "/last?"], paths
  end

  def test_the_end_of_a_large_reply_is_waited_for
    start "reply.ru", "-w", "1", "--half-close-timeout", "0.1"
    client = ask_and_close("/stream/big")
    assert_equal 5_000_000, client.answer.body.bytesize
  end

  def test_a_stream_that_stands_still_is_given_up
    start "reply.ru", "-w", "1", "--half-close-timeout", "0.1"
    door = gate("gate")
    client = ask_and_close("/stream")
    assert_equal "first\n", client.tap(&:head).chunk
    door.arrived
    assert client.ended?
    door.open
    wait_for_lines("closed", 1)
    assert_equal 200, get("/pid").status
  end

  def test_a_stream_that_goes_on_is_not
    start "reply.ru", "-w", "1", "--half-close-timeout", "0.5"
    client = ask_and_close("/stream/endless")
    client.head
    5000.times { refute_nil client.chunk }
    client.close
    @clients.delete(client)
    wait_for_lines("ended", 1)
  end

  def test_a_reset_is_no_half_close
    start "queue.ru", "-w", "1", "--half-close-timeout", "600"
    door = gate("gate")
    held = ask_for("/gate")
    door.arrived
    before = sockets
    left = ask_and_close("/left")
    reset = ask_for("/reset")
    wait_until("both are there") { sockets == before + 2 }
    [left, reset].each do |client|
      client.reset
      @clients.delete(client)
    end
    wait_until("both are gone") { sockets == before }
    door.open
    assert_equal 200, held.answer.status
    assert_equal 200, get("/last").status
    assert_equal ["/gate?", "/last?"], paths
  end

  # Sockets that the front has open.
  def sockets
    Dir.children("/proc/#{server.one('front').pid}/fd").count do |fd|
      File.readlink("/proc/#{server.one('front').pid}/fd/#{fd}").start_with?("socket:")
    rescue Errno::ENOENT
      nil
    end
  end

  def test_at_once_if_so_set
    start "queue.ru", "-w", "1", "--half-close-timeout", "0"
    door = gate("gate")
    held = ask_for("/gate")
    door.arrived
    left = ask_and_close("/left")
    assert left.ended?
    door.open
    assert_equal 200, held.answer.status
    assert_equal ["/gate?"], paths
  end

  def test_an_end_within_a_request_is_the_end
    start "queue.ru", "-w", "1", "--half-close-timeout", "600"
    head = connect.write("GET / HT")
    body = connect.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfour")
    idle = connect.tap(&:get)
    [head, body, idle, connect].each do |client|
      client.socket.close_write
      assert client.ended?
    end
    assert_equal 1, lines("called").size
  end
end
