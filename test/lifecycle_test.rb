# frozen_string_literal: true

require "helper_server"

# The life of the processes, seen from outside: who is whose parent, who reaps, what remains.
# Every step prints the tree it was judged by.
module Lifecycle
  include Helper

  def teardown
    @server&.clean_up
  end

  def start(*arguments, **options)
    @server = Server.new(how, *arguments, **options).ready
    @server.print_tree(name)
    @server
  end

  def assert_nothing_left(within:)
    began = Helper.now
    Helper.wait_until("nothing is left: #{@server.left_over.map(&:title)}", within: within) do
      @server.left_over.empty?
    end
    puts "  #{how}: nothing left after #{((Helper.now - began) * 1000).round} ms"
  end

  def kill_and_see_reaped(entry)
    Process.kill("KILL", entry.pid)
    Helper.wait_until("#{entry.title} is reaped", within: 5) do
      !entry.same?(Helper.process(entry.pid))
    end
  end

  def test_everyone_has_the_right_parent
    server = start("--workers", "2")
    supervisor = server.one("supervisor")
    mold = server.one("mold")
    workers = server.workers(2)
    assert_equal [1, 2], workers.map(&:nr).sort
    assert(workers.all? { |worker| worker.parent == mold.pid })
    assert_equal supervisor.pid, server.one("front").parent
    assert_parents(server, supervisor, mold)
    assert_equal "oribi: mold gen 1 /", mold.title
    pid, path = server.get("/a").split
    assert_includes workers.map(&:pid), pid.to_i
    assert_equal "/a", path
  end

  def test_a_killed_worker_is_reaped_by_its_mold_and_replaced
    server = start("--workers", "2")
    victim = server.workers(2).first
    kill_and_see_reaped(victim)
    Helper.wait_until("a successor") { server.workers(2).none? { |worker| worker.same?(victim) } }
    server.print_tree("worker #{victim.nr} killed")
    mold = server.one("mold")
    assert(server.workers(2).all? { |worker| worker.parent == mold.pid })
    assert_match(/worker #{victim.nr} gen 1 \(pid #{victim.pid}\) ended: signal 9/, server.log)
    assert_match(/\A\d+ /, server.get)
  end

  def test_a_killed_mold_leaves_its_workers_serving_to_the_subreaper
    server = start("--workers", "2")
    workers = server.workers(2)
    mold = server.one("mold")
    kill_and_see_reaped(mold)
    successor = Helper.wait_until("another mold") do
      server.find("mold").find { |other| !other.same?(mold) && other.title.include?("gen 1") }
    end
    server.print_tree("mold killed")
    assert_equal workers.map(&:pid).sort, server.workers(2).map(&:pid).sort
    assert(server.workers(2).all? { |worker| worker.parent == reaper_pid(server) })
    assert_equal server.one("supervisor").pid, successor.parent
    assert_includes workers.map(&:pid), server.get.to_i

    kill_and_see_reaped(workers.first)
    newcomer = Helper.wait_until("a worker of the new mold") do
      server.find("worker").find { |worker| worker.parent == successor.pid }
    end
    server.print_tree("an orphan killed")
    # The supervisor can say how only what it has reaped itself.
    assert_match(/\(pid #{workers.first.pid}\) ended: signal 9/, server.log) if how == :oribi
    assert_equal workers.first.nr, newcomer.nr
  end

  def test_a_killed_front_is_replaced_on_the_same_listeners
    server = start("--workers", "1")
    front = server.one("front")
    Process.kill("KILL", front.pid)
    # The listeners stay open: a client may wait, but is not refused.
    answer = server.get
    successor = server.one("front")
    server.print_tree("front killed")
    assert_equal server.workers(1).first.pid, answer.to_i
    refute successor.same?(front)
    assert_equal server.one("supervisor").pid, successor.parent
  end

  def test_nothing_outlives_a_killed_supervisor_by_a_second
    server = start("--workers", "2")
    server.hold
    Process.kill("KILL", server.one("supervisor").pid)
    assert_nothing_left(within: 1)
    assert_equal killed_supervisor_status, server.wait
  end

  def test_two_generations_side_by_side
    server = start("--workers", "2")
    old_mold = server.one("mold")
    server.workers(2)
    server.hold
    server.signal("HUP")
    fresh = server.workers(2, generation: 2)
    old = server.workers(1)
    server.print_tree("generation 2 serves, a worker of generation 1 finishes its request")
    mold = server.find("mold").find { |entry| entry.generation == 2 }
    assert(fresh.all? { |worker| worker.parent == mold.pid })
    assert_equal server.one("supervisor").pid, mold.parent
    assert_equal old_mold.pid, old.first.parent
    Helper.wait_until("only generation 2 answers") { fresh.map(&:pid).include?(server.get.to_i) }
    assert_equal "#{old.first.pid} /hold", server.release
    Helper.wait_until("generation 1 is gone") do
      server.tree.none? { |entry| entry.role && entry.title.include?("gen 1") }
    end
    server.print_tree("generation 1 is gone")
    assert_equal 2, server.workers(2, generation: 2).size
  end

  def test_a_generation_that_does_not_boot_leaves_the_old_one_serving
    server = start("--workers", "1")
    worker = server.workers(1).first
    broken = File.join(server.directory, "broken")
    File.write(broken, "")
    server.signal("USR2")
    Helper.wait_until("the failure is told") { server.log.include?("generation 2 did not boot") }
    assert_match(/no database here/, server.log)
    assert_match(/generation 2 did not boot.*generation 1 serves on/, server.log)
    Helper.wait_until("its mold is gone") { server.find("mold").size == 1 }
    assert_equal worker.pid, server.get.to_i

    File.delete(broken)
    server.signal("USR2")
    server.workers(1, generation: 3)
    Helper.wait_until("generation 3 answers") { server.get.to_i != worker.pid }
  end

  def test_a_gentle_end_finishes_what_runs
    %w[TERM INT].each do |signal|
      server = start("--workers", "1")
      server.tree
      server.hold
      server.signal(signal)
      Helper.wait_until("the end begins") { server.log.include?("#{signal}: finishing") }
      assert_match(%r{/hold\z}, server.release)
      assert_equal 0, server.wait
      assert_nothing_left(within: 1)
      server.clean_up
      @server = nil
    end
  end

  # As a terminal does to its foreground group.
  def test_an_interrupt_of_the_whole_group_counts_once
    server = start("--workers", "1")
    server.workers(1)
    server.hold
    group = Process.getpgid(server.pid)
    members = server.tree.map(&:pid).select { |pid| Process.getpgid(pid) == group }
    assert_operator members.size, :>, 2
    assert_everyone_finishes("INT", members)
  end

  # As service managers do.
  def test_a_signal_to_every_process_is_a_gentle_end
    server = start("--workers", "2")
    server.workers(2)
    server.hold
    assert_everyone_finishes("TERM", server.tree.map(&:pid))
  end

  def assert_everyone_finishes(signal, pids)
    pids.each { |pid| Process.kill(signal, pid) }
    Helper.wait_until("the end begins") { @server.log.include?("#{signal}: finishing") }
    assert_match(%r{/hold\z}, @server.release)
    assert_equal 0, @server.wait
    assert_nothing_left(within: 1)
  end

  def test_a_request_that_its_worker_died_of_is_answered_at_once
    server = start("--workers", "1")
    worker = server.workers(1).first
    server.hold
    kill_and_see_reaped(worker)
    assert_equal "502", server.answer_held.code
    Helper.wait_until("it is told") { server.log.include?("died with requests: 1 lost, 0 back") }
    refute_equal worker.pid, server.get.to_i
  end

  def test_retry_idempotent_runs_it_again
    server = start("--workers", "1", "--retry-idempotent=true")
    worker = server.workers(1).first
    server.hold
    kill_and_see_reaped(worker)
    server.hold_again
    pid, path = server.release.split
    assert_equal "/hold", path
    assert_equal server.workers(1).first.pid, pid.to_i
    refute_equal worker.pid, pid.to_i
  end

  def test_a_second_int_and_a_quit_end_at_once
    { %w[INT INT] => 130, %w[QUIT] => 131 }.each do |signals, status|
      server = start("--workers", "1")
      server.tree
      server.hold
      signals.each_with_index do |signal, index|
        Helper.wait_until("the first is seen") { server.log.include?("finishing") } if index == 1
        server.signal(signal)
      end
      assert_equal status, server.wait(within: 2)
      assert_nothing_left(within: 1)
      server.clean_up
      @server = nil
    end
  end

  def test_one_worker_more_or_less
    server = start("--workers", "1")
    server.workers(1)
    server.signal("TTIN")
    assert_equal [1, 2], server.workers(2).map(&:nr).sort
    server.print_tree("TTIN")
    server.signal("TTOU")
    assert_equal [1], server.workers(1).map(&:nr)
    server.signal("USR1")
    server.signal("TTOU")
    Helper.wait_until("the last one stays") { server.log.include?("no fewer than 1") }
    assert_match(/\A\d+ /, server.get)
  end

  def test_a_request_that_never_ends_is_ended_by_shutdown_timeout
    server = start("--workers", "1", "--shutdown-timeout", "0.3")
    server.tree
    server.hold
    server.signal("TERM")
    assert_equal 0, server.wait(within: 6)
    assert_nothing_left(within: 1)
    assert_match(/did not leave in time and is killed/, server.log)
  end

  def test_socket_files_are_removed
    directory = Dir.mktmpdir("oribi-socket")
    path = File.join(directory, "a.sock")
    UNIXServer.new(path).close
    assert File.exist?(path), "a stale file is what this test begins with"
    server = start("--workers", "1", bind: "unix://#{path}")
    UNIXSocket.open(path) do |socket|
      socket.write("GET /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
      assert_match(%r{ /x\r?$}, socket.read)
    end
    server.signal("TERM")
    assert_equal 0, server.wait
    refute File.exist?(path)
  ensure
    FileUtils.remove_entry(directory)
  end
end

# Started as `oribi config.ru`.
class LifecycleOfOribiTest < Minitest::Test
  include Lifecycle

  def how = :oribi

  def assert_parents(server, supervisor, mold)
    assert_equal server.pid, supervisor.pid, "the watching parent sees the supervisor"
    assert_equal supervisor.pid, mold.parent
  end

  def reaper_pid(server) = server.pid

  def killed_supervisor_status = "signal 9"

  def test_the_end_may_come_while_the_app_loads
    app = "File.read(File.join(__dir__, 'fifo'))\nrun ->(_env) { [200, {}, []] }\n"
    { "TERM" => 0, "INT" => 0, "QUIT" => 131, "KILL" => "signal 9" }.each do |signal, status|
      @server = Server.new(how, app: app)
      Helper.wait_until("the mold loads the app") do
        @server.find("mold").any? { |mold| mold.title.include?("gen 1") }
      end
      @server.signal(signal)
      assert_equal status, @server.wait(within: 3), signal
      assert_nothing_left(within: 1)
      @server.clean_up
    end
    @server = nil
  end
end

# Started as `rackup -s Oribi`.
class LifecycleOfRackupTest < Minitest::Test
  include Lifecycle

  def how = :rackup

  def assert_parents(server, supervisor, mold)
    assert_equal server.pid, supervisor.parent, "the watching parent sees the calling process"
    assert_equal server.pid, mold.parent
  end

  def reaper_pid(server) = server.pid

  def killed_supervisor_status = 137

  def test_nothing_outlives_a_killed_calling_process_by_a_second
    server = start("--workers", "2")
    server.workers(2)
    server.hold
    server.signal("KILL")
    assert_nothing_left(within: 1)
  end

  # What loads the app again knows nothing of us until it gets to the handler.
  def test_a_second_generation_that_loads_does_not_outlive_the_supervisor
    app = Server::APP.sub("use",
                          "File.read(File.join(__dir__, 'fifo')) if File.exist?('slow')\nuse")
    server = start("--workers", "1", app: app)
    File.write(File.join(server.directory, "slow"), "")
    server.signal("HUP")
    supervisor = server.one("supervisor")
    Helper.wait_until("generation 2 loads") do
      server.tree.find { |entry| entry.parent == supervisor.pid && entry.title.include?("rackup") }
    end
    server.print_tree("generation 2 loads")
    Process.kill("KILL", supervisor.pid)
    assert_nothing_left(within: 1)
  end

  def test_a_pid_file_names_the_calling_process_to_the_end
    server = start("--workers", "1", rackup: ["-P", "server.pid"])
    file = File.join(server.directory, "server.pid")
    assert_equal server.pid, File.read(file).to_i
    server.signal("HUP")
    server.workers(1, generation: 2)
    Helper.wait_until("generation 1 is gone") { server.find("mold").size == 1 }
    server.print_tree("generation 2, without a pid file of its own")
    assert_equal server.pid, File.read(file).to_i
    server.signal("TERM")
    assert_equal 0, server.wait
    refute File.exist?(file)
  end
end
