# frozen_string_literal: true

require "helper_case"

# Clients that are slow with everything: each is ended, and nobody else is held up.
class SlowClientsTest < Helper::Case
  EACH = 40

  def slow_heads = Array.new(EACH) { connect.write("GET /slow HTTP/1.1\r\nHost: a\r\nX:") }

  def slow_bodies
    Array.new(EACH) { connect.write(Client.request("POST /slow", "Content-Length: 9"), "x") }
  end

  def slow_readers
    Array.new(EACH) do
      socket = Socket.new(:INET, :STREAM)
      socket.setsockopt(:SOCKET, :RCVBUF, 4096)
      socket.connect(Socket.sockaddr_in(port, "127.0.0.1"))
      keep(Client.new(socket)).write(Client.request("GET /array/big"))
    end
  end

  def test_all_are_ended_and_others_are_served
    patience = %w[head body write].flat_map { |name| ["--#{name}-timeout", "1"] }
    start "reply.ru", "-w", "1", *patience
    heads = slow_heads
    bodies = slow_bodies
    slow_readers
    silent = connect
    other = connect
    wait_until("every reader is cut off") do
      # Each as soon as the one before, on a new connection and on a kept one.
      assert_equal 200, get("/pid").status
      assert_equal 200, other.get("/pid").status
      server.log.scan("takes nothing of its reply").size == EACH
    end
    (heads + bodies).each do |client|
      answer = client.answer
      assert_equal [408, "close"], [answer.status, answer["connection"]]
      assert client.ended?
    end
    assert silent.quiet?
    # Nothing of theirs is left: neither connections nor files.
    (@clients - [other, silent]).each(&:close)
    @clients = [other, silent]
    front = server.one("front").pid
    wait_until("only two connections are left") { peers(front) == 2 }
    assert_equal 200, silent.get("/pid").status
  end

  # A connection that rests has no buffers; it is served all the same, and closed when the server
  # ends.
  def test_connections_that_rest_are_served_again
    start "queue.ru", "-w", "1", "--first-byte-timeout", "1"
    silent = connect
    kept = Array.new(5) { connect.tap(&:get) }
    # Whatever has been idle for a whole second rests by then.
    assert silent.ended?
    kept.each { |client| assert_equal 200, client.get.status }
    two = kept.pop.write(Client.request("GET /a") + Client.request("GET /b"))
    assert_equal %w[/a? /b?], Array.new(2) { two.answer.body.split.last }
    half = kept.pop.write("GET /c HT")
    again = connect
    wait_until("this one has waited as long") { again.socket.wait_readable(0) }
    half.write("TP/1.1\r\nHost: a\r\n\r\n")
    assert_equal "/c?", half.answer.body.split.last
    server.signal("TERM")
    assert(kept.all?(&:ended?))
    assert_equal 0, server.wait
  end

  # Established connections of the server's.
  def peers(front)
    sockets = Dir.children("/proc/#{front}/fd").filter_map do |fd|
      File.readlink("/proc/#{front}/fd/#{fd}")[/\Asocket:\[(\d+)\]/, 1]
    rescue Errno::ENOENT
      nil
    end
    rows = File.readlines("/proc/net/tcp").map(&:split)
    rows.count { |row| row[3] == "01" && sockets.include?(row[9]) }
  end
end
