# frozen_string_literal: true

require "helper_case"

# Bodies of replies: whole, in time, and closed once.
class ReplyTest < Helper::Case
  serve "reply.ru", "-w", "1"

  def setup
    # What the last test's request still does, it has done when the only worker answers another.
    get("/pid")
    %w[closed ended].each { |name| FileUtils.rm_f(File.join(server.directory, name)) }
  end

  def assert_closed_once
    wait_for_lines("closed", 1)
    # The next request comes after whatever the last one still did: there is one worker.
    get("/pid")
    assert_equal 1, lines("closed").size
  end

  def test_arrays
    assert_equal "onetwothree", get("/array").body
    assert_equal "ONETWO", get("/array/loud").body
    assert_equal (1..20_000).map { |i| "#{i}\n" }.join, get("/array/many").body
    answer = get("/array/big")
    assert_equal "#{'x' * 1_000_000}#{'y' * 4_000_000}", answer.body
  end

  # The front copies the beginning of a finished reply and sends the rest from where it lies: the
  # second part begins shortly before, at and behind the place where the two meet.
  def test_an_array_whose_parts_meet_anywhere
    client = connect
    (3950..4100).each do |size|
      expected = "#{'x' * size}#{'y' * 100_000}"
      assert_equal expected.hash, client.get("/array/cut/#{size}").body.hash, size
    end
  end

  def test_streams
    assert_equal "#{'x' * 1_000_000}#{'y' * 4_000_000}", get("/stream/big").body
    assert_closed_once
    assert_equal (1..5000).map { |i| "#{i}\n" }.join, get("/stream/many").body
  end

  def test_a_slow_reader_gets_all_of_it
    client = ask_for("/array/big")
    head = client.head
    size = 5_000_000
    assert_includes [nil, size.to_s], head["content-length"]
    read = 0
    # Little by little: the worker waits for room again and again.
    whole = head["content-length"]
    read += (whole ? client.take([50_000, size - read].min) : client.chunk).size while read < size
    assert_nil client.chunk unless whole
    assert_match(/\A\d+\z/, client.get("/pid").body)
  end

  def test_curl_gets_all_of_it
    %w[/array/big /stream/big].each do |path|
      body, status = curl(url(path))
      assert_equal [5_000_000, 0], [body.size, status]
    end
  end

  def test_each_part_arrives_while_the_app_still_waits
    door = gate("gate")
    client = ask_for("/stream")
    assert_equal "chunked", client.head["transfer-encoding"]
    assert_equal "first\n", client.chunk
    assert_empty lines("closed")
    door.open
    assert_equal ["second\n", nil], [client.chunk, client.chunk]
    assert_closed_once
  end

  def test_close_is_called_once_when_all_is_well
    assert_equal "whole\n", get("/close").body
    assert_closed_once
    assert_equal 200, connect.ask("HEAD /close").status
  end

  def test_an_exception_in_close_harms_nobody
    pid = get("/pid").body
    client = connect
    assert_equal "whole\n", client.get("/close/raise").body
    assert_closed_once
    wait_for_log(/cannot close \(RuntimeError\)/)
    assert_equal pid, client.get("/pid").body
  end

  def test_an_exception_in_each_cuts_the_connection
    pid = get("/pid").body
    client = ask_for("/stream/raise")
    assert_equal 200, client.head.status
    assert_raises(EOFError) { client.all_chunks }
    assert_closed_once
    wait_for_log(%r{GET /stream/raise: .*in each \(RuntimeError\)})
    assert_equal ["first\n", 18], curl("--silent", "--no-show-error", url("/stream/raise"))
    assert_equal ["first\n", 18], curl("--silent", "--no-show-error", url("/stream/raise-length"))
    assert_equal pid, get("/pid").body
  end

  def test_a_client_that_leaves_ends_the_stream
    %i[close reset].each_with_index do |way, index|
      client = ask_for("/stream/endless")
      client.head
      assert_operator client.chunk.size, :>, 1000
      client.public_send(way)
      @clients.delete(client)
      wait_for_lines("ended", index + 1)
      wait_for_lines("closed", index + 1)
    end
    assert_match(/\A\d+\z/, get("/pid").body)
    assert_equal 2, lines("closed").size
  end

  def test_a_client_that_stops_reading_and_leaves_ends_the_stream
    client = ask_for("/stream/endless")
    client.head
    # Until the worker sleeps because nobody makes room.
    worker = server.workers(1).first
    wait_until("the worker waits for room") do
      2.times.all? { File.read("/proc/#{worker.pid}/wchan").include?("futex") }
    end
    client.close
    @clients.delete(client)
    wait_for_lines("ended", 1)
    assert_closed_once
  end

  # As lines for Rack 2, as a list for Rack 3.
  def test_several_values_are_several_headers
    answer = get("/headers")
    values = %w[set-cookie x-one x-empty].map { |name| answer[name] }
    assert_equal [["a=1", "b=2"], "1", ""], values
  end

  # A client goes by Content-Length: a wrong one would make it wait, or take the next answer's bytes
  # for this one's.
  def test_a_wrong_content_length_is_500
    client = connect
    %w[short long].each { |kind| assert_equal 500, client.get("/length/#{kind}").status }
    wait_for_log(/Content-Length is wrong: the body is 5 bytes long/)
    assert_match(/\A\d+\z/, client.get("/pid").body)
  end

  def test_a_stream_shorter_than_it_said_ends_the_connection
    door = gate("gate")
    client = ask_for("/length/stream")
    assert_equal "20", client.head["content-length"]
    assert_equal "first", client.take(5)
    door.open
    assert client.ended?
    wait_for_log(/Content-Length is wrong: the body is 5 bytes long/)
    assert_match(/\A\d+\z/, get("/pid").body)
  end

  def test_a_stream_that_stays_empty_though_it_said_more_ends_the_connection
    door = gate("gate")
    client = ask_for("/length/stream/none")
    assert_equal "20", client.head["content-length"]
    door.open
    assert client.ended?
    wait_for_log(/Content-Length is wrong: the body is 0 bytes long/)
    assert_equal "10", connect.ask("HEAD /length/short")["content-length"]
  end

  def test_nothing_is_sent_beyond_the_declared_length
    door = gate("gate")
    client = ask_for("/length/stream/long")
    assert_equal "7", client.head["content-length"]
    assert_equal "first", client.take(5)
    door.open
    assert_equal "se", client.take(2)
    wait_for_log(/Content-Length is wrong: the body is 11 bytes long/)
    assert_match(/\A\d+\z/, client.get("/pid").body)
  end
end

# Apps that raise, exit, or answer nonsense.
class FailingAppTest < Helper::Case
  serve "reply.ru", "-w", "1"

  def log_since
    before = server.log.bytesize
    yield
    server.log.byteslice(before..)
  end

  def test_exceptions_are_500_with_a_backtrace_in_the_log
    pid = get("/pid").body
    { "error" => "on purpose (ArgumentError)", "exception" => "on purpose (Exception)",
      "script" => "on purpose (NotImplementedError)", "throw" => "uncaught throw :on_purpose",
      "stack" => "stack level too deep",
      "encoding-\u00e4" => "on purp\u00f6se" }.each do |kind, message|
      client = connect
      log = log_since do
        answer = client.get("/raise/#{kind}".b)
        assert_equal [500, "Internal Server Error\n"], [answer.status, answer.body], kind
        # The connection goes on, and with it the only worker: the log is written by now.
        assert_equal pid, client.get("/pid").body
      end
      assert_includes log, "GET /raise/#{kind}"
      assert_includes log, message
      assert_match(/config\.ru:\d+:in/, log)
    end
  end

  NONSENSE = {
    "nothing" => "the app's status is nil", "status-text" => 'the app\'s status is "fine"',
    "status-99" => "the app's status is 99, not between 200 and 999",
    "status-1000" => "the app's status is 1000", "status-nil" => "the app's status is nil",
    "status-object" => "the app's status is a Object", "status-100" => "the app's status is 100",
    "status-101" => "the app's status is 101, and its body does not call",
    "headers-nil" => "the app's headers are nil, not a Hash",
    "headers-text" => "the app's headers are a String, not a Hash",
    "name-number" => "a header name of the app's is of class Float, not String",
    "name-space" => 'the app\'s header name "a b" is not one',
    "name-return" => 'the app\'s header name "a\r\nb" is not one',
    "name-empty" => 'the app\'s header name "" is not one',
    "value-float" => "the app's header x-a is of class Float, not String",
    "value-nil" => "the app's header x-a is of class nil, not String",
    "value-list-nil" => "the app's header x-a is of class nil, not String",
    "value-return" => "the app's header x-a holds the character 0x0d",
    "value-zero" => "the app's header x-a holds the character 0x00",
    "value-long" => "the app's header x-a is longer than 65535 bytes",
    "values-long" => "the app's headers are 300037 bytes long, 262144 at most",
    "length-text" => 'the app\'s Content-Length is "5 or so", not a number',
    "length-twice" => "the app's reply has two Content-Lengths",
    "coding" => 'the app\'s Transfer-Encoding is "gzip", not chunked',
    "coding-wrong" => "the app's body is not chunked as it says",
    "body-nil" => "the app's body is nil and responds neither to each nor to call",
    "body-text" => "the app's body is String and responds neither to each nor to call",
    "body-numbers" => "a part of the app's body is of class Integer, not String",
    "body-late-number" => "a part of the app's body is of class Integer, not String"
  }.freeze

  # The head of this one is out before the fault is seen.
  CUT = %w[coding-wrong].freeze

  def test_nonsense_is_500_with_a_line_in_the_log
    pid = get("/pid").body
    NONSENSE.each do |kind, fault|
      log = log_since do
        client = ask_for("/wrong/#{kind}")
        if CUT.include?(kind)
          assert_equal 200, client.head.status
          assert_raises(EOFError) { client.all_chunks }
        else
          answer = client.answer
          assert_equal [500, "text/plain"], [answer.status, answer["content-type"]], kind
        end
        assert_equal pid, get("/pid").body, kind
      end
      assert_equal 1, log.lines.size, log
      assert_operator log, :start_with?, "oribi: worker 1: GET /wrong/#{kind}: #{fault}"
    end
  end

  def test_exit_ends_the_worker_but_not_its_client
    %w[/exit /raise/interrupt].each do |path|
      pid = get("/pid").body
      answer = get(path)
      assert_equal [500, "Internal Server Error\n"], [answer.status, answer.body], path
      wait_until("another worker") { get("/pid").body != pid }
    end
    wait_for_log(/worker 1 gen 1 \(pid \d+\) ended: exit 3/)
  end

  def test_exit_within_a_stream_cuts_it
    pid = get("/pid").body
    client = ask_for("/stream/exit")
    assert_equal 200, client.head.status
    assert_raises(EOFError) { client.all_chunks }
    wait_for_lines("closed", 1)
    wait_until("another worker") { get("/pid").body != pid }
    assert_equal 1, lines("closed").size
  end
end

# An app that ends its thread, in a worker that has others. The first thread is Ruby's main one: to
# end that is to exit.
class EndingThreadTest < Helper::Case
  def test_the_request_is_answered_and_the_worker_replaced_when_the_others_are_done
    start("reply.ru", "-w", "1", "-t", "3")
    pid = get("/pid").body
    main, other = %w[main other].map { |name| gate(name) }
    held = Array.new(3) { ask_for("/thread/gate") }
    wait_for_lines("held", 3)
    other.open_until { held.count(&:quiet?) == 1 }
    assert_equal 502, get("/thread/exit").status
    assert_equal 1, held.count(&:quiet?)
    main.open
    held.each { |client| assert_equal "held", client.answer.body }
    refute_equal pid, get("/pid").body
  end
end
