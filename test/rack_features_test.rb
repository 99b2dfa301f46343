# frozen_string_literal: true

require "helper_case"

# Responses of every form that Rack allows.
class ResponseTest < Helper::Case
  serve "features.ru", "-w", "1"

  def setup
    # The only worker has done what it does after its last reply.
    get("/pid")
    %w[closed parts stream].each { |name| FileUtils.rm_f(File.join(server.directory, name)) }
  end

  def fields(path)
    answer = get("/headers/#{path}")
    assert_equal [200, "ok"], [answer.status, answer.body]
    all = answer.fields.map { |name, value| [name.downcase, value] }
    all.reject { |field| %w[date content-length].include?(field.first) }
  end

  def test_headers_with_several_values
    assert_equal [["set-cookie", "a=1; path=/"], ["set-cookie", "b=2"], %w[x-one 1]],
                 fields("array")
  end

  # Rack 2 has lines; to Rack 3 a line break is what an attacker has put there.
  def test_values_with_line_breaks
    return assert_equal [%w[set-cookie a=1], %w[set-cookie b=2], %w[x-a 1]], fields("lines") if
      Helper.rack < 3

    assert_equal 500, get("/headers/lines").status
    wait_for_log(/header set-cookie holds the character 0x0a/)
  end

  def test_names_of_any_case
    assert_equal [%w[x-mixed-case Kept]], fields("case")
  end

  def test_numbers_and_symbols_are_taken_for_strings
    assert_equal [%w[x-list 1], %w[x-list three], %w[x-list two], %w[x-name symbol],
                  %w[x-number 12], %w[x-symbol word]], fields("lenient").sort
  end

  def test_headers_for_the_server_stay_there
    assert_equal [%w[x-a 1]], fields("rack")
    assert_equal [%w[x-a 1]], fields("hop")
  end

  def test_connection_close_is_honoured
    client = connect
    answer = client.get("/headers/close")
    assert_equal %w[Close ok], [answer["connection"], answer.body]
    assert client.ended?
  end

  def test_headers_that_are_no_hash
    assert_equal %w[1 2], get("/pairs")["x-a"]
    assert_equal "converted", get("/convertible")["x-a"]
  end

  def test_a_status_that_is_a_string
    assert_equal 201, get("/status/string").status
  end

  def test_responses_without_a_body
    client = connect
    [["GET", 204, nil], ["GET", 304, nil], ["HEAD", 200, "6"], ["HEAD", 204, nil],
     ["HEAD", 404, "6"]].each do |method, status, length|
      client.write(Client.request("#{method} /status/#{status}"))
      answer = client.answer(bodiless: true)
      assert_equal [status, length, "1", nil],
                   [answer.status, *%w[content-length x-a transfer-encoding].map { |n| answer[n] }]
      # What follows is the next answer, not a body.
      assert_match(/\A\d+\z/, client.get("/pid").body)
    end
    assert_equal [5, []], [lines("closed").size, lines("parts")]
  end

  def test_a_head_request_adds_no_length
    client = connect
    answer = client.ask("HEAD /body")
    assert_equal [200, nil], [answer.status, answer["content-length"]]
    assert_match(/\A\d+\z/, client.get("/pid").body)
    assert_equal [1, []], [lines("closed").size, lines("parts")]
  end

  def test_a_body_that_is_both_is_enumerated
    assert_equal "whole\n", get("/both").body
  end

  def test_a_body_the_app_has_chunked_is_chunked_once
    client = connect
    assert_equal "abcdefgh", client.get("/chunked").body
    assert_match(/\A\d+\z/, client.get("/pid").body)
    client.write("GET /chunked HTTP/1.0\r\n\r\n")
    assert_equal "abcdefgh", client.answer.body
  end

  def test_callable_bodies
    client = connect
    assert_equal "one two three four", client.get("/call/plain").body
    assert_equal "not closed", client.get("/call/open").body
    assert_equal "", client.get("/call/closed").body
    assert_equal '[false, nil, false, nil, true, "not opened for writing"]',
                 wait_for_lines("stream", 1).first
    assert_equal "[abc][de]", client.ask("POST /call/echo", body: "abcde").body
    client.write("GET /call/plain HTTP/1.0\r\n\r\n")
    assert_equal "one two three four", client.answer.body
  end

  def test_a_callable_body_is_sent_as_it_comes
    door = gate("gate")
    client = ask_for("/call/slow")
    assert_equal "chunked", client.head["transfer-encoding"]
    assert_equal "first", client.chunk
    door.open
    assert_equal ["second", nil], [client.chunk, client.chunk]
  end

  def test_a_callable_body_is_told_when_its_client_leaves
    client = ask_for("/call/endless")
    client.head
    client.chunk
    client.reset
    @clients.delete(client)
    assert_equal ["gone"], wait_for_lines("stream", 1)
  end

  def test_a_callable_body_that_raises_is_cut
    client = ask_for("/call/raise")
    assert_equal 200, client.head.status
    assert_raises(EOFError) { client.all_chunks }
    wait_for_log(%r{GET /call/raise: .*in the body \(RuntimeError\)})
    assert_match(/\A\d+\z/, get("/pid").body)
  end
end

# What apps have called when the reply is out.
class AfterReplyTest < Helper::Case
  serve "features.ru", "-w", "1"

  def setup
    get("/pid")
    %w[finished after].each { |name| FileUtils.rm_f(File.join(server.directory, name)) }
  end

  def test_they_are_called_once_the_reply_is_out
    pid = get("/pid").body
    2.times do |i|
      assert_equal "ok", get("/finish/well").body
      assert_equal pid, get("/pid").body
      keys = '["content-type"]'
      assert_equal ["1 true 200 #{keys} nil", "0 true 200 #{keys} nil"], lines("finished").last(2)
      assert_equal [%w[0 1] * (i + 1), 2 * (i + 1)], [lines("after"), lines("finished").size]
    end
  end

  def test_they_learn_of_an_error
    assert_equal 500, get("/finish/raise").status
    get("/pid")
    assert_equal Array.new(2) { |i| "#{1 - i} true nil nil #<RuntimeError: on purpose>" },
                 lines("finished")
    assert_equal %w[0 1], lines("after")
  end

  def test_errors_in_them_are_logged_and_harm_nobody
    pid = get("/pid").body
    assert_equal "ok", get("/finish/bad").body
    assert_equal pid, get("/pid").body
    assert_equal [2, 2], [lines("finished").size, lines("after").size]
    ["finished 1", "finished 0", "after 0", "after 1"].each do |message|
      wait_for_log(%r{GET /finish/bad: .*#{message} \(RuntimeError\)})
    end
  end

  def test_the_client_does_not_wait_for_them_and_exit_ends_the_worker
    pid = get("/pid").body
    assert_equal "ok", get("/finish/exit").body
    refute_equal pid, get("/pid").body
    wait_for_log(/worker 1 gen 1 \(pid #{pid}\) ended: exit 4/)
    assert_equal %w[0 1], lines("after")
  end
end

# An app that asks the process to end while other threads of it serve.
class ExitTest < Helper::Case
  def test_the_others_finish_before_the_worker_ends
    start("features.ru", "-w", "1", "-t", "3")
    pid = get("/pid").body
    door = gate("gate")
    held = Array.new(2) { ask_for("/gate") }
    wait_for_lines("held", 2)
    assert_equal 500, get("/exit").status
    door.open
    held.each { |client| assert_equal "held", client.answer.body }
    wait_for_log(/worker 1 gen 1 \(pid #{pid}\) ended: exit 5/)
    refute_equal pid, get("/pid").body
  end
end
