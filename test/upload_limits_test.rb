# frozen_string_literal: true

require "helper_uploads"

# Too long, too slow, too many at once, and a disk that takes nothing.
class UploadLimitsTest < Helper::Case
  include Helper::Uploads

  LIMIT = 1 << 20

  def test_a_declared_length_beyond_the_limit_is_413_before_anything_is_read
    start("upload.ru", "-w", "1", "--body-limit", "1m")
    client = connect.write(Client.request("POST /long", "Content-Length: #{LIMIT + 1}"))
    assert_refused 413, client
    client = connect.write(Client.request("POST /long", "Content-Length: #{LIMIT + 1}",
                                          "Expect: 100-continue"))
    assert_refused 413, client
    body = random(LIMIT)
    assert_equal digest(body), connect.ask("POST /digest", body: body).body
    assert_empty called.grep(/long/)
  end

  def test_chunks_beyond_the_limit_are_413_and_what_follows_is_not_run
    start("upload.ru", "-w", "1", "--body-limit", "1m")
    [1000, LIMIT + 1].each do |part|
      client = connect
      client.write(Client.request("POST /long", "Transfer-Encoding: chunked"),
                   chunked(random(LIMIT + 1), part), Client.request("GET /long"))
      assert_refused 413, client
    end
    body = random(LIMIT)
    assert_equal digest(body), post_chunked(connect, "/digest", body, 10_000).body
    assert_empty called.grep(/long/)
    assert_no_files
  end

  def test_without_a_limit_anything_goes
    start("upload.ru", "-w", "1", "--body-limit", "0")
    body = random(LIMIT)
    assert_equal digest(body), connect.ask("POST /digest", body: body).body
    client = connect.write(Client.request("POST /long", "Content-Length: #{1 << 60}",
                                          "Expect: 100-continue"))
    assert_equal 100, client.head.status
  end

  def test_a_pause_within_a_body_is_408
    start("upload.ru", "-w", "1", "--body-timeout", "0.2")
    heads = [["Content-Length: 10000000"], ["Transfer-Encoding: chunked"]]
    starts = ["", "400000\r\n#{'x' * 100}", "400000\r\n#{random(LIMIT)}"]
    heads.product(starts).each do |fields, bytes|
      assert_refused 408, connect.write(Client.request("POST /slow", *fields), bytes)
    end
    assert_equal digest("x"), connect.ask("POST /digest", body: "x").body
    assert_empty called.grep(/slow/)
    assert_no_files
  end

  # One worker, and 100 clients that send a byte now and then.
  def test_slow_uploaders_hold_no_worker
    start("upload.ru", "-w", "1")
    slow = Array.new(100) do |i|
      length = i.even? ? 20 : 1 << 20
      connect.write(Client.request("POST /digest", "Content-Length: #{length}"), "x" * 10)
    end
    body = random(LIMIT)
    10.times do
      slow.each { |client| client.write("x") }
      assert_equal digest(body), connect.ask("POST /digest", body: body).body
    end
    done, others = slow.partition.with_index { |_, i| i.even? }
    assert_equal [digest("x" * 20)], done.map { |client| client.answer.body }.uniq
    assert(others.all?(&:quiet?))
    assert_equal 60, called.size
  end

  # More than the front may have in memory, though each by itself is a small one.
  def test_many_bodies_at_once_go_to_disk
    start("upload.ru", "-w", "1")
    bodies = Array.new(320) { |i| Random.new(i).bytes(MEMORY - i) }
    connect.get
    clients = bodies.map do |body|
      head = Client.request("POST /pieces", "Content-Length: #{body.bytesize}")
      connect.write(head, body.byteslice(0..-2))
    end
    wait_until("some are on disk, not #{spooled(front)}") { spooled(front) > 20 }
    clients.zip(bodies) { |client, body| client.write(body.byteslice(-1)) }
    clients.zip(bodies) { |client, body| assert_equal digest(body), client.answer.body }
    assert_no_files
  end

  # A queue of more bodies than shared memory holds.
  def test_bodies_that_wait_go_to_disk_when_shared_memory_is_used_up
    start("upload.ru", "-w", "1")
    door = gate("gate")
    held = ask_for("/gate")
    door.arrived
    body = random(MEMORY)
    clients = Array.new(270) { connect.write(Client.request("POST /pieces", body: body)) }
    wait_until("some are on disk") { spooled(front) >= 14 }
    door.open
    assert_equal "opened", held.answer.body
    assert_equal [digest(body)], clients.map { |client| client.answer.body }.uniq
    assert_no_files
  end

  # What a full disk is to the front, and can be had everywhere: its files may not grow further.
  def limit_files(bytes)
    assert system("prlimit", "--pid", front.pid.to_s, "--fsize=#{bytes}:unlimited")
  end

  def test_a_full_disk_is_a_500_for_those_who_need_it
    start("upload.ru", "-w", "1")
    limit_files(1 << 20)
    same = front
    body = random(3 << 20)
    3.times do
      client = connect.write(Client.request("POST /full", body: body), Client.request("GET /full"))
      assert_refused 500, client
      client = connect.write(Client.request("POST /full", "Transfer-Encoding: chunked"))
      assert_refused 500, client.write(chunked(body, 99_999))
      small = random(LIMIT)
      assert_equal digest(small), connect.ask("POST /digest", body: small).body
      assert_equal 200, get.status
    end
    lines = server.log.scan(/^.*a request body was refused.*$/)
    assert_match(/spool_dir \S+: File too large .*: raise the limit on file sizes/, lines.first)
    # Not one for each: a second has thousands of them.
    assert_operator lines.size, :<, 6
    limit_files("unlimited")
    assert_equal digest(body), connect.ask("POST /digest", body: body).body
    assert_empty called.grep(/full/)
    assert same.same?(front)
    assert_no_files
  end

  def test_a_spool_dir_that_is_not_there
    directory = Dir.mktmpdir("oribi-spool")
    start("upload.ru", "-w", "1", "--spool-dir", directory)
    body = random(LIMIT)
    assert_equal digest(body), connect.ask("POST /digest", body: body).body
    Dir.rmdir(directory)
    assert_refused 500, connect.write(Client.request("POST /none", body: body))
    wait_for_log(/refused: spool_dir #{directory}: No such file.*: create it, or let spool_dir/)
    assert_equal 200, get.status
    Process.kill("KILL", front.pid)
    wait_for_log(/will be refused: spool_dir #{directory}: No such file.*: create it/)
  ensure
    FileUtils.rm_rf(directory)
  end

  def test_a_spool_dir_in_memory_is_warned_of
    start("upload.ru", "-w", "1", "--spool-dir", "/dev/shm")
    wait_for_log(%r{spool_dir /dev/shm is memory \(tmpfs\)})
    body = random(LIMIT)
    assert_equal digest(body), connect.ask("POST /digest", body: body).body
  end
end

# What a large upload costs in memory, front and workers and what they share together.
class UploadMemoryTest < Helper::Case
  include Helper::Uploads

  SIZE = 64 << 20
  GROWTH = 24 << 20

  def memory
    (@processes ||= [front, *workers]).sum do |entry|
      File.read("/proc/#{entry.pid}/smaps_rollup")[/^Pss:\s+(\d+) kB/, 1].to_i * 1024
    end
  end

  def upload(chunk = nil)
    piece = random(1 << 20)
    fields = chunk ? "Transfer-Encoding: chunked" : "Content-Length: #{SIZE}"
    client = connect.write(Client.request("POST /pieces", fields))
    whole = Digest::SHA256.new
    most = 0
    (SIZE >> 20).times do |i|
      whole << piece
      client.write(chunk ? chunked(piece, chunk).delete_suffix("0\r\n\r\n") : piece)
      most = [most, memory].max if (i % 4).zero?
    end
    client.write("0\r\n\r\n") if chunk
    most = [most, memory].max while client.quiet?
    assert_equal "#{whole.hexdigest} #{SIZE} #{SIZE}", client.answer.body
    most
  end

  def test_a_large_upload_needs_little_memory
    start("upload.ru", "-w", "1")
    connect.ask("POST /pieces", body: random(2 * MEMORY))
    before = memory
    [upload, upload(50_000)].each do |most|
      assert_operator most - before, :<, GROWTH
    end
    assert_no_files
  end
end
