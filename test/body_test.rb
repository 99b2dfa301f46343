# frozen_string_literal: true

require "digest/sha2"
require "helper_case"

# Request bodies and long heads: whole and unchanged, or refused in words.
class BodyTest < Helper::Case
  serve "http.ru", "-w", "2", "--body-limit", "262144", "--uri-limit", "33k"

  # Longer bodies go to disk, see upload_test.rb; this server refuses them.
  LIMIT = 256 * 1024
  SIZES = [0, 1, 8191, 8192, 8193, 65_535, 65_536, 65_537, LIMIT - 1, LIMIT].freeze

  def digest(body) = "#{Digest::SHA256.hexdigest(body)} #{body.bytesize} \"#{body.bytesize}\""

  def random(size) = Random.new(size).bytes(size)

  # A body as chunks of so many bytes.
  def chunked(body, size)
    parts = (0...body.bytesize).step(size).map { |from| body.byteslice(from, size) }
    parts.map { |part| "#{part.bytesize.to_s(16)}\r\n#{part}\r\n" }.join << "0\r\n\r\n"
  end

  def post_chunked(client, bytes)
    client.write(Client.request("POST /digest", "Transfer-Encoding: chunked") + bytes)
    client.answer
  end

  def test_bodies_of_every_size_with_a_length
    client = connect
    SIZES.each do |size|
      body = random(size)
      assert_equal digest(body), client.ask("POST /digest", body: body).body
      assert_equal body, client.ask("POST /echo", body: body).body
    end
  end

  def test_bodies_of_every_size_in_chunks
    client = connect
    SIZES.product([1000, LIMIT]).each do |size, part|
      body = random(size)
      assert_equal digest(body), post_chunked(client, chunked(body, part)).body
    end
  end

  def test_chunk_extensions_and_trailers_are_no_part_of_the_body
    client = connect
    bytes = "3;name=value\r\nabc\r\n03\r\ndef\r\n0\r\nDigest: x\r\n\r\n"
    assert_equal digest("abcdef"), post_chunked(client, bytes).body
    assert_equal "GET /behind", client.get("/behind").body
  end

  def test_a_body_too_long_is_413
    client = connect
    answer = client.ask("POST /digest", body: "x" * (LIMIT + 1))
    assert_equal [413, "close", "text/plain"],
                 [answer.status, answer["connection"], answer["content-type"]]
    assert client.ended?
    assert_equal digest("x" * LIMIT), connect.ask("POST /digest", body: "x" * LIMIT).body
  end

  def test_chunks_too_long_are_413
    [1000, LIMIT + 1].each do |part|
      client = connect
      assert_equal 413, post_chunked(client, chunked("x" * (LIMIT + 1), part)).status
      assert client.ended?
    end
    assert_equal "GET /a", get("/a").body
  end

  # Far more than the kernel's buffers hold: who writes all before reading must not be cut off.
  def test_a_client_may_send_all_of_a_refused_body
    body = "x" * (16 << 20)
    client = connect
    assert_equal 413, client.ask("POST /digest", body: body).status
    assert client.ended?
    assert_equal 413, post_chunked(connect, chunked(body, 1 << 20)).status
  end

  def test_curl_gets_a_413
    file = File.join(server.directory, "upload")
    File.write(file, "x" * (LIMIT + 1))
    ["Expect:", "Expect: 100-continue", "Transfer-Encoding: chunked"].each do |field|
      output, status = curl("--include", "-H", field, "--data-binary", "@#{file}", url("/digest"))
      assert_equal 0, status, field
      # With `Expect` and chunks the body is wanted at first.
      assert_match(%r{\A(HTTP/1.1 100 Continue\r\n\r\n)?HTTP/1.1 413 }, output, field)
    end
  end

  def test_a_client_that_leaves_within_its_body_never_reaches_the_app
    client = connect
    client.write(Client.request("POST /digest", "Content-Length: 10"), "half")
    client.close
    client = connect
    client.write(Client.request("POST /digest", "Transfer-Encoding: chunked"), "4\r\nhalf\r\n")
    client.socket.close_write
    refute_includes client.rest, "200 OK"
    assert_equal "GET /a", get("/a").body
  end

  def test_malformed_chunks_end_the_connection
    client = connect
    client.write(Client.request("POST /digest", "Transfer-Encoding: chunked"), "x\r\nabc\r\n")
    refute_includes client.rest, "200 OK"
    assert_equal "GET /a", get("/a").body
  end

  def test_heads_up_to_32_kib
    client = connect
    [100, 4000, 8000, 8192, 16_384, 32_000].each do |size|
      long = "x" * size
      assert_equal Digest::SHA256.hexdigest(long), client.get("/long", "X-Long: #{long}").body
      assert_equal Digest::SHA256.hexdigest(long), client.get("/long?#{long}").body
    end
  end

  def test_a_long_head_with_a_long_body
    client = connect
    [1, 1000, 9000, LIMIT].product([9000, 32_000]).each do |size, head|
      body = random(size)
      answer = client.ask("POST /digest?#{'q' * head}", body: body)
      assert_equal digest(body), answer.body
    end
  end

  def test_many_headers
    fields = (1..90).map { |i| "X-#{i}: #{'v' * 200}" }
    assert_equal 200, get("/a", *fields).status
  end

  def test_a_head_too_long_is_431
    client = connect
    assert_equal 431, client.get("/long", "X-Long: #{'x' * 70_000}").status
    assert_equal "GET /a", get("/a").body
  end
end

# The same bytes in other packets. Over a unix socket, where one can see that the server has read a
# part before the next is sent.
class SplitTest < Helper::Case
  BODY = "body of a request"
  CHUNKS = "4\r\nbody\r\nD\r\n of a request\r\n0\r\n\r\n"

  def setup
    @directory = Dir.mktmpdir("oribi-http")
    path = File.join(@directory, "a.sock")
    start("http.ru", "-w", "2", bind: "unix://#{path}")
    @client = keep(Client.unix(path))
  end

  def teardown
    super
    FileUtils.remove_entry(@directory)
  end

  def requests
    [Client.request("POST /echo", body: BODY),
     Client.request("POST /echo", "Transfer-Encoding: chunked") + CHUNKS]
  end

  def test_two_parts_split_at_every_byte
    requests.each do |bytes|
      (1...bytes.bytesize).each do |at|
        @client.write(bytes.byteslice(0, at)).wait_until_taken
        @client.write(bytes.byteslice(at..))
        assert_equal [200, BODY], @client.answer.then { |a| [a.status, a.body] }, "split at #{at}"
      end
    end
    assert @client.quiet?
  end

  def test_every_byte_by_itself
    (requests + [Client.request("GET /a")]).each do |bytes|
      bytes.each_char { |byte| @client.write(byte).wait_until_taken }
      assert_equal 200, @client.answer.status
    end
    assert @client.quiet?
  end
end

# Many clients at once, for every number of front threads.
class FrontThreadsTest < Helper::Case
  CLIENTS = 12
  ROUNDS = 8

  # Each client's answers must be its own, with bodies in slots and in chunks, kept connections
  # and new ones.
  def converse(number)
    random = Random.new(number)
    client = Client.tcp(@port)
    ROUNDS.times do |round|
      body = random.bytes([10, 5000, 70_000, 200_000][round % 4])
      answer = client.ask("POST /echo", body: body)
      raise "client #{number}: another's answer" unless answer.body == body

      path = "/whole/#{number}/#{round}"
      raise "client #{number}: not #{path}" unless client.get(path).body == "GET #{path}"
      next unless round == ROUNDS / 2

      client.close
      client = Client.tcp(@port)
    end
    client.close
    :fine
  end

  [1, 2, 4].each do |count|
    define_method("test_#{count}_front_threads") do
      start("http.ru", "-w", "2", "--front-threads", count.to_s)
      @port = port
      front = server.one("front")
      assert_equal count, Dir.children("/proc/#{front.pid}/task").size
      talks = (1..CLIENTS).map { |number| Thread.new { converse(number) } }
      assert_equal [:fine], talks.map(&:value).uniq
      server.signal("TERM")
      assert_equal 0, server.wait
    end
  end
end
