# frozen_string_literal: true

require "helper_case"

# Workers that are replaced for their memory or their age, or because HUP says so, and what becomes
# of the generation before.
class WearTest < Helper::Case
  # Keeps what it is asked to keep.
  APP = <<~'RUBY'
    KEPT = []
    use Rack::Lint
    run(lambda do |env|
      KEPT << ("x" * Integer(env["QUERY_STRING"])) unless env["QUERY_STRING"].empty?
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    end)
  RUBY

  def serve(*arguments)
    @server = Helper::Server.new(:oribi, *arguments, app: APP).ready
  end

  def pids(count, generation: 1) = server.workers(count, generation: generation).map(&:pid)

  def teardown
    super
    assert_empty @server.left_over
  end

  { "max-rss" => "max_rss", "max-pss" => "max_pss" }.each do |flag, name|
    define_method(:"test_a_worker_that_grows_beyond_#{name}_is_replaced") do
      serve("-w", "2", "--#{flag}=150m")
      before = pids(2)
      eater = server.get("/?#{200 << 20}").to_i
      assert_includes before, eater
      wait_for_log(/worker \d+ gen 1 \(pid #{eater}\) is replaced: it has \d+\.\d MiB, #{name} is/)
      wait_until("the big one is gone") { pids(2).none?(eater) }
      assert_equal 1, (before & pids(2)).size, "the other one stays"
    end
  end

  def test_workers_grow_old_one_after_the_other
    serve("-w", "2", "--max-age=1.5")
    before = pids(2)
    seen = []
    wait_until("all are new") do
      seen << server.find("worker").size
      server.get
      (pids(2) & before).empty?
    end
    assert_operator seen.max, :<=, 3, "one relief at a time"
    assert_match(/is replaced: max_age is 1.5 s/, server.log)
  end

  def test_hup_can_mean_new_workers_of_the_same_app
    serve("-w", "3", "--hup-action=recycle")
    before = pids(3)
    server.signal("HUP")
    wait_until("all are new") do
      assert_operator server.find("worker").size, :<=, 5
      now = server.find("worker").map(&:pid)
      now.size == 3 && (now & before).empty?
    end
    assert_equal [1], server.find("mold").map(&:generation)
  end

  def test_hup_can_mean_the_end
    serve("-w", "1", "--hup-action=exit")
    server.signal("HUP")
    assert_equal 0, server.wait
    assert_match(/HUP: finishing what runs and waits/, server.log)
  end

  def test_the_old_generation_is_held_and_then_leaves
    serve("-w", "1", "--rollback-window=2")
    server.signal("USR2")
    wait_for_log("generation 2 serves, generation 1 is held for 2 s")
    assert_equal 2, server.find("mold").size
    wait_until("generation 1 is gone") { server.find("mold").map(&:generation) == [2] }
  end

  def test_with_spawn_interval_usr1_ends_slowly
    serve("-w", "3", "--spawn-interval=0.4")
    pids(3)
    client = connect
    assert_nil client.get["connection"]
    server.signal("USR1")
    counts = []
    wait_until("the first leaves") { (counts << server.find("worker").size).last == 2 }
    # It still serves, but keeps no connection: another server is to have them.
    assert_equal "close", client.get["connection"]
    wait_until("it ends") do
      counts << server.find("worker").size unless server.ended?
      server.ended?
    end
    assert_equal 0, server.wait
    assert_includes counts, 1
  end

  def test_after_an_error_forks_wait
    serve("-w", "1", "--err-respawn-interval=1")
    before, = pids(1)
    server.get
    died = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    Process.kill("KILL", before)
    wait_until("it is replaced") { server.find("worker").any? { |worker| worker.pid != before } }
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - died, :>=, 1

    # One that was told to leave has not failed.
    before, = pids(1)
    told = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    Process.kill("TERM", before)
    wait_until("it is replaced") { server.find("worker").any? { |worker| worker.pid != before } }
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - told, :<, 1
  end

  def test_a_new_worker_that_hangs_is_given_up
    hooks = 'after_fork { sleep if File.exist?(File.join(__dir__, "hang")) }'
    @server = Helper::Server.new(:oribi, "-w", "1", "--start-timeout=1", "-C", "hooks.rb",
                                 app: APP, files: { "hooks.rb" => hooks }).ready
    before, = pids(1)
    File.write(File.join(server.directory, "hang"), "")
    server.signal("USR2")
    wait_for_log(/generation 2 did not boot: worker 1 was not ready within start_timeout/)
    assert_equal before, server.get.to_i
    wait_until("generation 2 is gone") { server.find("mold").map(&:generation) == [1] }
  end
end
