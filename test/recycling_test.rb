# frozen_string_literal: true

require "helper_case"

# Workers that leave after so many requests: how many that really are, and that nobody notices.
class RecyclingTest < Helper::Case
  # Says who answers, and writes it down; `/hold` waits at a gate.
  APP = <<~'RUBY'
    use Rack::Lint
    run(lambda do |env|
      File.write(File.join(__dir__, "calls"), "#{Process.pid}\n", mode: "a")
      File.read(File.join(__dir__, "gate")) if env["PATH_INFO"] == "/hold"
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    end)
  RUBY

  def start(*arguments)
    self.class.stop
    @server = Helper::Server.new(:oribi, *arguments, app: "require 'uri'\n#{APP}").ready
  end

  # The pids that have answered `count` requests, each on a connection of its own, one after the
  # other.
  def answers(count) = Array.new(count) { ask_once }

  def ask_once
    client = Helper::Client.tcp(port)
    answer = client.get("/", "connection: close")
    assert_equal 200, answer.status
    answer.body.to_i
  ensure
    client&.close
  end

  # How many requests each pid has answered that will answer no more.
  def served(pids)
    counts = pids.tally
    gone = counts.select { |pid, _| Helper.process(pid).nil? }
    assert_operator gone.size, :>, 2, "nobody has left: #{counts}"
    gone.values
  end

  def test_each_worker_serves_exactly_its_limit
    start("--workers", "1", "--max-requests", "10")
    assert_equal [10], served(answers(80)).uniq
    assert_empty server.log.scan(/ended: .*/), "they leave with 0"
  end

  def test_also_with_several_workers_and_threads
    start("--workers", "2", "--threads", "3", "--max-requests", "7")
    assert_equal [7], served(concurrently(6, 40)).uniq
  end

  def test_a_limit_of_one
    start("--workers", "1", "--max-requests", "1")
    pids = answers(15)
    assert_equal pids.uniq, pids
  end

  def test_limits_differ_between_their_bounds
    start("--workers", "2", "--min-requests", "3", "--max-requests", "12")
    counts = served(answers(250))
    assert(counts.all?(3..12), counts.inspect)
    assert_operator counts.uniq.size, :>, 2, counts.inspect
  end

  # Kept connections and new ones; with one thread and with several.
  def test_under_load_nothing_fails_and_the_relief_is_there_before
    [1, 3].each do |threads|
      start("--workers", "2", "--threads", threads.to_s, "--max-requests", "25")
      pids = concurrently(8, 150, keep: true)
      assert_equal 1200, pids.size
      assert_equal [25], served(pids).uniq
      assert_operator server.find("worker").size, :<=, 4, "no more than one relief each"
      @clients.each(&:close)
      @server.clean_up
      @server = @clients = nil
    end
  end

  # Some may have been called before anybody knew that their clients had gone: what counts is how
  # often an app was called.
  def test_clients_that_leave_while_they_wait_do_not_count
    start("--workers", "1", "--max-requests", "5")
    gate = gate("gate")
    held = ask_for("/hold")
    gate.arrived
    10.times { ask_for("/").reset }
    gate.open
    pid = held.answer.body.to_i
    wait_until("it reaches its limit") { ask_once && Helper.process(pid).nil? }
    assert_equal 5, lines("calls").count(pid.to_s)
  end

  # One thread of it is busy for long: others serve meanwhile, and nobody waits for it.
  def test_a_worker_that_is_busy_for_long_is_in_nobodys_way
    start("--workers", "1", "--threads", "2", "--max-requests", "5")
    gate = gate("gate")
    held = ask_for("/hold")
    gate.arrived
    pids = concurrently(4, 20)
    gate.open
    busy = held.answer.body.to_i
    assert_operator pids.count(busy), :<=, 4
    assert_equal [5], served(pids.reject { |pid| pid == busy }).uniq
  end

  private

  # The pids that answer `clients` clients with `each` requests.
  def concurrently(clients, each, keep: false)
    threads = Array.new(clients) do
      Thread.new do
        client = connect if keep
        Array.new(each) do
          next ask_once unless keep

          answer = client.get
          assert_equal 200, answer.status
          answer.body.to_i
        end
      end
    end
    threads.flat_map(&:value)
  end
end
