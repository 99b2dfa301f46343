# frozen_string_literal: true

require "helper_case"
require "oribi/hooks"
require "oribi/warm_up"

# The class by itself: order, arguments, what is refused.
class HooksByThemselvesTest < Minitest::Test
  def test_several_sources_one_after_the_other
    said = []
    hooks = Oribi::Hooks.new({ before_fork: -> { said << 1 } },
                             { "before_fork" => [proc { said << 2 }, proc { said << 3 }] }, {})
    assert hooks.any?("before_fork")
    refute hooks.any?("after_fork")
    hooks.run("before_fork", :unwanted)
    hooks.run("after_fork")
    assert_equal [1, 2, 3], said
  end

  def test_each_gets_as_many_arguments_as_it_takes
    said = []
    callables = [-> { said << [] }, ->(one) { said << [one] }, ->(*all) { said << all },
                 proc { |one, two| said << [one, two] }, ->(one, two = 0) { said << [one, two] },
                 Class.new { define_method(:call) { |one| said << [one] } }.new,
                 said.method(:push)]
    Oribi::Hooks.new("after_request_complete" => callables).run("after_request_complete", 1, 2)
    assert_equal [[], [1], [1, 2], [1, 2], [1, 2], [1], 1, 2], said
  end

  def test_what_one_raises_goes_to_the_caller_or_to_the_block
    said = []
    hooks = Oribi::Hooks.new("on_boot" => [-> { raise "no" }, -> { said << "next" }])
    assert_equal "no", assert_raises(RuntimeError) { hooks.run("on_boot") }.message
    assert_empty said
    hooks.run("on_boot") { |error| said << error.message }
    assert_equal %w[no next], said
  end

  def test_what_is_no_hook_is_refused
    error = assert_raises(Oribi::Error) { Oribi::Hooks.new({ "after_forking" => [] }) }
    assert_match(/no hook after_forking: there are before_fork, /, error.message)
    error = assert_raises(Oribi::Error) { Oribi::Hooks.new({ "after_fork" => ["me"] }) }
    assert_equal 'after_fork is "me", which does not call', error.message
    refute Oribi::Hooks.new({ "after_fork" => nil }).any?("after_fork")
  end
end

# What the tests of hooks in a running server have in common: hooks that write down that they were
# called.
module HooksOfAServer
  include Helper

  # `fail` and `wait` name hooks that raise, or wait at a gate.
  CONFIG = <<~'RUBY'
    say = lambda do |name, *words|
      File.write(File.join(__dir__, "said"), "#{[name, *words].join(' ')}\n", mode: "a")
      named = ->(file) { File.exist?(file) && File.read(file).split.include?(name) }
      File.read(File.join(__dir__, "gate")) if named[File.join(__dir__, "wait")]
      raise "#{name} will not" if named[File.join(__dir__, "fail")]
    end
    refuse = Module.new do
      def fork(...) = File.exist?("refuse") ? raise(Errno::EAGAIN) : super
    end
    Process.singleton_class.prepend(refuse)
    before_fork { |worker| say["before_fork", worker.nr, worker.generation, Process.pid] }
    after_fork do |worker|
      at_exit { say["at_exit", Process.pid] }
      say["after_fork", worker.nr, worker.generation, worker.pid, rand(1 << 60)]
    end
    after_mold_fork { say["after_mold_fork", Process.pid] }
    on_boot { say["on_boot", Process.pid] }
    before_worker_exit { |worker| say["before_worker_exit", worker.pid] }
    after_request_complete do |env, worker|
      say["after_request_complete", env["PATH_INFO"], worker.nr, Process.pid]
    end
  RUBY
  APP = <<~'RUBY'
    require "uri"
    use Rack::Lint unless $PROGRAM_NAME.end_with?("rackup")
    run ->(_env) { [200, { "content-type" => "text/plain" }, [Process.pid.to_s]] }
  RUBY

  def start(*arguments, app: APP, config: CONFIG, **options)
    files = { "oribi.rb" => config, **options.delete(:files).to_h }
    @server = Helper::Server.new(how, *with_config, *arguments, app: app, files: files, **options)
    File.mkfifo(File.join(@server.directory, "gate"))
    @server
  end

  def with_config = how == :rackup ? %w[--configfile=oribi.rb] : %w[-C oribi.rb]

  def teardown
    @server&.clean_up
  end

  def mark(file, *hooks) = File.write(File.join(@server.directory, file), hooks.join(" "))

  def said
    File.readlines(File.join(@server.directory, "said"), chomp: true).map(&:split)
  rescue Errno::ENOENT
    []
  end

  # What was said, once there is so much of it; only the lines of one hook where it is named.
  def said_after(count, hook = nil)
    lines = nil
    wait_until("#{count} #{hook}: #{said}, #{@server.log}") do
      lines = said.select { |line| hook.nil? || line.first == hook }
      lines.size >= count
    end
    lines
  end

  def wait_for_log(pattern)
    wait_until("#{pattern.inspect} in #{@server.log}") { @server.log.match?(pattern) }
  end

  def kill_a_worker
    victim = @server.find("worker").first
    Process.kill("KILL", victim.pid)
    wait_until("it is gone") { !victim.same?(Helper.process(victim.pid)) }
    victim
  end
end

# Each hook at its moment.
module MomentsOfHooks
  include HooksOfAServer

  def test_the_order_of_a_life
    start("--workers", "1").ready
    mold = @server.one("mold").pid
    worker = @server.one("worker").pid
    boot = said_after(4)
    assert_equal [["after_mold_fork", mold.to_s], ["before_fork", "1", "1", mold.to_s]], boot[0, 2]
    assert_equal ["after_fork", "1", "1", worker.to_s], boot[2][0, 4]
    assert_equal ["on_boot", mold.to_s], boot[3]

    assert_equal worker.to_s, @server.get("/a")
    assert_equal ["after_request_complete", "/a", "1", worker.to_s], said_after(5)[4]

    @server.signal("TERM")
    assert_equal 0, @server.wait
    assert_equal [["before_worker_exit", worker.to_s], ["at_exit", worker.to_s]], said[5..]
  end

  def test_a_respawn_and_a_new_generation
    start("--workers", "2").ready
    said_after(6)
    victim = kill_a_worker
    forks = said_after(3, "before_fork")
    assert_equal ["before_fork", victim.nr.to_s, "1"], forks[2][0, 3]
    after = said_after(3, "after_fork")
    refute_equal victim.pid.to_s, after[2][3]
    assert_equal 3, after.map(&:last).uniq.size, "all have random numbers of their own"
    assert_equal 1, said_after(1, "on_boot").size

    @server.signal("USR2")
    said_after(2, "on_boot")
    molds = said_after(2, "after_mold_fork").map(&:last)
    assert_equal molds, said_after(2, "on_boot").map(&:last)
    generations = said_after(5, "before_fork").map { |line| line[2] }
    assert_equal %w[2 2], generations[3..]
    assert_equal 2, said_after(2, "before_worker_exit").size
  end
end

class HooksOfOribiTest < Minitest::Test
  include MomentsOfHooks

  def how = :oribi

  # The reply is the client's before the hook runs, and the next one's worker comes after.
  def test_a_completed_request_is_answered_and_the_next_one_waits
    start("--workers", "1").ready
    mark("wait", "after_request_complete")
    assert_match(/\A\d+\z/, @server.get("/a"))
    said_after(1, "after_request_complete")
    gate = Helper::Gate.new(@server, "gate").arrived
    File.delete(File.join(@server.directory, "wait"))
    second = Thread.new { @server.get("/b") }
    refute second.join(0.1), "it is answered although the worker is in the hook"
    gate.open
    assert_match(/\A\d+\z/, second.value)
  end

  def test_what_does_no_harm_is_logged
    fail = "on_boot before_worker_exit after_request_complete"
    start("--workers", "1", files: { "fail" => fail }).ready
    2.times { @server.get("/a") }
    @server.signal("TERM")
    assert_equal 0, @server.wait
    assert_equal 2, @server.log.scan("after_request_complete will not").size, @server.log
    assert_match(/oribi.rb:\d+.*on_boot will not \(RuntimeError\)/, @server.log)
    assert_match(/oribi.rb:\d+.*before_worker_exit will not/, @server.log)
    assert_match(%r{worker 1: GET /a: .*oribi.rb:\d+}, @server.log)
    assert_equal "at_exit", said.last.first, "the worker ends as ever"
  end

  def test_a_generation_whose_mold_will_not_does_not_boot
    start("--workers", "1", files: { "fail" => "after_mold_fork" })
    assert_equal 1, @server.wait
    assert_match(/RuntimeError: after_mold_fork will not \(.*oribi.rb:5\)/, @server.log)
  end

  # What keeps a worker from being forked, or from being of use, is said and tried again.
  def test_a_fork_that_fails_is_tried_again
    %w[before_fork after_fork].each do |hook|
      start("--workers", "1").ready
      mark("fail", hook)
      kill_a_worker
      wait_for_log(/worker 1 gen 1 did not get ready: #{hook}: RuntimeError: .*oribi.rb:5/)
      before = said.size
      File.delete(File.join(@server.directory, "fail"))
      assert_match(/\A\d+\z/, @server.get("/a"))
      assert_operator before, :<, 30, "it was tried again without a pause"
      @server.clean_up
    end
    @server = nil
  end

  def test_a_fork_that_the_kernel_refuses_is_tried_again
    start("--workers", "1").ready
    mold = @server.one("mold")
    mark("refuse")
    kill_a_worker
    wait_for_log(/worker 1 gen 1 did not get ready: fork: Errno::EAGAIN/)
    File.delete(File.join(@server.directory, "refuse"))
    assert_match(/\A\d+\z/, @server.get("/a"))
    assert mold.same?(@server.one("mold"))
  end

  def test_a_first_boot_without_a_fit_worker_ends
    %w[before_fork after_fork].each do |hook|
      start("--workers", "2", files: { "fail" => hook })
      assert_equal 1, @server.wait
      assert_match(/^oribi: .*#{hook}: RuntimeError: #{hook} will not/, @server.log)
      @server.clean_up
    end
    @server = nil
  end

  def test_a_restart_without_a_fit_worker_leaves_the_old_one_serving
    start("--workers", "1").ready
    worker = @server.get("/a")
    mark("fail", "after_fork")
    @server.signal("USR2")
    wait_for_log(/generation 2 did not boot: after_fork: RuntimeError.*generation 1 serves on/)
    assert_equal worker, @server.get("/a")
  end

  def test_a_worker_told_to_leave_in_after_fork_leaves_in_order
    start("--workers", "1").ready
    mark("wait", "after_fork")
    kill_a_worker
    pid = said_after(2, "after_fork").last[3].to_i
    gate = Helper::Gate.new(@server, "gate").arrived
    File.delete(File.join(@server.directory, "wait"))
    Process.kill("TERM", pid)
    gate.open
    successor = @server.get("/a")
    refute_equal pid.to_s, successor
    wait_until("it ends in order") { said.include?(["at_exit", pid.to_s]) }
    assert_includes said, ["before_worker_exit", pid.to_s]
    refute_match(/\(pid #{pid}\) ended/, @server.log)
  end

  def test_signals_for_the_whole_group_do_nothing_to_workers
    start("--workers", "1").ready
    worker = @server.get("/a")
    %w[HUP USR1 USR2 INT TTIN].each { |signal| Process.kill(signal, worker.to_i) }
    assert_equal worker, @server.get("/a")
  end
end

class HooksOfRackupTest < Minitest::Test
  include MomentsOfHooks

  def how = :rackup
end

# As options of the handler, which a Ruby program calls.
class HooksOfHandlerTest < Minitest::Test
  include HooksOfAServer

  def how = :oribi

  PROGRAM = <<~'RUBY'
    require "oribi/handler"
    say = ->(*words) { File.write("said", "#{words.join(' ')}\n", mode: "a") }
    Oribi::Handler.run(->(_env) { [200, {}, [Process.pid.to_s]] },
                       "BeforeFork" => -> { say["first", Process.pid] },
                       AfterFork: ->(worker) { say["after_fork", worker.pid] },
                       ConfigFile: "oribi.rb", MaxWorkers: "1", bind: "tcp://127.0.0.1:0")
  RUBY

  def test_procs_come_before_those_of_the_file
    start(files: { "program.rb" => PROGRAM }, executable: "program.rb").ready
    mold = @server.one("mold").pid.to_s
    worker = @server.one("worker").pid.to_s
    lines = said_after(6)
    assert_equal [["after_mold_fork", mold], ["first", mold]], lines[0, 2]
    assert_equal %w[before_fork after_fork after_fork on_boot], lines[2..].map(&:first)
    assert_equal ["after_fork", worker], lines[3]
  end
end

# The request that a worker asks its app before any client does.
class WarmUpTest < Minitest::Test
  include HooksOfAServer

  def how = :oribi

  WARM = <<~'RUBY'
    require "uri"
    use Rack::Lint
    run(lambda do |env|
      request = "#{env['REQUEST_METHOD']} #{env['PATH_INFO']} #{env['QUERY_STRING']} " \
                "#{env['HTTP_HOST']} #{env['REMOTE_ADDR']}"
      File.write(File.join(__dir__, "said"), "#{request} #{Process.pid}\n", mode: "a")
      raise "no database here" if File.exist?(File.join(__dir__, "broken"))

      env["oribi.timeout"].extend(1)
      status = File.exist?(File.join(__dir__, "sick")) ? 503 : 204
      [env["PATH_INFO"] == "/health" ? status : 200, {}, []]
    end)
  RUBY

  def start(*arguments, **options)
    super("--warm-up", "/health?deep=1", *arguments, app: WARM, config: "", **options)
  end

  def test_every_worker_has_answered_it
    start("--workers", "2").ready
    workers = @server.workers(2).map { |worker| worker.pid.to_s }
    asked = said_after(2)
    assert_equal [%w[GET /health deep=1 localhost 127.0.0.1]], asked.map { |line| line[0, 5] }.uniq
    assert_equal workers.sort, asked.map(&:last).sort
    refute_match(/Lint/, @server.log)
  end

  def test_a_first_boot_ends_with_the_answer
    start(files: { "sick" => "" })
    assert_equal 1, @server.wait
    assert_match(%r{^oribi: .*warm_up: GET /health\?deep=1 answered 503}, @server.log)
  end

  def test_a_restart_leaves_the_old_generation_serving
    start("--workers", "1").ready
    said_after(1)
    mark("broken")
    @server.signal("USR2")
    wait_for_log(/generation 2 did not boot: warm_up: GET .* raised RuntimeError: no database/)
    assert_match(/config.ru:\d+:in/, @server.log, "the backtrace")
    File.delete(File.join(@server.directory, "broken"))
    assert_equal "200", @server.response("/").code
    assert_equal 1, @server.find("worker").size
  end

  # Bodies as Rack has them, and those who want to know that the reply is out.
  def test_the_answer_is_read_to_its_end
    heard = []
    body = Class.new do
      define_method(:each) { |&block| block.call(heard << "each") }
      define_method(:close) { heard << "close" }
    end
    app = lambda do |env|
      env["rack.response_finished"] << ->(_env, status, *) { heard << status }
      env["rack.after_reply"] << -> { heard << "after" }
      [200, {}, body.new]
    end
    Oribi::WarmUp.check(app, {}, "/")
    assert_equal ["each", "close", 200, "after"], heard
    callable = lambda do |stream|
      heard << stream.write("a", "b")
      stream.close
    end
    Oribi::WarmUp.check(->(_env) { [302, {}, callable] }, {}, "health")
    assert_equal 2, heard.last
  end
end
