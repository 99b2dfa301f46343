# frozen_string_literal: true

require "helper_case"
require "json"
require "open3"

# The admin listener: what monitoring asks, and what it is told.
class AdminTest < Helper::Case
  APP = <<~'RUBY'
    require "oribi"
    require "uri"
    use Rack::Lint
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/boom" then raise "boom"
      when "/missing" then next [404, { "content-type" => "text/plain" }, ["no"]]
      when "/hold" then File.read(File.join(__dir__, "gate"))
      when "/garbage" then GC.start
      when "/die" then Process.kill("KILL", Process.pid)
      when "/count"
        Oribi.counter(:orders_total).increment(3)
        Oribi.gauge("level:now").set(-2)
        Oribi.histogram(:order_seconds, buckets: [0.5, 1]).observe(0.75)
      when "/echo" then next [200, { "content-type" => "text/plain" }, [env["rack.input"].read]]
      end
      [200, { "content-type" => "text/plain" }, ["hello"]]
    end)
  RUBY

  def start(*arguments, app: APP, **options)
    self.class.stop
    @server = Helper::Server.new(:oribi, *arguments, app: app, **options)
    @socket = File.join(@server.directory, "admin.sock")
    @server.ready
  end

  # The answer to a request to the admin listener.
  def admin(path, method: "GET")
    client = Helper::Client.unix(@socket)
    client.write("#{method} #{path} HTTP/1.1\r\nhost: admin\r\n\r\n")
    client.answer(bodiless: method == "HEAD")
  ensure
    client&.close
  end

  def metrics = admin("/metrics").body

  # What a sample says now.
  def sample(name, **labels)
    line = metrics.lines.find do |one|
      one.start_with?("#{name}{", "#{name} ") &&
        labels.all? { |label, value| one.include?("#{label}=\"#{value}\"") }
    end
    line && Float(line.split.last)
  end

  def wait_for_sample(expected, name, **labels)
    wait_until("#{name} #{labels} is #{expected}: #{metrics.lines.grep(/^#{name}/)}") do
      sample(name, **labels) == expected
    end
  end

  # What a parser of the format makes of it; it refuses what is none.
  def parsed(text)
    script = <<~PYTHON
      import json, sys
      from prometheus_client.parser import text_string_to_metric_families as families
      print(json.dumps([[f.name, f.type, [[s.name, s.labels, s.value] for s in f.samples]]
                        for f in families(sys.stdin.read())]))
    PYTHON
    output, status = Open3.capture2e("/usr/bin/python3", "-c", script, stdin_data: text)
    assert_predicate status, :success?, output
    JSON.parse(output)
  end

  def test_what_is_counted_and_how_things_are
    start("--workers", "2", "--admin", "unix://admin.sock")
    assert_equal 0o600, File.stat(@socket).mode & 0o777
    requests_are_counted
    what_apps_count_is_there
    the_format_is_prometheus
    deaths_have_causes
    a_front_that_dies_forgets_nothing
    only_questions_are_answered
    a_hung_supervisor_hangs_nobody
  end

  def requests_are_counted
    assert_equal %W[ready\n ok\n], [admin("/readyz").body, admin("/healthz").body]
    3.times { get("/") }
    get("/missing")
    get("/boom")
    get("/garbage")
    keep(Helper::Client.tcp(port))
      .write("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 7\r\n\r\n1234567")
    keep(Helper::Client.tcp(port)).write("GET / HTTP/9.9\r\n\r\n")
    ok = { mount: "/", status: "2xx" }
    wait_for_sample(5, "oribi_requests_total", **ok)
    assert_equal 1, sample("oribi_requests_total", mount: "/", status: "4xx")
    assert_equal 1, sample("oribi_requests_total", mount: "/", status: "5xx")
    wait_for_sample(1, "oribi_refused_total", mount: "")
    %w[queue service].each do |what|
      assert_equal 7, sample("oribi_#{what}_seconds_count", mount: "/"), what
      assert_equal 7, sample("oribi_#{what}_seconds_bucket", mount: "/", le: "+Inf"), what
      assert_operator sample("oribi_#{what}_seconds_sum", mount: "/"), :>, 0
    end
    assert_equal 7, sample("oribi_received_bytes_total", mount: "/")
    assert_operator sample("oribi_sent_bytes_total", mount: "/"), :>=, (4 * 5) + 2 + 7
    assert_operator sample("oribi_connections_accepted_total"), :>=, 8
    assert_operator sample("oribi_connections"), :>, 0
    # Counted by the worker when it takes its next request.
    wait_until("the collection is counted") do
      get("/")
      sample("oribi_gc_runs_total", mount: "/").positive?
    end
    assert_operator sample("oribi_gc_seconds_total", mount: "/"), :>, 0
    busy_and_gone
  end

  # A worker with a request is busy; a client that does not wait for its answer is gone.
  def busy_and_gone
    door = gate("gate")
    waiting = ask_for("/hold")
    door.arrived
    wait_for_sample(1, "oribi_workers", mount: "/", state: "busy")
    assert_equal 1, sample("oribi_workers", mount: "/", state: "idle")
    # Who only closes may still read.
    waiting.reset
    wait_for_sample(1, "oribi_requests_total", mount: "/", status: "gone")
    door.release
    wait_for_sample(2, "oribi_workers", mount: "/", state: "idle")
  end

  def what_apps_count_is_there
    get("/count")
    assert_equal [3, -2], [sample("orders_total"), sample("level:now")]
    assert_equal [0, 1, 1], [sample("order_seconds_bucket", le: "0.5"),
                             sample("order_seconds_bucket", le: "1"), sample("order_seconds_count")]
  end

  # Read by a parser that is not ours; and docs/metrics.md has every metric, and no other.
  def the_format_is_prometheus
    answer = admin("/metrics")
    assert_equal "text/plain; version=0.0.4; charset=utf-8", answer["content-type"]
    families = parsed(answer.body)
    types = families.to_h { |name, type, _| [name, type] }
    assert_equal %w[counter gauge histogram],
                 types.values_at("orders", "level:now", "order_seconds")
    page = File.read(File.join(Helper::ROOT, "docs/metrics.md"))
    described = page.scan(/^\| `(oribi_\w+)` \| (\w+) \|([^|]*)\|/)
    said = answer.body.scan(/^# TYPE (oribi_\w+) (\w+)$/)
    assert_equal said.sort, described.map { |name, type, _| [name, type] }.sort
    labels = families.flat_map(&:last).group_by { |name, *| name.sub(/_(bucket|sum|count)$/, "") }
    described.each do |name, _, its|
      used = labels.fetch(name, []).flat_map { |_, set, _| set.keys }.uniq - ["le"]
      assert_equal its.scan(/\w+/).sort, used.sort, name
    end
  end

  def deaths_have_causes
    before = sample("oribi_workers_started_total", mount: "/")
    assert_equal 502, get("/die").status
    wait_for_sample(1, "oribi_worker_deaths_total", mount: "/", cause: "crashed")
    assert_equal 1, sample("oribi_refused_total", mount: "/", reason: "worker_died")
    wait_for_sample(before + 1, "oribi_workers_started_total", mount: "/")
    server.signal("TTIN")
    wait_for_sample(3, "oribi_workers", mount: "/", state: "idle")
    server.signal("TTOU")
    wait_for_sample(1, "oribi_worker_deaths_total", mount: "/", cause: "scaled_down")
    server.signal("USR2")
    wait_for_sample(1, "oribi_restarts_total", mount: "/", outcome: "served")
    wait_for_sample(2, "oribi_worker_deaths_total", mount: "/", cause: "restarted")
    assert_equal 2, sample("oribi_generation", mount: "/")
    File.write(File.join(server.directory, "config.ru"), "raise 'broken'")
    server.signal("USR2")
    wait_for_sample(1, "oribi_restarts_total", mount: "/", outcome: "failed")
  end

  def a_front_that_dies_forgets_nothing
    before = sample("oribi_requests_total", mount: "/", status: "2xx")
    front = server.one("front")
    Process.kill("KILL", front.pid)
    wait_until("another front answers") do
      sample("oribi_front_starts_total") == 2
    rescue Errno::ECONNREFUSED, Errno::ECONNRESET, EOFError, NoMethodError
      nil
    end
    assert_equal before, sample("oribi_requests_total", mount: "/", status: "2xx")
    get("/")
    wait_for_sample(before + 1, "oribi_requests_total", mount: "/", status: "2xx")
    assert_equal 3, sample("orders_total")
  end

  def only_questions_are_answered
    assert_equal 404, admin("/").status
    refusal = admin("/metrics", method: "POST")
    assert_equal [405, "GET, HEAD"], [refusal.status, refusal["allow"]]
    assert_equal([200, ""], admin("/healthz", method: "HEAD").then { |a| [a.status, a.body] })
    status = JSON.parse(admin("/status").body)
    assert_equal [server.pid, "running", "/"],
                 [status["pid"], status["state"], status["mounts"][0]["name"]]
  end

  # Within a second; and what the front knows itself is there all the same.
  def a_hung_supervisor_hangs_nobody
    supervisor = JSON.parse(admin("/status").body)["supervisor"]
    Process.kill("STOP", supervisor)
    began = Helper.now
    assert_equal 504, admin("/healthz").status
    # It waits for 0.9 s; the rest is for a machine that is busy.
    assert_operator Helper.now - began, :<, 2
    assert_equal 504, admin("/readyz").status
    assert_match(/^oribi_requests_total/, metrics)
    Process.kill("CONT", supervisor)
    wait_until("it is well again") { admin("/healthz").status == 200 }
  ensure
    Process.kill("CONT", supervisor)
  end

  def test_it_is_not_ready_without_workers
    start("--workers", "1", "--admin", "tcp://127.0.0.1:0", "--err-respawn-interval", "600")
    admin_port = Integer(server.log[%r{admin on http://127.0.0.1:(\d+)}, 1], 10)
    ask = lambda do |path|
      client = Helper::Client.tcp(admin_port)
      client.get(path).then { |answer| [answer.status, answer.body] }
    ensure
      client&.close
    end
    assert_equal [200, "ready\n"], ask.call("/readyz")
    assert_equal 502, get("/die").status
    wait_until("it is not ready") { ask.call("/readyz").first == 503 }
    assert_equal [503, "mount / has no worker that takes\n"], ask.call("/readyz")
    assert_equal [200, "ok\n"], ask.call("/healthz")
  end

  def test_it_is_not_ready_while_it_ends
    start("--workers", "1", "--admin", "unix://admin.sock")
    door = gate("gate")
    waiting = ask_for("/hold")
    door.arrived
    server.signal("TERM")
    wait_until("it is not ready") { admin("/readyz").status == 503 }
    answers = %w[/readyz /healthz].map { |path| admin(path).body }
    assert_equal ["the server is stopping\n", "ok\n"], answers
    door.release
    assert_equal 200, waiting.answer.status
    server.wait
  end

  # What a server is told, what then happens, and what it is a case of.
  CAUSES = {
    # More than two, for its relief may take the second one.
    "max_requests" => [%w[--max-requests 2], ->(test) { 20.times { test.get("/") } }],
    "request_timeout" => [%w[--request-timeout 0.2],
                          ->(test) { test.assert_equal 504, test.get("/hold").status }],
    "max_memory" => [%w[--max-rss 1m], ->(test) { test.get("/") }],
    "max_age" => [%w[--max-age 0.3], ->(test) { test.get("/") }],
    "recycled" => [%w[--hup-action recycle], ->(test) { test.server.signal("HUP") }],
    "asked" => [[], ->(test) { Process.kill("QUIT", test.server.one("worker").pid) }],
    "fresh" => [%w[--isolation fresh], ->(test) { test.get("/") }]
  }.freeze

  CAUSES.each do |cause, (options, happens)|
    define_method("test_a_worker_s_end_is_put_down_to_#{cause}") do
      start("--workers", "1", "--admin", "unix://admin.sock", *options)
      File.mkfifo(File.join(server.directory, "gate"))
      happens.call(self)
      wait_until("#{cause}: #{metrics.lines.grep(/deaths/)}") do
        sample("oribi_worker_deaths_total", mount: "/", cause: cause).positive?
      end
      assert_equal 200, get("/").status
    end
  end

  def test_a_generation_that_is_taken_back
    start("--workers", "1", "--admin", "unix://admin.sock", "--rollback-window", "60")
    server.signal("USR2")
    wait_for_sample(1, "oribi_restarts_total", mount: "/", outcome: "served")
    env = { "ORIBI_RUNTIME_DIR" => File.join(server.directory, "control") }
    _, status = Open3.capture2e(env, Oribi::Binary.path, "rollback")
    assert_predicate status, :success?
    wait_for_sample(1, "oribi_restarts_total", mount: "/", outcome: "rolled_back")
    assert_equal 1, sample("oribi_generation", mount: "/")
  end

  def test_other_machines_cannot_be_let_in
    %w[tcp://0.0.0.0:9394 tcp://192.0.2.1:80 fastcgi://127.0.0.1:1 nonsense].each do |address|
      output, status = Open3.capture2e(Oribi::Binary.environment, Oribi::Binary.path,
                                       "--admin", address, "config.ru")
      refute_predicate status, :success?
      assert_equal 1, output.lines.size, output
      assert_match(/admin: "#{address}" is not an address of this machine alone/, output)
    end
  end
end
