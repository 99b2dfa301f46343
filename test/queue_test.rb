# frozen_string_literal: true

require "helper_case"

# One queue, and whoever is free takes from it.
class QueueTest < Helper::Case
  def called = lines("called").map { |line| line[/\A(.*) \d+\z/, 1] }

  # Waits until so many requests of ours lie in the queue: sent, read by the front, not begun.
  def wait_until_read(*clients)
    wait_until("the front has read the requests") { clients.all? { |client| unread(client).zero? } }
    # The front reads a request and queues it without a pause, so when it has answered another one
    # that came later, these are queued.
    refuse = connect.ask("POST /", "Content-Length: #{1 << 40}", "Expect: 100-continue")
    assert_equal 413, refuse.status
  end

  def unread(client)
    local, remote = [client.socket.local_address, client.socket.remote_address].map(&:ip_port)
    pattern = /:#{format('%04X', remote)} [0-9A-F]+:#{format('%04X', local)} \d\d \w+:(\w+)/
    File.read("/proc/net/tcp")[pattern, 1].to_i(16)
  end

  def drop(client)
    client.close
    @clients.delete(client)
  end

  def test_five_threads_run_five_requests_at_once
    start("queue.ru", "-w", "1", "-t", "5")
    door = gate("gate")
    clients = Array.new(6) { |i| ask_for("/gate?#{i}") }
    # All five are inside, none has been let out; the sixth waits.
    wait_for_lines("called", 5)
    wait_until_read(*clients)
    assert_equal 5, called.size
    assert_equal 1, lines("called").map { |line| line.split.last }.uniq.size
    assert(clients.all?(&:quiet?))
    door.open_until { clients.none?(&:quiet?) }
    answers = clients.map { |client| client.answer.body.split(" ", 2).last }
    assert_equal (0..5).map { |i| "GET /gate?#{i}" }, answers
  end

  def test_a_slow_request_holds_up_no_fast_one
    start("queue.ru", "-w", "2")
    door = gate("gate")
    slow = ask_for("/gate")
    door.arrived
    # On the slow one's connection too: it was opened before the others.
    kept = connect
    answers = Array.new(200) { |i| (i.even? ? kept : connect).get("/#{i}").body.split }
    assert_equal 1, answers.map(&:first).uniq.size
    assert slow.quiet?
    door.open
    refute_equal answers.first.first, slow.answer.body.split.first
  end

  def test_first_come_first_served
    start("queue.ru", "-w", "1")
    door = gate("gate")
    held = ask_for("/gate")
    door.arrived
    waiting = Array.new(20) do |i|
      ask_for("/#{i}").tap { |client| wait_until_read(client) }
    end
    door.open
    [held, *waiting].each { |client| assert_equal 200, client.answer.status }
    assert_equal ["GET /gate?"] + (0..19).map { |i| "GET /#{i}?" }, called
  end

  def test_a_client_that_leaves_the_queue_is_not_served
    start("queue.ru", "-w", "1", "--half-close-timeout", "0")
    door = gate("gate")
    held = ask_for("/gate")
    door.arrived
    leaving = [ask_for("/left?1"), ask_for("/left?2"),
               connect.write(Client.request("POST /left", body: "x" * 100_000))]
    staying = ask_for("/stayed")
    wait_until_read(*leaving, staying)
    drop(leaving[0])
    leaving[1].reset
    @clients.delete(leaving[1])
    drop(leaving[2])
    wait_until("the front has closed") { server_connections == 2 }
    door.open
    assert_equal [200, 200], [held.answer.status, staying.answer.status]
    get("/last")
    assert_equal ["GET /gate?", "GET /stayed?", "GET /last?"], called
  end

  # Connections to the server's port that the front has not closed: established, or closed by the
  # client alone.
  def server_connections
    File.read("/proc/net/tcp").scan(/ 0100007F:#{format('%04X', port)} 0100007F:\w{4} 0[18] /).size
  end

  def test_a_killed_worker_loses_only_what_it_had_begun
    start("queue.ru", "-w", "2")
    doors = [gate("gate1"), gate("gate2")]
    held = [ask_for("/gate1"), ask_for("/gate2")]
    doors.each(&:arrived)
    queued = [ask_for("/queued?get"),
              connect.write(Client.request("POST /queued", body: "body " * 20_000))]
    wait_until_read(*queued)
    victim = lines("called").grep(/gate1/).first.split.last
    Process.kill("KILL", Integer(victim, 10))
    answer = held[0].answer
    assert_equal [502, "text/plain"], [answer.status, answer["content-type"]]
    bodies = queued.map { |client| client.answer.body }
    assert_includes bodies[0], "GET /queued?get"
    assert_equal ("body " * 20_000).strip, bodies[1].split(" ", 4).last
    refute_includes bodies.map { |body| body.split.first }, victim
    # Each once, and the other worker was not disturbed.
    assert_equal ["GET /gate1?", "GET /gate2?", "GET /queued?get", "POST /queued?"], called.sort
    assert held[1].quiet?
    doors[1].open
    assert_equal 200, held[1].answer.status
    assert_equal "GET /after?", held[0].get("/after").body.split(" ", 2).last
  end

  def test_without_retry_nothing_is_run_twice
    start("queue.ru", "-w", "2")
    assert_equal 502, get("/die").status
    assert_equal ["GET /die?"], called
  end

  def test_with_retry_what_may_be_repeated_is_repeated_once
    start("queue.ru", "-w", "2", "--retry-idempotent")
    assert_equal [502, 2], [get("/die").status, called.count("GET /die?")]
    assert_equal 502, connect.ask("POST /die", body: "x").status
    assert_equal 1, called.count("POST /die?")

    door = gate("gate")
    client = ask_for("/gate")
    first = Integer(wait_for_lines("called", 4).last.split.last, 10)
    Process.kill("KILL", first)
    second = Integer(wait_for_lines("called", 5).last.split.last, 10)
    refute_equal first, second
    door.open
    answer = client.answer
    assert_equal [200, "#{second} GET /gate?"], [answer.status, answer.body]
  end

  def test_term_answers_everybody
    start("queue.ru", "-w", "2")
    door = gate("gate")
    idle = Array.new(3) { connect.tap { |client| client.get("/idle") } }
    silent = connect
    running = Array.new(2) { |i| ask_for("/gate?#{i}") }
    wait_for_lines("called", 5)
    waiting = Array.new(5) { |i| ask_for("/waiting?#{i}") }
    wait_until_read(*waiting)
    server.signal("TERM")
    wait_for_log(/TERM: finishing/)
    assert(idle.all?(&:ended?))
    assert silent.ended?
    assert((running + waiting).all?(&:quiet?))
    refute server.ended?
    door.open_until { running.none?(&:quiet?) }
    answers = (running + waiting).map(&:answer)
    assert_equal [200] * 7, answers.map(&:status)
    assert_equal ["close"], answers.map { |answer| answer["connection"] }.uniq
    assert((running + waiting).all?(&:ended?))
    assert_equal 0, server.wait
    assert_raises(Errno::ECONNREFUSED) { connect }
  end

  def test_term_is_not_held_up_by_a_refused_upload
    start("queue.ru", "-w", "1")
    client = connect.write(Client.request("POST /", "Content-Length: #{1 << 40}"))
    assert_equal 413, client.answer.status
    server.signal("TERM")
    assert_equal 0, server.wait(within: 8)
  end

  # Seconds; long enough for what should happen within it on a busy machine.
  LIMIT = 1.0

  # A server whose one worker runs a request that lasts until the door is opened.
  def start_with_held(*arguments)
    start("queue.ru", "-w", "1", *arguments)
    door = gate("gate")
    held = ask_for("/gate")
    door.arrived
    [door, held]
  end

  def assert_shed(answer)
    assert_equal [503, "1", "text/plain"],
                 [answer.status, answer["retry-after"], answer["content-type"]]
    assert_match(/\AThe request waited longer than queue_timeout allows\..*\n\z/, answer.body)
  end

  def test_queue_timeout_sheds_what_waits_longer_and_nothing_else
    door, held = start_with_held("--queue-timeout", (2 * LIMIT).to_s)
    asked = now
    old = [ask_for("/old?1"), connect.write(Client.request("POST /old", body: "x" * 100_000))]
    wait_until("half of the limit has passed") { now - asked > LIMIT }
    young = Array.new(2) { |i| ask_for("/young?#{i}") }
    wait_until_read(*old, *young)
    assert(old.all?(&:quiet?))
    old.each { |client| assert_shed(client.answer) }
    assert_includes (2 * LIMIT)..(3.5 * LIMIT), now - asked
    # The one that runs is older than those, and no younger one was shed with them.
    assert([held, *young].all?(&:quiet?))
    door.open
    answers = [held, *young].map(&:answer)
    assert_equal [200] * 3, answers.map(&:status)
    assert_equal ["GET /gate?", "GET /young?0", "GET /young?1"], called
    wait_for_log(/^oribi: front: shed, for they waited longer than queue_timeout \(2 s\): [12]$/)
  end

  def test_a_connection_goes_on_after_a_request_of_its_was_shed
    door, held = start_with_held("--queue-timeout", "0.1")
    client = connect.write(Client.request("GET /1") + Client.request("GET /2"))
    2.times { assert_shed(client.answer) }
    assert_shed(client.ask("POST /3", body: "x" * 100_000))
    client.write(Client.request("HEAD /4"))
    answer = client.answer(bodiless: true)
    assert_equal [503, "1"], [answer.status, answer["retry-after"]]
    door.open
    assert_equal 200, held.answer.status
    # On a busy machine even an idle worker may take longer than this limit.
    served = wait_until("one is served") do
      client.ask("POST /5", body: "body").then { |found| found if found.status == 200 }
    end
    assert_equal "POST /5? body", served.body.split(" ", 2).last
    assert_equal ["GET /gate?", "POST /5?"], called
  end

  def test_what_was_shed_leaves_its_slot
    door, held = start_with_held("--queue-timeout", "0.02")
    clients = Array.new(256) { connect }
    # More in all than there are slots, so that slots that stay away would be missed.
    17.times do
      clients.each { |client| client.write(Client.request("GET /shed")) }
      clients.each { |client| assert_shed(client.answer) }
    end
    door.open
    assert_equal 200, held.answer.status
    # On a busy machine even an idle worker may take longer than this limit.
    wait_until("one is served") { get("/after").status == 200 }
    assert_equal ["GET /gate?", "GET /after?"], called
  end

  def test_without_queue_timeout_requests_wait = assert_waits

  def test_with_a_queue_timeout_of_zero_requests_wait = assert_waits("--queue-timeout", "0")

  def assert_waits(*arguments)
    door, held = start_with_held(*arguments)
    asked = now
    waiting = ask_for("/waiting")
    wait_until("the front has looked many times") { now - asked > LIMIT / 2 }
    assert waiting.quiet?
    door.open
    assert_equal [200, 200], [held.answer.status, waiting.answer.status]
  end

  def test_a_wrong_queue_timeout_is_named
    %w[soon -1 86401 NaN].each do |wrong|
      ended = Server.new(:oribi, "--queue-timeout=#{wrong}", app: Case.source("queue.ru"))
      assert_equal 1, ended.wait
      assert_equal "oribi: queue_timeout: #{wrong.inspect} is not a number of seconds " \
                   "from 0 to 86400\n", ended.log
    ensure
      ended&.clean_up
    end
  end

  def test_connections_leave_no_descriptors
    start("queue.ru", "-w", "2")
    front = server.one("front").pid
    fds = -> { Dir.children("/proc/#{front}/fd").size }
    20.times { get("/warm").then { @clients.each(&:close).clear } }
    wait_until("the front has closed") { server_connections.zero? }
    before = fds.call
    1000.times do |i|
      client = connect
      # Asked and answered, not asked at all, gone before the answer.
      client.get("/") if (i % 3).zero?
      client.write(Client.request("GET /")) if i % 3 == 1
      client.close
      @clients.clear
    end
    wait_until("as many descriptors as before: #{before}") { fds.call == before }
    assert_equal 200, get("/").status
  end
end
