# frozen_string_literal: true

require "digest"
require "helper_case"

# What the tests of uploads have in common.
module Uploads
  MEMORY = 256 * 1024

  def random(size) = Random.new(size).bytes(size)

  def digest(body) = "#{Digest::SHA256.hexdigest(body)} #{body.bytesize} #{body.bytesize}"

  # A body as chunks of so many bytes.
  def chunked(body, size)
    parts = (0...body.bytesize).step(size).map { |from| body.byteslice(from, size) }
    parts.map { |part| "#{part.bytesize.to_s(16)}\r\n".b << part << "\r\n" }.join << "0\r\n\r\n"
  end

  def post_chunked(client, path, body, size)
    head = Helper::Client.request("POST #{path}", "Transfer-Encoding: chunked")
    client.write(head, chunked(body, size))
    client.answer
  end

  # Files that the process has open and that are gone from their directory: spooled bodies.
  def spooled(entry)
    links(entry).count { |link| link.end_with?(" (deleted)") && !link.start_with?("/memfd:") }
  end

  def fds(entry) = links(entry).size

  def links(entry)
    Dir.children("/proc/#{entry.pid}/fd").filter_map do |fd|
      File.readlink("/proc/#{entry.pid}/fd/#{fd}")
    rescue Errno::ENOENT
      nil
    end
  end

  def front = server.one("front")

  def workers = server.find("worker")

  # The worker closes a file when its request is over, just after its answer.
  def assert_no_files(workers = self.workers)
    wait_until("no spooled body is open in #{[front, *workers].map { |e| links(e) }}") do
      [front, *workers].sum { |entry| spooled(entry) }.zero?
    end
  end

  def called = lines("called")
end

# Bodies of every size: whole, unchanged, and gone afterwards.
class UploadTest < Helper::Case
  include Uploads
  serve "upload.ru", "-w", "2"

  SIZES = [0, 1, 8191, 8192, 8193, 65_535, 65_536, 65_537, MEMORY - 1, MEMORY, MEMORY + 1,
           2 * MEMORY - 1, 2 * MEMORY, 2 * MEMORY + 1, 1 << 20, 5 << 20].freeze

  def test_bodies_of_every_size_with_a_length
    client = connect
    SIZES.each do |size|
      body = random(size)
      %w[/digest /pieces].each do |path|
        assert_equal digest(body), client.ask("POST #{path}", body: body).body
      end
    end
    assert_no_files
  end

  def test_bodies_of_every_size_in_chunks
    client = connect
    SIZES.product([7001, 1 << 20]).each do |size, part|
      body = random(size)
      assert_equal digest(body), post_chunked(client, "/digest", body, part).body
    end
    assert_no_files
  end

  def test_a_spooled_body_is_read_in_every_way
    client = connect
    body = "line\nand line\n#{random(MEMORY)}".b
    %w[/twice /each /pieces].each do |path|
      assert_equal digest(body), client.ask("POST #{path}", body: body).body, path
    end
    assert_equal "5 9 #{MEMORY}", client.ask("POST /gets", body: body).body
    assert_equal "File ASCII-8BIT true 0", client.ask("POST /kind", body: body).body
  end

  def test_trailers_of_a_spooled_body_are_dropped
    client = connect
    body = random(MEMORY + 1)
    client.write(Client.request("POST /digest", "Transfer-Encoding: chunked"),
                 chunked(body, 9999).delete_suffix("\r\n"), "Digest: x\r\n\r\n")
    assert_equal digest(body), client.answer.body
    assert_match(%r{ GET /behind\z}, client.get("/behind").body)
  end

  def test_no_fd_is_left_whatever_the_app_does_with_its_input
    body = random(MEMORY + 1)
    ask = lambda do |path|
      answer = connect.ask("POST #{path}", body: body)
      assert_equal path == "/raise" ? 500 : 200, answer.status, path
    end
    paths = %w[/ignore /keep /close /replace /raise /digest]
    paths.each(&ask)
    assert_no_files
    drop_clients
    before = workers.map { |worker| fds(worker) }
    paths.each(&ask)
    assert_no_files
    assert_equal before, workers.map { |worker| fds(worker) }
  end

  def drop_clients
    @clients.each(&:close)
    @clients.clear
  end

  def test_a_client_that_leaves_within_a_spooled_body_never_reaches_the_app
    client = connect
    client.write(Client.request("POST /left", "Content-Length: 10000000"), random(3 << 20))
    wait_until("the body is on disk") { spooled(front) == 1 }
    client.close
    @clients.clear
    assert_no_files
    refute_includes called, "POST /left"
  end

  def test_100_continue_comes_before_a_spooled_body
    client = connect
    body = random(MEMORY + 1)
    client.write(Client.request("POST /digest", "Expect: 100-Continue",
                                "Content-Length: #{body.bytesize}"))
    assert_equal 100, client.head.status
    assert_equal digest(body), client.write(body).answer.body
  end

  def test_what_else_is_expected_is_refused
    ["Expect: a-miracle", "Expect: 100-continue\r\nExpect: more"].each do |field|
      client = connect
      client.write(Client.request("POST /unexpected", field, body: "x"),
                   Client.request("GET /unexpected"))
      assert_equal [417, "close"], client.answer.then { |a| [a.status, a["connection"]] }
      assert client.ended?
    end
    refute(called.any? { |call| call.include?("unexpected") })
  end

  def test_bad_chunks_are_400
    ["x\r\nabc\r\n", "3\r\nabcd\r\n", "-1\r\n", "fffffffffffffffff\r\n"].each do |bytes|
      client = connect
      client.write(Client.request("POST /bad", "Transfer-Encoding: chunked"), bytes,
                   Client.request("GET /bad"))
      assert_equal [400, "close"], client.answer.then { |a| [a.status, a["connection"]] }, bytes
      assert client.ended?
    end
    refute(called.any? { |call| call.include?("bad") })
  end
end
