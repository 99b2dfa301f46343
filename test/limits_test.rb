# frozen_string_literal: true

require "helper_case"

# What a client may take, in bytes, in time and in connections, and what it is told beyond that.
class LimitsTest < Helper::Case
  # Short, but of no consequence for clients that do what they should at once.
  SHORT = "0.2"

  # The refusal, and then the end; nothing that the client has sent behind it is answered.
  def assert_refused(status, client)
    answer = client.answer
    assert_equal [status, "close"], [answer.status, answer["connection"]]
    refute_empty answer.body
    assert client.ended?
  end

  def target(length) = "/#{'a' * (length - 1)}"

  def fields(count) = Array.new(count) { |i| "x-#{i}: y" }

  # A whole head of so many bytes.
  def head(bytes)
    start = "GET / HTTP/1.1\r\nHost: a\r\nX: "
    "#{start}#{'x' * (bytes - start.bytesize - 4)}\r\n\r\n"
  end

  def test_lengths_of_heads_by_default
    start "queue.ru", "-w", "1"
    assert_equal 200, get(target(16_384)).status
    assert_refused 414, ask_for(target(16_385))
    assert_refused 414, ask_for(target(100_000))
    assert_equal 200, connect.write(head(32_768)).answer.status
    assert_refused 431, connect.write(head(32_769))
    assert_refused 431, connect.write(head(200_000))
    assert_equal 200, get("/", *fields(99)).status
    assert_refused 431, ask_for("/", *fields(100))
    # All in one write, and the second is not run.
    two = Client.request("GET #{target(16_385)}") + Client.request("GET /second")
    assert_refused 414, connect.write(two)
    refute_includes lines("called").join, "second"
  end

  def test_lengths_of_heads_as_set
    start "queue.ru", "-w", "1", "--uri-limit", "100", "--head-limit", "1k", "--header-count", "200"
    assert_equal 200, get(target(100)).status
    assert_refused 414, ask_for(target(101))
    assert_refused 414, ask_for(target(2000))
    assert_equal 200, get("/", *Array.new(150) { |i| "#{i}:" }).status
    assert_refused 431, connect.write(head(1025))
    assert_refused 431, ask_for("/", *fields(200))
  end

  def test_few_fields
    start "queue.ru", "-w", "1", "--header-count", "3"
    assert_equal 200, get("/", "a: b", "c: d").status
    assert_refused 431, ask_for("/", "a: b", "c: d", "e: f")
  end

  # A byte of a head from time to time: each moves something, the whole comes never.
  def drip(client)
    client.write("GET / HTTP/1.1\r\n")
    wait_until("the server has had enough of it") do
      client.write("x")
      client.socket.wait_readable(0.01)
    rescue Errno::EPIPE, Errno::ECONNRESET
      true
    end
  end

  def test_heads_that_do_not_come
    start "queue.ru", "-w", "1", "--head-timeout", SHORT
    begun = connect.write("GET / HTTP/1.1\r\nHost:")
    kept = connect
    assert_equal 200, kept.get.status
    kept.write("G")
    dripping = connect
    drip(dripping)
    [begun, kept].each { |client| assert_refused 408, client }
    assert_equal 408, dripping.head.status
    # Silence is no slow head.
    silent = connect
    assert_refused 408, connect.write("GET")
    assert_equal 200, silent.get.status
  end

  def test_connections_that_say_nothing
    start "queue.ru", "-w", "1", "--first-byte-timeout", SHORT
    silent = connect
    kept = connect
    assert_equal 200, kept.get.status
    assert silent.ended?
    # A line end is no request.
    assert connect.write("\r\n").ended?
    assert_equal 200, kept.get.status
  end

  def test_connections_that_are_not_used_again
    start "queue.ru", "-w", "1", "--keep-alive-timeout", SHORT
    new = connect
    client = connect
    # Longer than any pause between two looks, and no pause at all for this client.
    20.times { assert_equal 200, client.get.status }
    assert client.ended?
    assert connect.tap(&:get).write("\r\n").ended?
    assert_equal 200, new.get.status
  end

  def test_a_running_request_is_not_hurried
    short = %w[first-byte head keep-alive write body].flat_map { |n| ["--#{n}-timeout", SHORT] }
    start "queue.ru", "-w", "1", *short
    door = gate("gate")
    client = ask_for("/gate")
    door.arrived
    # Everything is due on this one before the other is let go.
    assert connect.ended?
    assert_refused 408, connect.write("GET")
    assert client.quiet?
    door.open
    assert_equal 200, client.answer.status
  end

  def small_reader
    socket = Socket.new(:INET, :STREAM)
    socket.setsockopt(:SOCKET, :RCVBUF, 4096)
    socket.connect(Socket.sockaddr_in(port, "127.0.0.1"))
    keep(Client.new(socket))
  end

  def test_a_client_that_takes_nothing_is_cut_off
    start "reply.ru", "-w", "1", "--write-timeout", SHORT
    stuck = small_reader.write(Client.request("GET /array/big"))
    endless = small_reader.write(Client.request("GET /stream/endless"))
    match = wait_for_log(/the client 127.0.0.1:(\d+) takes nothing of its reply/)
    refute_nil match
    wait_until("both are cut off") { server.log.scan("takes nothing of its reply").size == 2 }
    ports = server.log.scan(/the client \S+:(\d+) takes nothing/).flatten.map(&:to_i)
    assert_equal [stuck, endless].map { |c| c.socket.local_address.ip_port }.sort, ports.sort
    assert_raises(EOFError, Errno::ECONNRESET) { stuck.tap(&:head).take(5_000_000) }
    wait_for_lines("ended", 1)
    assert_equal 200, get("/pid").status
  end

  # It takes little, and so rarely that the server can write nothing for longer than the timeout.
  def test_a_client_that_takes_little_is_not_cut_off
    start "reply.ru", "-w", "1", "--write-timeout", "0.5"
    slow = small_reader.write(Client.request("GET /array/big"))
    idle = small_reader.write(Client.request("GET /array/big"))
    slow.head
    wait_until("the one that takes nothing is cut off") do
      slow.take(2000)
      server.log.include?("takes nothing")
    end
    assert_match(/:#{idle.socket.local_address.ip_port} takes nothing/, server.log)
    assert_equal 1, server.log.scan("takes nothing").size
  end

  def test_so_many_connections_of_a_listener
    path = File.join(Dir.mktmpdir, "socket")
    start "queue.ru", "-w", "1", "--connections", "3", "-b", "unix://#{path}"
    held = Array.new(3) { connect.tap(&:get) }
    assert_refused 503, ask_for("/fourth")
    assert_equal "1", connect.answer["retry-after"]
    # Another listener has its own.
    local = Array.new(3) { keep(Client.unix(path)).tap(&:get) }
    assert_refused 503, keep(Client.unix(path))
    held.pop.close
    wait_until("there is room again") { connect.get.status == 200 }
    [*held, *local].each { |client| assert_equal 200, client.get.status }
    refute_includes lines("called").join, "fourth"
  ensure
    FileUtils.remove_entry(File.dirname(path))
  end

  def connect_from(address)
    socket = TCPSocket.new("127.0.0.1", port, address)
    keep(Client.new(socket))
  end

  def test_so_many_connections_of_a_client
    start "queue.ru", "-w", "1", "--connections-per-peer", "2"
    held = Array.new(2) { connect_from("127.0.0.2").tap(&:get) }
    assert_refused 429, connect_from("127.0.0.2").write(Client.request("GET /third"))
    others = Array.new(2) { connect_from("127.0.0.3") }
    held.shift.close
    wait_until("there is room again") { connect_from("127.0.0.2").get.status == 200 }
    [*held, *others].each { |client| assert_equal 200, client.get.status }
    refute_includes lines("called").join, "third"
  end

  def test_proxies_have_as_many_as_they_need
    start "queue.ru", "-w", "1", "--connections-per-peer", "1", "--trusted-proxies", "127.0.0.1"
    3.times { assert_equal 200, connect.get.status }
    assert_equal 200, connect_from("127.0.0.2").get.status
    assert_refused 429, connect_from("127.0.0.2")
  end

  def test_as_many_descriptors_as_there_may_be
    soft, hard = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, 256, hard)
    start "queue.ru", "-w", "1"
    limits = File.read("/proc/#{server.one('front').pid}/limits")
    assert_equal hard, Integer(limits[/^Max open files\s+(\d+)/, 1], 10)
  ensure
    Process.setrlimit(:NOFILE, soft, hard)
  end

  def test_out_of_descriptors
    hard = Process.getrlimit(:NOFILE).last
    start "queue.ru", "-w", "1"
    front = server.one("front").pid
    used = Dir.children("/proc/#{front}/fd").map { |fd| Integer(fd, 10) }
    # Room for two.
    limit = (0..).lazy.reject { |fd| used.include?(fd) }.first(2).last + 1
    assert system("prlimit", "--pid", front.to_s, "--nofile=#{limit}:#{hard}")
    held = Array.new(2) { connect.tap(&:get) }
    waiting = ask_for("/waits")
    wait_for_log(/accept failed, trying again: .*files/)
    assert waiting.quiet?
    # It is tried fifty times a second, and said once.
    assert_operator server.log.scan("accept failed").size, :<, 5
    held.pop.close
    assert_equal 200, waiting.answer.status
  end
end
