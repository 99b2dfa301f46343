# frozen_string_literal: true

require "helper_shim"

# The CGI shim against a FastCGI server of the test's, which does what it likes.
class ShimTest < Minitest::Test
  include Helper

  HELLO = "Content-Type: text/plain\r\n\r\n"
  SIZES = [0, 1, 4095, 65_535, 65_536, 1_000_000, 8 * 1024 * 1024].freeze

  def setup = @app = CgiDirectory.new

  def teardown = @app.remove

  def test_the_environment_arrives_whole
    seen = nil
    long = "x" * 100_000
    @app.listen do |peer|
      seen = peer.params
      peer.page("hello")
    end
    out, err, status = @app.hit(QUERY_STRING: "a=b", HTTP_COOKIE: long, EMPTY: "")
    assert_equal ["#{HELLO}hello", "", 0], [out, err, status]
    expected = { "QUERY_STRING" => "a=b", "HTTP_COOKIE" => long, "EMPTY" => "", "PATH_INFO" => "",
                 "SCRIPT_NAME" => "/app/index.cgi" }
    assert_equal expected, seen.slice(*expected.keys)
    refute_includes seen, "CONTENT_LENGTH"
  end

  def test_bodies_and_answers_of_any_size
    @app.listen { |peer| peer.out("#{HELLO}#{peer.body}") && peer.finish }
    SIZES.each do |size|
      body = Random.bytes(size)
      out, err, status = @app.hit(body: body)
      assert_equal ["", 0], [err, status]
      assert_equal HELLO.b + body, out, "#{size} bytes"
    end
  end

  # The server writes as much as it has read before it reads on; the web server reads nothing before
  # it has written all.
  def test_an_echo_to_a_web_server_that_only_writes
    @app.listen do |peer|
      peer.params
      peer.out(HELLO)
      until (piece = peer.piece).empty?
        peer.out(piece)
      end
      peer.finish
    end
    body = Random.bytes(SIZES.last)
    streaming(CONTENT_LENGTH: body.bytesize.to_s, REQUEST_METHOD: "POST") do |input, out, _, thread|
      write_in_time(input, body)
      assert_equal HELLO.b + body, out.read
      assert_equal 0, thread.value.exitstatus
    end
  end

  def test_a_server_that_answers_before_the_body
    @app.listen { |peer| peer.params && peer.page("enough") }
    length = (64 * 1024 * 1024).to_s
    streaming(CONTENT_LENGTH: length, REQUEST_METHOD: "POST") do |_, out, _, thread|
      assert_equal "#{HELLO}enough", out.read
      assert_equal 0, thread.value.exitstatus
    end
  end

  def test_nothing_behind_the_body_is_waited_for
    @app.listen { |peer| peer.page(peer.body) }
    streaming(CONTENT_LENGTH: "3", REQUEST_METHOD: "POST") do |input, out, _, _|
      input.write("abcdef")
      assert_equal "#{HELLO}abc", out.read
    end
  end

  def test_an_upload_in_chunks_has_no_length
    @app.listen { |peer| peer.page(peer.body) }
    out, = @app.hit(body: "all of it", CONTENT_LENGTH: nil, HTTP_TRANSFER_ENCODING: "chunked")
    assert_equal "#{HELLO}all of it", out
  end

  def test_a_body_that_is_cut_is_nobodys
    gone = Queue.new
    @app.listen do |peer|
      gone << begin
        peer.body
      rescue EOFError
        :gone
      end
    end
    out, err, status = @app.hit(body: "abc", CONTENT_LENGTH: "10")
    assert_match(/\AStatus: 400 /, out)
    assert_match(/\Aoribi: index.cgi: .*shorter than its CONTENT_LENGTH: .* after 3 bytes\n\z/, err)
    assert_equal [1, :gone], [status, gone.pop]
  end

  def test_a_body_that_is_cut_under_an_answer
    @app.listen { |peer| peer.params && peer.out("#{HELLO}so far") && peer.body }
    streaming(CONTENT_LENGTH: "10", REQUEST_METHOD: "POST") do |input, out, errors, thread|
      page = out.readpartial(100)
      input.close
      assert_equal "#{HELLO}so far", page + out.read
      assert_match(/shorter than its CONTENT_LENGTH/, errors.read)
      assert_equal 1, thread.value.exitstatus
    end
  end

  def test_a_slow_reader_gets_all
    data = Random.bytes(SIZES.last)
    @app.listen { |peer| peer.body && peer.out(HELLO + data) && peer.finish(3) }
    streaming do |_, out, _, thread|
      got = +"".b
      got << out.readpartial(100_000) << out.readpartial(1) until got.bytesize > 1_000_000
      got << out.read
      assert_equal HELLO.b + data, got
      assert_equal 3, thread.value.exitstatus
    end
  end

  def test_what_comes_is_passed_on_at_once
    gate = Queue.new
    @app.listen do |peer|
      peer.out("#{HELLO}first")
      gate.pop
      peer.page("second")
    end
    streaming do |_, out, _, _|
      assert_equal "#{HELLO}first", out.readpartial(100)
      gate << true
      assert_match(/second\z/, out.read)
    end
  end

  def test_stderr_and_exit_status
    @app.listen do |peer|
      peer.errors("careful\n" * 10_000)
      peer.out("Status: 404 Not Found\r\n\r\n")
      peer.finish(17)
    end
    assert_equal ["Status: 404 Not Found\r\n\r\n", "careful\n" * 10_000, 17], @app.hit
  end

  def test_a_status_too_large_for_an_exit_status
    @app.listen { |peer| peer.finish(256) }
    assert_equal 255, @app.hit.last
  end

  def test_an_overloaded_server
    @app.listen { |peer| peer.finish(0, 2) }
    out, err, status = @app.hit
    assert_match(/\AStatus: 503 .*\r\nRetry-After: 1\r\n/m, out)
    assert_match(/\Aoribi: index.cgi: too many requests/, err)
    assert_equal 1, status
  end

  def test_an_overloaded_server_that_has_said_so_itself
    page = "Status: 503 Service Unavailable\r\nContent-Type: text/plain\r\n\r\nlater\n"
    @app.listen { |peer| peer.out(page) && peer.finish(0, 2) }
    assert_equal [page, "", 0], @app.hit
  end

  def test_a_server_that_dies_with_the_request
    @app.listen(&:body)
    out, err, status = @app.hit
    assert_match(/\AStatus: 500 .*\r\n\r\nthe application's server died .*\n\z/m, out)
    assert_match(/\Aoribi: index.cgi: the application's server died while.*\n\z/, err)
    assert_equal 1, status
  end

  def test_a_server_that_dies_in_its_answer
    @app.listen { |peer| peer.body && peer.out("#{HELLO}half") }
    out, err, status = @app.hit
    assert_equal ["#{HELLO}half", 1], [out, status]
    assert_match(/\Aoribi: index.cgi: the application's server died in the middle/, err)
  end

  # The first one does not even look at it.
  def test_a_request_that_was_not_heard_is_sent_again
    count = 0
    listener = @app.listen do |peer|
      (count += 1) == 1 ? peer.close : peer.page("the second")
    end
    assert_equal ["#{HELLO}the second", "", 0], @app.hit
    count = 0
    out, = @app.hit(REQUEST_METHOD: "DELETE")
    assert_match(/\AStatus: 500/, out)
    refute_predicate listener, :closed?
  end

  def test_something_else_that_listens
    @app.listen { |peer| peer.body && peer.write("HTTP/1.1 400 Bad Request\r\n\r\n") }
    out, err, = @app.hit
    assert_match(/\AStatus: 500/, out)
    assert_match(/does not speak FastCGI/, err)
  end

  # The web server has closed its end: nobody wants the rest.
  def test_a_client_that_goes_is_told_to_the_server
    told = Queue.new
    @app.listen do |peer|
      peer.body
      peer.out("#{HELLO}first")
      told << peer.record.kind
      told << peer.ended?
    end
    streaming do |_, out, _, thread|
      out.readpartial(100)
      out.close
      assert_equal [Peer::ABORT_REQUEST, true], [told.pop, told.pop]
      thread.join
    end
  end

  # Some web servers close as soon as they have the whole page.
  def test_the_log_gets_what_comes_behind_the_page
    closed = Queue.new
    @app.listen do |peer|
      peer.out("#{HELLO}page")
      closed.pop
      peer.errors("a last word")
      peer.finish(4)
    end
    streaming do |_, out, errors, thread|
      out.readpartial(100)
      out.close
      closed << true
      assert_equal ["a last word", 4], [errors.read, thread.value.exitstatus]
    end
  end

  def test_standard_streams_that_are_sockets
    body = Random.bytes(SIZES.last)
    @app.listen { |peer| peer.out(HELLO + peer.body) && peer.finish }
    ours, its = UNIXSocket.pair
    env = @app.env(REQUEST_METHOD: "POST", CONTENT_LENGTH: body.bytesize.to_s)
    pid = Process.spawn(env, @app.shim, in: its, out: its, unsetenv_others: true)
    its.close
    writer = Thread.new { ours.write(body) }
    assert_equal HELLO.b + body, ours.read
    writer.join
    assert_equal 0, Process.wait2(pid).last.exitstatus
  ensure
    ours&.close
  end

  def test_without_standard_error
    @app.listen { |peer| peer.errors("lost") && peer.page("found") }
    page = File.join(@app.path, "page")
    pid = Process.spawn(@app.env, @app.shim, in: :close, out: page, err: :close)
    assert_equal 0, Process.wait2(pid).last.exitstatus
    assert_equal "#{HELLO}found", File.read(page)
  end

  private

  # Runs it with its streams in the test's hands: input, output, errors, process.
  def streaming(**more)
    Open3.popen3(@app.env(**more), *@app.in_time, unsetenv_others: true) do |*streams, thread|
      streams.each(&:binmode)
      yield(*streams, thread)
      assert thread.join(PATIENCE), "it does not end"
    ensure
      Process.kill("TERM", thread.pid) if thread.alive?
    end
  end

  # Fails instead of waiting for ever.
  def write_in_time(io, bytes)
    until bytes.empty?
      assert io.wait_writable(PATIENCE), "nobody reads the body: #{bytes.bytesize} bytes are left"
      bytes = bytes.byteslice(io.write_nonblock(bytes)..)
    end
  end
end
