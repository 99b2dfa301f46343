# frozen_string_literal: true

require "helper_case"
require "open3"

# What apps count: one value for all, whoever dies.
class CountersTest < Helper::Case
  # loaded, hits, level, observed, sum
  def values = ask("/get").split.drop(1).map { |word| Float(word) }

  def ask(path)
    answer = get(path, "connection: close")
    assert_equal 200, answer.status, server.log
    answer.body
  end

  def hits = Integer(values[1])

  def pid_of(path) = Integer(ask(path)[/\d+/], 10)

  def test_one_value_whoever_counts_and_whoever_dies
    start("counters.ru", "--workers", "3", "--threads", "2", "--rollback-window", "60")
    pids = concurrently(6, 60) { pid_of("/count/1000") }
    assert_equal 3, pids.uniq.size, "all workers have counted"
    assert_equal 60_000, hits

    concurrently(3, 12) { ask("/gauge/increment") }
    concurrently(3, 6) { ask("/gauge/decrement") }
    concurrently(3, 12) { ask("/observe/0.5") }
    assert_equal [1, 60_000, 12, 12, 6.0], values

    killed_in_the_middle
    counted_before = values
    command("restart")
    assert_equal [2, *counted_before.drop(1)], values, "a new generation goes on with them"
    command("rollback")
    assert_equal [2, *counted_before.drop(1)], values
    ask("/gauge/set/-7")
    assert_equal(-7, values[2])
    full
  end

  # The process that has loaded the app was none of a server's yet.
  def test_what_was_counted_before_there_was_a_server_goes_over
    self.class.stop
    app = Helper::Case.source("counters.ru")
    @server = Helper::Server.new(:rackup, "--workers", "2", app: app).ready
    assert_equal [1, 0], values.first(2)
    pids = concurrently(4, 20) { pid_of("/bulk/7") }
    assert_equal [2, 140], [pids.uniq.size, hits]
  end

  def test_without_a_server_a_process_counts_for_itself
    script = <<~'RUBY'
      require "oribi"
      Oribi.counter(:mine_total).increment(2)
      Oribi.gauge("mine").set(-3)
      fork { Oribi.counter("mine_total").increment }
      Process.wait
      names = ["Mine", "1st", "", "oribi_own_total", "a" * 65, nil]
      refused = names.count { |name| Oribi.counter(name).nil? rescue $!.is_a?(ArgumentError) }
      refused += 1 if (Oribi.counter(:mine_total).increment(-1) rescue $!.is_a?(ArgumentError))
      refused += 1 if (Oribi.histogram(:times, buckets: [2, 1]) rescue $!.is_a?(ArgumentError))
      Oribi.counter(:mine).increment
      puts [Oribi.counter(:mine_total).get, Oribi.gauge(:mine).get, refused].join(" ")
    RUBY
    output, = Open3.capture2e(RbConfig.ruby, "-I#{Helper::LIB}", "-e", script)
    said, numbers = output.lines.partition { |line| line.start_with?("oribi: ") }
    assert_equal ["3 -3 8\n"], numbers
    assert_match(/the counter mine counts nowhere, for mine is a gauge/, said.join)
  end

  # The files that a process has open.
  def opened(pid)
    Dir.glob("/proc/#{pid}/fd/*").filter_map do |fd|
      File.readlink(fd)
    rescue Errno::ENOENT
      nil
    end
  end

  def concurrently(clients, times, &block)
    share = times / clients
    Array.new(clients) { Thread.new { Array.new(share, &block) } }.flat_map(&:value)
  end

  def command(*words)
    runtime = { "ORIBI_RUNTIME_DIR" => File.join(server.directory, "control") }
    output, status = Open3.capture2e(runtime, Oribi::Binary.path, *words)
    assert_predicate status, :success?, output
  end

  # A worker that is killed while it counts has counted all but, perhaps, the last one.
  def killed_in_the_middle
    before = hits
    thread = Thread.new { connect.get("/endless") rescue nil } # rubocop:disable Style/RescueModifier
    tally = File.join(server.directory, "tally")
    wait_until("it has counted for a while") { File.size?(tally).to_i > 10_000 }
    writer = server.find("worker").find { |worker| opened(worker.pid).include?(tally) }
    Process.kill("KILL", writer.pid)
    thread.join
    wait_until("it is gone") { Helper.process(writer.pid).nil? }
    assert_includes [0, 1], hits - before - File.size(tally)
  end

  # More names than there is room for: a line, and no request fails.
  def full
    ask("/fill")
    ask("/fill")
    assert_equal 1, server.log.scan(/^oribi: the counter filler_\d+, and what comes after/).size
    before = hits
    ask("/count/5")
    assert_equal 5, hits - before
  end
end
