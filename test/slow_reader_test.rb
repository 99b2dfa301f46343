# frozen_string_literal: true

require "helper_case"

# Clients that do not take what they have asked for.
class SlowReaderTest < Helper::Case
  PIECE = 65_536
  # More than sockets, window and memory hold together.
  PIECES = 160

  def front = @front ||= server.one("front")

  # Files without a name that the front has open: what was put on disk.
  def spooled
    Dir.children("/proc/#{front.pid}/fd").count do |fd|
      name = File.readlink("/proc/#{front.pid}/fd/#{fd}")
      name.end_with?(" (deleted)") && !name.include?("memfd:")
    rescue Errno::ENOENT
      false
    end
  end

  # Bytes of memory that the front has for itself or shares.
  def memory = File.read("/proc/#{front.pid}/smaps_rollup")[/^Pss:\s*(\d+)/, 1].to_i * 1024

  # A client that asks and reads the head alone.
  def slow(path)
    socket = Socket.new(:INET, :STREAM)
    # Or the kernel takes megabytes on its own.
    socket.setsockopt(:SOCKET, :RCVBUF, 16 * 1024)
    socket.connect(Socket.sockaddr_in(port, "127.0.0.1"))
    client = keep(Helper::Client.new(socket)).write(Helper::Client.request("GET #{path}"))
    [client, client.head]
  end

  def assert_all(pieces, client, head)
    wrong = (0...pieces).find do |index|
      part = head["content-length"] ? client.take(PIECE) : dechunk(client)
      part != format("%016d", index) * 4096
    end
    assert_nil wrong, "this piece is not as it was made"
  end

  def dechunk(client)
    @rest ||= {}.compare_by_identity
    rest = (@rest[client] ||= +"".b)
    rest << (client.chunk || raise(EOFError)) while rest.bytesize < PIECE
    rest.slice!(0, PIECE)
  end

  def test_slow_readers_hold_no_worker
    start "large.ru", "-w", "1"
    readers = %w[array stream length].cycle.first(9).map { |kind| slow("/#{kind}/#{PIECES}") }
    pid = server.workers(1).first.pid.to_s
    assert_equal pid, get("/pid").body
    wait_for_lines("closed", 6)
    assert_operator spooled, :>=, 9
    readers.each { |client, head| assert_all(PIECES, client, head) }
    readers.each { |client, head| assert_nil client.chunk unless head["content-length"] }
    wait_until("what was on disk is given back") { spooled.zero? }
    # All of them go on with the same connection.
    readers.each { |client,| assert_equal pid, client.get("/pid").body }
  end

  def test_readers_that_leave_leave_nothing
    start "large.ru", "-w", "1"
    client = connect
    client.get("/pid")
    before = Dir.children("/proc/#{front.pid}/fd").size
    readers = %w[array stream length].cycle.first(6).map { |kind| slow("/#{kind}/#{PIECES}").first }
    client.get("/pid")
    assert_operator spooled, :>=, 6
    readers.each_with_index { |reader, index| index.even? ? reader.close : reader.reset }
    wait_until("descriptors as before") do
      Dir.children("/proc/#{front.pid}/fd").size <= before
    end
  end

  def test_a_reader_that_leaves_while_the_worker_writes_ends_the_stream
    start "large.ru", "-w", "1"
    client, = slow("/stream/1000000")
    wait_until("it goes to disk") { spooled.positive? }
    client.close
    @clients.delete(client)
    wait_for_lines("closed", 1)
    wait_until("what was on disk is given back") { spooled.zero? }
    assert_match(/\A\d+\z/, get("/pid").body)
  end

  def test_without_a_spool_the_worker_waits_and_the_others_go_on
    start "large.ru", "-w", "2", "--reply-spool", "0"
    client, head = slow("/stream/#{2 * PIECES}")
    held = wait_until("a worker waits for room") do
      server.workers(2).find do |worker|
        # Both sleep on a futex; the one that lies at the queue answers the rest.
        get("/pid").body != worker.pid.to_s
      end
    end
    10.times { refute_equal held.pid.to_s, get("/pid").body }
    assert_empty lines("made")
    assert_predicate spooled, :zero?
    assert_all(2 * PIECES, client, head)
    assert_nil client.chunk
    wait_for_lines("closed", 1)
  end

  def test_a_full_spool_makes_the_worker_wait
    start "large.ru", "-w", "1", "--reply-spool", "4m"
    client, head = slow("/stream/#{4 * PIECES}")
    wait_until("it goes to disk") { spooled.positive? }
    assert_empty lines("made")
    assert_all(4 * PIECES, client, head)
    assert_nil client.chunk
    wait_for_lines("closed", 1)
  end

  # Those that fit wait in their windows, as many as 64 MB hold, and the others elsewhere.
  def test_finished_replies_wait_for_their_clients
    start "large.ru", "-w", "1"
    readers = Array.new(60) { slow("/array/30") }
    pid = get("/pid").body
    leaving, staying = readers.each_slice(2).to_a.transpose
    leaving.each { |client,| client.reset }
    staying.each do |client, head|
      assert_all(30, client, head)
      assert_nil client.chunk unless head["content-length"]
    end
    staying.each { |client,| assert_equal pid, client.get("/pid").body }
    wait_until("what was on disk is given back") { spooled.zero? }
  end

  def test_a_spool_that_cannot_be_written_loses_nothing
    start "large.ru", "-w", "1", "--spool-dir", "/proc/self"
    client, head = slow("/stream/#{PIECES}")
    wait_for_log(%r{a reply waits for its client, and its worker with it: spool_dir /proc/self})
    assert_all(PIECES, client, head)
    assert_nil client.chunk
    assert_equal 1, server.log.scan("a reply waits for its client").size
  end

  def test_a_long_download_takes_little_memory
    start "large.ru", "-w", "1"
    get("/pid")
    before = memory
    client, head = slow("/stream/1536")
    # The worker is through, and most of 96 MiB is on disk.
    wait_for_lines("closed", 1)
    most = memory
    assert_all(512, client, head)
    most = [most, memory].max
    assert_operator most - before, :<, 16 << 20
  end
end
