# frozen_string_literal: true

require "helper_case"
require "json"

# Requests that run longer than they may.
class RequestTimeoutTest < Helper::Case
  LIMIT = 0.5
  KILLED = /^oribi:\ worker\ (\d)\ gen\ 1\ \(pid\ (\d+)\)\ is\ killed:
            \ (.*)\ has\ run\ for\ (\d+\.\d)\ s\ \(request_timeout\)$/x

  def limited(*arguments) = start("timeout.ru", "--request-timeout", LIMIT.to_s, *arguments)

  def killed = server.log.scan(KILLED)

  # Who called the app, by path.
  def pid_of(path) = lines("called").filter_map { |line| line[/ #{path} (\d+)\z/, 1] }.last.to_i

  def assert_too_long(client)
    answer = client.answer
    assert_equal [504, "The request ran longer than it may.\n"], [answer.status, answer.body]
  end

  # A request that is given up; whatever began before it has run longer than the limit.
  def let_time_pass = assert_too_long(ask_for("/sleep"))

  def test_the_client_gets_a_504_and_only_that_worker_is_replaced
    limited("-w", "2", "--access-log", "access")
    before = server.workers(2).map(&:pid)
    client = ask_for("/sleep?a=b")
    began = now
    assert_too_long(client)
    assert_operator now - began, :>=, LIMIT / 2
    gone = pid_of("/sleep")
    after = wait_until("another worker") do
      pids = server.workers(2).map(&:pid)
      pids unless pids.include?(gone)
    end
    assert_equal before - [gone], before & after
    number, pid, request, seconds = wait_until("a line: #{server.log}") { killed.first }
    assert_equal [gone, "GET /sleep"], [pid.to_i, request]
    assert_operator seconds.to_f, :>=, LIMIT
    wait_for_log(/^oribi: worker #{number} gen 1 \(pid #{gone}\) ended: signal 9$/)
    # The connection goes on.
    assert_equal 200, client.get("/").status
    wait_for_lines("access", 2)
    assert_match(%r{"GET /sleep\?a=b HTTP/1\.1" 504 }, lines("access").first)
  end

  # In Ruby, in the kernel, in C with the interpreter held. No death counts as an early one.
  def test_whatever_it_is_at
    limited("-w", "1")
    paths = %w[/spin /read /hash /sleep /read /spin]
    paths.each { |path| assert_too_long(ask_for(path)) }
    assert_equal 200, get.status
    # The client may have its answer before the line is written.
    wait_until("all lines: #{server.log}") { killed.size == paths.size }
    assert_equal(paths, killed.map { |line| line[2].delete_prefix("GET ") })
    refute_includes server.log, "die young"
  end

  def test_it_is_not_run_again
    limited("-w", "2", "--retry-idempotent=true")
    gone = server.workers(2).map(&:pid)
    let_time_pass
    gone &= [pid_of("/sleep")]
    wait_until("another worker") { (server.workers(2).map(&:pid) & gone).empty? }
    assert_equal 200, get.status
    assert_equal 1, lines("called").grep(%r{GET /sleep}).size
  end

  def test_a_reply_that_has_begun_is_cut
    limited("-w", "1")
    client = ask_for("/stream")
    assert_equal 200, client.head.status
    assert_equal "first", client.chunk
    assert_raises(EOFError) { client.chunk }
    assert_equal "GET /stream", wait_until("a line") { killed.first }[2]
  end

  def test_the_other_threads_of_its_worker_go_with_it
    limited("-w", "1", "-t", "2")
    gate("gate")
    other = ask_for("/cancel")
    wait_for_lines("called", 1)
    let_time_pass
    assert_equal 502, other.answer.status
    assert_equal 200, get.status
  end

  def test_what_the_app_extends_or_cancels_runs_on
    limited("-w", "3")
    door = gate("gate")
    clients = %w[/extend /cancel].map { |path| ask_for(path) }
    wait_for_lines("called", 2)
    let_time_pass
    door.open_until { clients.none?(&:quiet?) }
    answers = clients.map(&:answer)
    assert_equal [200, 200], answers.map(&:status)
    wait_for_log(%r{is killed: GET /sleep})
    assert_equal 1, killed.size
  end

  def test_a_connection_the_app_has_taken_is_the_app_s
    limited("-w", "2")
    door = gate("gate")
    taken = ask_for("/hijack")
    assert_equal 200, taken.head.status
    let_time_pass
    door.open
    assert_equal "bye", taken.rest
  end

  def test_a_request_can_have_one_where_others_have_none
    start("timeout.ru", "-w", "1")
    %w[/set /thread].each do |path|
      assert_too_long(ask_for(path))
      wait_for_log(/is killed: GET #{path} has run for/)
    end
    # Nothing is left of it for the next one.
    assert_equal 200, get("/leave").status
    assert_equal "[nil, nil, 1000.0, nil, nil, nil]", numbers
  end

  # What the app is told, whole seconds only: a little less than it has set.
  def numbers
    answer = get("/numbers").body.split(" ", 2).last
    answer.gsub(/\d+\.\d+(e-\d+)?/) { |seconds| seconds.to_f.ceil.to_f.to_s }
  end

  def test_what_the_app_is_told
    start("timeout.ru", "-w", "1", "--request-timeout", "50")
    assert_equal "[50.0, 150.0, 1000.0, nil, nil, nil]", numbers
    wrong = get("/wrong").body
    ["0 is no number of seconds above 0", "-1 is no", "\"invalid value for Float", "NaN is no"]
      .each { |message| assert_includes wrong.delete("\\"), message }
  end
end

# Requests whose backtrace is logged.
class SlowRequestTest < Helper::Case
  def watched(*arguments, **options)
    start("timeout.ru", "--request-timeout-soft", "0.1", *arguments, **options)
  end

  # The app's line that has this in it.
  def line_of(text)
    number = Case.source("timeout.ru").lines.index { |line| line.include?(text) } + 1
    /config\.ru:#{number}:in /
  end

  def wait_for_slow(path, text = "\"#{path}\" =>")
    found = wait_for_log(/^oribi:\ worker\ \d:\ GET\ #{path}:\ has\ run\ for\ (\d+\.\d)\ s
                          \ \(request_timeout_soft\)\n((?:\t.*\n)+)/x)
    assert_match line_of(text), found[2].lines.grep(/config\.ru/).first
    refute_includes found[2], "lib/oribi"
    assert_operator found[1].to_f, :>=, 0.1
  end

  def slow = server.log.scan(/GET (\S+): has run for/).flatten

  # What waits in the kernel is not interrupted.
  def test_it_is_logged_once_where_it_is_and_goes_on
    watched("-w", "1")
    door = gate("gate")
    client = ask_for("/gate")
    wait_for_slow("/gate")
    door.open
    assert_equal 200, client.answer.status
    client = ask_for("/spin")
    wait_for_slow("/spin")
    File.write(File.join(server.directory, "go"), "")
    assert_equal 200, client.answer.status
    assert_equal 200, get.status
    assert_equal %w[/gate /spin], slow
    assert_equal 1, lines("called").map { |line| line.split.last }.uniq.size
  end

  def test_it_is_late_where_c_keeps_the_interpreter_to_itself
    watched("-w", "1")
    door = gate("gate")
    client = ask_for("/late")
    wait_for_log(%r{GET /late: has run for})
    door.open
    assert_equal 200, client.answer.status
  end

  def test_each_thread_is_asked_for_its_own
    watched("-w", "1", "-t", "3")
    doors = %w[gate other].map { |name| gate(name) }
    clients = %w[/gate /other].map { |path| ask_for(path) }
    %w[/gate /other].each { |path| wait_for_slow(path) }
    doors.each(&:open)
    assert_equal([200, 200], clients.map { |client| client.answer.status })
    assert_equal %w[/gate /other], slow.sort
  end

  def test_a_request_can_ask_for_it
    start("timeout.ru", "-w", "1")
    door = gate("gate")
    client = ask_for("/soft")
    wait_for_slow("/soft")
    door.open
    assert_equal 200, client.answer.status
  end

  def test_first_the_backtrace_then_the_end
    watched("-w", "1", "--request-timeout", "1")
    assert_equal 504, ask_for("/sleep").answer.status
    wait_for_slow("/sleep")
    wait_for_log(%r{is killed: GET /sleep})
    assert_operator server.log.index("/sleep: has run"), :<, server.log.index("is killed")
  end

  HOOKS = <<~'RUBY'
    on_request_timeout { raise "oh no" }
    on_request_timeout do |env, thread|
      where = thread.backtrace.grep(/config\.ru/).first
      File.write("hooked", "#{env['PATH_INFO']} #{where}\n", mode: "a")
    end
  RUBY

  def test_the_hook_gets_env_and_thread
    watched("-w", "1", "-C", "oribi.rb", files: { "oribi.rb" => HOOKS })
    door = gate("gate")
    client = ask_for("/gate")
    path, where = wait_for_lines("hooked", 1).first.split(" ", 2)
    assert_equal "/gate", path
    assert_match line_of('"/gate" =>'), where
    wait_for_log(%r{^oribi: worker 1: GET /gate: \S+/oribi\.rb:1:.* oh no \(RuntimeError\)})
    door.open
    assert_equal 200, client.answer.status
  end

  # The records of the error log; the last line may still be on its way.
  def errors
    path = File.join(server.directory, "errors")
    File.exist?(path) ? File.readlines(path).grep(/\n\z/).map { |line| JSON.parse(line) } : []
  end

  def test_as_a_record
    arguments = %w[-b unix://socket -w 1 --request-timeout-soft 0.1 --error-log errors
                   --error-log-format json]
    self.class.stop
    @server = Helper::Server.new(:oribi, *arguments, app: Case.source("timeout.ru"))
    wait_until("it serves") { errors.any? { |record| record["message"]&.match?(/worker.? of/) } }
    door = gate("gate")
    client = keep(Helper::Client.unix(File.join(server.directory, "socket")))
    client.write(Helper::Client.request("GET /gate?x", "X-Request-Id: id.1"))
    record = wait_until("a record") { errors.find { |found| found["seconds"] } }
    door.open
    assert_equal 200, client.answer.status
    assert_equal ["worker", 1, "GET", "/gate", "id.1"],
                 record.values_at("role", "worker", "method", "path", "request_id")
    assert_match(/\Ahas run for \d+\.\d s \(request_timeout_soft\)\z/, record["message"])
    assert_operator record["seconds"], :>=, 0.1
    assert_match line_of('"/gate" =>'), record["backtrace"].grep(/config\.ru/).first
  end

  def test_under_rackup
    app = Case.source("timeout.ru")
    self.class.stop
    @server = Helper::Server.new(:rackup, "--workers=1", "--request-timeout=1",
                                 "--request-timeout-soft=0.1", app: app).ready
    assert_equal 504, ask_for("/sleep").answer.status
    wait_for_slow("/sleep")
    wait_for_log(%r{is killed: GET /sleep has run for})
    assert_equal 200, get.status
  end
end
