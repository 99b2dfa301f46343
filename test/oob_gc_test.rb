# frozen_string_literal: true

require "helper_case"

# Garbage is collected between requests, and who may do so when.
class OobGcTest < Helper::Case
  # One request as the app saw it: who served it, and how many collections there had been.
  Seen = Struct.new(:pid, :before, :after)

  def seen(answer) = Seen.new(*answer.body.split.map { |word| Integer(word, 10) })

  # So many requests on one connection, one after the other.
  def ask(count, path)
    client = connect
    Array.new(count) { seen(client.get(path)) }
  end

  # Collections within these requests, and between each and the one before it in its worker.
  def collections(all)
    of_workers = all.group_by(&:pid).values
    between = of_workers.sum { |some| some.each_cons(2).sum { |a, b| b.before - a.after } }
    [all.sum { |one| one.after - one.before }, between]
  end

  HEAVY = "/20000"

  def test_without_it_collections_fall_into_requests
    start("gc.ru", "-w", "1")
    within, between = collections(ask(200, HEAVY))
    assert_operator within, :>, 10
    assert_operator between, :<, within / 2
  end

  def test_with_it_hardly_any_does
    start("gc.ru", "-w", "1", "--oob-gc")
    ask(30, HEAVY)
    within, between = collections(ask(300, HEAVY))
    assert_operator within, :<=, 3, "#{between} between"
    assert_operator between, :>, 10
  end

  def test_a_rare_large_request_is_provided_for
    start("gc.ru", "-w", "1", "--oob-gc")
    large = Array.new(30) do
      ask(9, "/400")
      ask(1, "/40000").first
    end
    assert_operator large.drop(10).sum { |one| one.after - one.before }, :<=, 4
  end

  def test_the_reply_is_out_before_it_collects
    start("gc.ru", "-w", "1", "--oob-gc", "--max-gc-per-request", "1")
    gate = gate("gate")
    assert_equal 200, get("/gate").status
    gate.arrived
    waiting = ask_for("/1")
    assert waiting.quiet?
    gate.release
    assert_equal 200, waiting.answer.status
  end

  def test_others_serve_while_one_collects
    start("gc.ru", "-w", "2", "--oob-gc", "--max-gc-per-request", "1")
    gate = gate("gate")
    collecting = seen(get("/gate")).pid
    gate.arrived
    refute_includes ask(50, "/1").map(&:pid), collecting
  end

  def test_it_collects_after_so_many_requests_at_the_latest
    start("gc.ru", "-w", "1", "--oob-gc", "--max-gc-per-request", "5")
    counts = ask(60, "/1").map(&:before)
    counts.each_cons(6) { |some| assert_operator some.last, :>, some.first }
    # Not after each either.
    assert_operator counts.last - counts.first, :<, 40
  end

  def test_the_number_of_requests_may_be_drawn
    start("gc.ru", "-w", "1", "--oob-gc", "--min-gc-per-request", "3", "--max-gc-per-request", "9")
    counts = ask(60, "/1").map(&:before)
    counts.each_cons(10) { |some| assert_operator some.last, :>, some.first }
    assert_operator counts.last - counts.first, :<, 30
  end

  # Two workers may not both be away: the second has to collect within its requests.
  def test_one_of_two_stays
    start("gc.ru", "-w", "2", "--oob-gc")
    gate, away = stand_aside
    within, between = collections(ask(60, HEAVY).reject { |one| one.pid == away })
    assert_operator within, :>, between
    gate.release
    assert_operator collections(ask(100, HEAVY)).last, :>, 0
  end

  def test_who_died_collecting_is_not_waited_for
    start("gc.ru", "-w", "2", "--oob-gc")
    _, away = stand_aside
    Process.kill("KILL", away)
    wait_until("the others collect again") { collections(ask(30, HEAVY)).last.positive? }
  end

  # One worker collects, and stands at the gate; the gate and its pid.
  def stand_aside
    # Both know what a request needs: the first ones they have to collect for as they come.
    Array.new(2) { Thread.new { ask(60, HEAVY) } }.each(&:join)
    gate = gate("gate")
    pid = seen(get("/gate")).pid
    there = false
    asking = Array.new(2) { Thread.new { ask(1, HEAVY) until there } }
    gate.arrived
    there = true
    asking.each(&:join)
    [gate, pid]
  end

  def test_memory_that_is_not_collected_forces_it
    start("gc.ru", "-w", "2", "--oob-gc", "--oob-gc-cap", "4m")
    stand_aside
    # Nothing but the cap is left: the collector is off, and the other worker is away.
    ask(1, "/disable")
    within, between = collections(ask(200, HEAVY))
    assert_equal 0, within
    assert_operator between, :>, 0
  end

  def test_it_waits_for_a_sibling_to_finish
    start("gc.ru", "-w", "1", "-t", "2", "--oob-gc")
    ask(30, HEAVY)
    gate = gate("gate")
    held = ask_for("/hold")
    gate.arrived
    within, between = collections(ask(200, HEAVY))
    assert_operator within, :>, between
    gate.release
    assert_equal 200, held.answer.status
    assert_operator collections(ask(60, HEAVY)).last, :>, 0
  end

  # As many requests as threads, all the time: nobody stays asleep when the others collect.
  def test_threads_go_on
    start("gc.ru", "-w", "1", "-t", "3", "--oob-gc", "--max-gc-per-request", "2")
    all = Array.new(3) { Thread.new { ask(100, "/1000") } }.flat_map(&:value)
    assert_equal 300, all.size
    assert_operator all.last.after - all.first.before, :>, 20
  end

  # Rhebok's names for it.
  def test_under_rackup
    source = Helper::Case.source("gc.ru")
    @server = Helper::Server.new(:rackup, "--OobGC=yes", "--MaxGCPerRequest=1", "--MaxWorkers=1",
                                 app: source).ready
    counts = ask(20, "/1").map(&:before)
    counts.each_cons(2) { |a, b| assert_operator b, :>, a }
  end
end
