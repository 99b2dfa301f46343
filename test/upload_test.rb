# frozen_string_literal: true

require "helper_uploads"

# Bodies of every size: whole, unchanged, and gone afterwards.
class UploadTest < Helper::Case
  include Helper::Uploads
  serve "upload.ru", "-w", "2"

  SIZES = [0, 1, 8191, 8192, 8193, 65_535, 65_536, 65_537, MEMORY - 1, MEMORY, MEMORY + 1,
           (2 * MEMORY) - 1, 2 * MEMORY, (2 * MEMORY) + 1, 1 << 20, 5 << 20].freeze

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
    assert_equal(before, workers.map { |worker| fds(worker) })
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
      assert_refused 417, client
    end
    refute(called.any? { |call| call.include?("unexpected") })
  end

  def test_bad_chunks_are_400
    ["x\r\nabc\r\n", "3\r\nabcd\r\n", "-1\r\n", "fffffffffffffffff\r\n"].each do |bytes|
      client = connect
      client.write(Client.request("POST /bad", "Transfer-Encoding: chunked"), bytes,
                   Client.request("GET /bad"))
      assert_refused 400, client
    end
    refute(called.any? { |call| call.include?("bad") })
  end
end

# Many uploads at once, for threads of workers and of the front.
class UploadThreadsTest < Helper::Case
  include Helper::Uploads

  def converse(number)
    random = Random.new(number)
    client = Helper::Client.tcp(@port)
    8.times do |round|
      body = random.bytes([10, MEMORY, MEMORY + 1, 1 << 20][(number + round) % 4])
      raise "not its own" unless client.ask("POST /pieces", body: body).body == digest(body)
    end
    client.close
    :fine
  end

  def test_many_uploads_at_once
    start("upload.ru", "-w", "2", "-t", "3", "--front-threads", "2")
    @port = port
    talks = (1..12).map { |number| Thread.new { converse(number) } }
    assert_equal [:fine], talks.map(&:value).uniq
    assert_no_files
    server.signal("TERM")
    assert_equal 0, server.wait
  end

  # What is on its way when the server is told to go still comes whole.
  def test_an_upload_under_way_is_finished_by_a_server_that_ends
    start("upload.ru", "-w", "1")
    body = random(4 * MEMORY)
    head = Client.request("POST /digest", "Content-Length: #{body.bytesize}")
    client = connect.write(head, body.byteslice(0, 3 * MEMORY))
    wait_until("a part is on disk") { on_disk(front).positive? }
    server.signal("TERM")
    wait_until("nobody is let in any more") { refused? }
    client.write(body.byteslice((3 * MEMORY)..))
    assert_equal digest(body), client.answer.body
    assert client.ended?
    assert_equal 0, server.wait
  end

  def refused?
    Helper::Client.tcp(port).close
    false
  rescue Errno::ECONNREFUSED, Errno::ECONNRESET
    true
  end
end
