# frozen_string_literal: true

require "helper_case"

# `isolation: fresh`: each request gets an interpreter that no other request has used.
class FreshTest < Helper::Case
  serve "leaks.ru", "--isolation", "fresh", "--workers", "2"

  # What a request finds where another one before it has left something: the answers of the app's
  # LEAKS, each named.
  CLEAN = { "global" => "nil", "class_variable" => "0", "constant" => "false", "method" => "false",
            "env" => "nil", "directory" => "false", "umask" => "false", "file" => "false",
            "memory" => "false", "seed" => "false", "feature" => "false", "thread" => "false",
            "trap" => "false", "at_exit" => "false", "object_space" => "0",
            "thread_variable" => "nil" }.freeze
  SLOW_START = <<~'RUBY'
    after_fork do
      sleep 0.7
      File.write("started", "\n", mode: "a")
    end
  RUBY

  CLEAN.each do |name, clean|
    define_method("test_#{name}_does_not_reach_another_request") do
      pid = ask("/leave/#{name}")["x-pid"]
      # What a process does at its end, it does once it has answered.
      wait_until("process #{pid} has gone") { Helper.process(pid.to_i).nil? }
      # More than stood ready when it was left.
      5.times { assert_equal clean, ask("/see/#{name}").body }
    end
  end

  # What the tests above look at is there to be seen: one interpreter for all shows each of them.
  def test_the_same_is_seen_where_an_interpreter_is_kept
    start("leaks.ru", "--isolation", "prefork", "--workers", "1")
    seen = CLEAN.keys.to_h do |name|
      ask("/leave/#{name}")
      [name, ask("/see/#{name}").body]
    end
    same = CLEAN.select { |name, clean| seen[name] == clean }
    assert_empty same
  end

  def test_each_request_has_its_own_process_and_a_used_one_leaves_without_a_word
    pids = Array.new(12) { ask("/names")["x-pid"].to_i }
    assert_equal pids.uniq, pids
    wait_until("they have gone") { pids.none? { |pid| Helper.process(pid) } }
    server.workers(4)
    refute_match(/ended|died|young|replaced/, server.log)
  end

  def test_luck_differs
    lucks = Array.new(8) { ask("/random").body.lines }
    lucks.transpose.each { |same| assert_equal same.uniq, same }
  end

  def test_memory_does_not_grow
    mold = server.one("mold")
    ask("/leave/memory")
    before = resident(mold.pid)
    12.times { ask("/leave/memory") }
    workers = server.workers(4)
    assert_in_delta before, resident(mold.pid), 4 << 10, "the mold, KiB"
    workers.each { |worker| assert_operator resident(worker.pid), :<, before + (16 << 10) }
  end

  # No more at once than there are workers, and those that come too many wait.
  def test_a_burst_is_answered_two_at_a_time
    FileUtils.rm_f(File.join(server.directory, "turns"))
    answers = Array.new(12) { ask_for("/at_once") }.map(&:answer)
    assert_equal [200], answers.map(&:status).uniq
    assert_equal 12, answers.map { |answer| answer["x-pid"] }.uniq.size
    running = 0
    depths = wait_for_lines("turns", 24).map { |turn| running += turn == "+" ? 1 : -1 }
    assert_equal 2, depths.max
  end

  def test_a_spare_stands_ready_however_long_a_start_takes
    start("leaks.ru", "--isolation", "fresh", "--workers", "1", "--config", "oribi.rb",
          files: { "oribi.rb" => SLOW_START })
    wait_for_lines("started", 2)
    began = Helper.now
    pids = Array.new(2) { ask("/names")["x-pid"] }
    assert_operator Helper.now - began, :<, 0.6, "nobody waited for a start"
    pids << ask("/names")["x-pid"]
    assert_operator Helper.now - began, :>, 0.6, "or the hook was not run"
    assert_equal pids.uniq, pids
  end

  def test_a_process_that_dies_in_its_request_takes_nothing_with_it
    start("leaks.ru", "--isolation", "fresh", "--workers", "2", "--request-timeout", "1")
    gate = gate("gate")
    held = ask_for("/hold/gate")
    gate.arrived
    busy = wait_until("one has it open") do
      server.find("worker").find { |worker| open_files(worker.pid).include?("gate") }
    end
    Process.kill("KILL", busy.pid)
    assert_equal 502, held.answer.status
    gate.release
    pids = Array.new(8) { ask("/names")["x-pid"].to_i }
    refute_includes pids, busy.pid
    late = ask_for("/hold/gate")
    assert_equal 504, late.answer.status
    refute_match(/young/, server.log)
    assert_equal 200, ask("/names").status
  end

  # Under a load that never ends: a restart, and then a stop.
  def test_restart_and_stop_under_load_lose_nothing
    start("leaks.ru", "--isolation", "fresh", "--workers", "2")
    asking = Array.new(3) { Thread.new { ask_until_refused } }
    wait_until("some are answered") { server.find("worker").any? { |worker| worker.nr > 2 } }
    server.signal("USR2")
    wait_for_log(/generation 2 serves/)
    sleep 0.2
    server.signal("TERM")
    assert_equal 0, server.wait
    statuses = asking.flat_map(&:value)
    assert_equal [200], statuses.uniq
    assert_operator statuses.size, :>, 20
    assert_empty server.left_over
  end

  # The other levels keep their interpreter: `prefork` runs one request in it at a time, `threads`
  # as many as there are threads.
  def test_what_the_other_levels_share
    levels = { "prefork --workers 2" => [2, 2], "threads --workers 1 --threads 3" => [3, 1] }
    levels.each do |words, (at_once, processes)|
      start("leaks.ru", "--isolation", *words.split)
      answers = Array.new(12) { ask_for("/at_once") }.map(&:answer)
      assert_equal [200], answers.map(&:status).uniq
      running = 0
      depths = wait_for_lines("turns", 24).map { |turn| running += turn == "+" ? 1 : -1 }
      assert_equal at_once, depths.max, words
      assert_operator answers.map { |answer| answer["x-pid"] }.uniq.size, :<=, processes
      @clients.each(&:close)
      @server.clean_up
      @server = @clients = nil
    end
  end

  # What runs once for each worker runs for each request; the request that warms up is the mold's.
  def test_hooks_run_in_each_and_the_warm_up_in_the_mold
    hooks = %w[before_fork after_fork before_worker_exit after_request_complete].map do |name|
      "#{name} { File.write('hooks', \"#{name}\\n\", mode: 'a') }\n"
    end
    start("leaks.ru", "--isolation", "fresh", "--workers", "1", "--config", "oribi.rb",
          "--warm-up", "/leave/global", files: { "oribi.rb" => hooks.join })
    assert_equal "1", ask("/see/global").body
    3.times { ask("/names") }
    counts = wait_until("four have left") do
      counts = lines("hooks").tally
      counts if counts.values_at("before_worker_exit", "after_request_complete") == [4, 4] &&
                counts["after_fork"] == 6
    end
    assert_equal 6, counts["before_fork"]
  end

  # The mold asks once more before its first fork, when there is a server already.
  def test_a_warm_up_that_fails_when_repeated_ends_nothing
    self.class.stop
    app = <<~'RUBY'
      count = 0
      run(lambda do |env|
        env["PATH_INFO"] == "/warm" && (count += 1) > 1 and raise "only once"
        [200, {}, ["warmed #{count} times"]]
      end)
    RUBY
    @server = Helper::Server.new(:oribi, "--isolation", "fresh", "--workers", "1",
                                 "--warm-up", "/warm", app: app).ready
    assert_equal ["warmed 2 times"] * 3, Array.new(3) { ask("/").body }
    assert_match(/warm_up: GET \/warm raised .*only once/, server.log)
  end

  private

  # A request on a connection of its own.
  def ask(path)
    client = Helper::Client.tcp(port)
    answer = client.get(path, "connection: close")
    assert_equal 200, answer.status, answer.body
    answer
  ensure
    client&.close
  end

  def ask_until_refused
    statuses = []
    loop do
      client = Helper::Client.tcp(@port ||= port)
      statuses << client.get("/names", "connection: close").status
    end
  rescue Errno::ECONNREFUSED
    statuses
  end

  def resident(pid) = Integer(File.read("/proc/#{pid}/status")[/RssAnon:\s+(\d+)/, 1])

  def open_files(pid)
    Dir.glob("/proc/#{pid}/fd/*").map { |fd| File.basename(File.readlink(fd)) }
  rescue Errno::ENOENT
    []
  end
end
