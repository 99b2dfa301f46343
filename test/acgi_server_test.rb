# frozen_string_literal: true

require "helper_acgi"
require "helper_case"

# The server in plain Ruby: its processes, its life, its commands.
class AcgiServerTest < Minitest::Test
  include Helper

  COUNT = <<~RUBY
    require "acgi"
    VERSION = %<version>s
    ACGI.each_cgi { |cgi| cgi.out("text/plain") { "\#{VERSION} \#{Process.pid}" } }
  RUBY

  def teardown = @home&.clean_up

  def home(files = nil, settings: nil)
    @home ||= Acgi.new(*[files].compact).tap { |home| home.write("oribi.rb", settings) if settings }
  end

  def code(version) = format(COUNT, version: version)

  def body(target = "/", **options) = home.get(target, **options).body

  # Several at once; what each gave.
  def together(count)
    threads = Array.new(count) { |i| Thread.new { yield i } }
    threads.each { |thread| thread.report_on_exception = false }.map(&:value)
  end

  def test_requests_run_in_parallel
    home.serve
    fifos = Array.new(4) { |i| home.fifo("fifo#{i}") }
    asked = Thread.new { together(4) { |i| body("/hold?fifo=#{fifos[i]}") } }
    # All four are in their scripts at the same time.
    fifos.map { |fifo| home.reached(fifo) }.each(&:close)
    assert_equal 4, asked.value.uniq.size
  end

  def test_affinity_is_one_process_in_order
    home(settings: "affinity :single\n").serve
    fifo = home.fifo("fifo")
    first = home.connect
    first.write(FastCgi.request(FastCgi.params("/hold?fifo=#{fifo}")))
    writer = home.reached(fifo)
    clients = Array.new(10) do |i|
      home.connect.tap { |client| client.write(FastCgi.request(FastCgi.params("/count?#{i}"))) }
    end
    writer.close
    answers = clients.map { |client| client.reply.answer.body.split.map(&:to_i) }
    assert_equal [(1..10).to_a, 1], [answers.map(&:first), answers.map { |a| a[1] }.uniq.size]
  ensure
    [first, *clients].compact.each(&:close)
  end

  def test_new_code_loses_no_request
    home({ "server.cgi" => code(1) }).serve
    answers = []
    done = false
    load = Array.new(3) { Thread.new { answers << body until done } }
    seen = ->(version) { answers.any? { |answer| answer.start_with?("#{version} ") } }
    wait_until("requests") { answers.size > 20 }
    home.write("server.cgi", code(2))
    wait_until("new code; log: #{home.log}") { seen.call(2) }
    home.write("server.cgi", "syntax error (\n")
    wait_until("it is refused") { home.log.include?("the old one serves on") }
    home.write("server.cgi", code(3))
    wait_until("newer code; log: #{home.log}") { seen.call(3) }
    done = true
    load.each(&:join)
    assert_equal %w[1 2 3], answers.map { |answer| answer[0] }.uniq.sort
    wait_until("old molds are gone") { home.processes("mold").size == 1 }
  end

  def test_declared_files_and_settings_are_code
    home({ "server.cgi" => "require_relative 'lib/version'\n#{format(COUNT, version: 'V')}",
           "lib/version.rb" => "V = 1", "oribi.rb" => "workers 1\nwatch 'lib/*.rb'\n" }).serve
    assert_match(/\A1 /, body)
    home.write("lib/version.rb", "V = 2")
    wait_until("a new version") { body.start_with?("2 ") }
    home.write("oribi.rb", "workers 3\nwatch 'lib/*.rb'\nplugins 7\n")
    wait_until("three workers") { home.processes("worker").size == 3 }
    assert_match(/oribi\.rb:3: plugins means nothing/, home.log)
    home.write("lib/more.rb", "")
    pid = home.processes("mold").first.pid
    wait_until("a new mold") { home.processes("mold").none? { |entry| entry.pid == pid } }
  end

  def test_it_ends_when_nothing_comes
    home(settings: "idle_timeout 0.6\n").serve
    fifo = home.fifo("fifo")
    asked = Thread.new { body("/hold?fifo=#{fifo}") }
    writer = home.reached(fifo)
    # A request that runs is no idleness.
    sleep 1
    refute home.ended?
    writer.close
    asked.value
    began = now
    assert_equal 0, home.wait
    assert_operator now - began, :>, 0.5
    refute File.exist?(home.socket)
    assert_empty home.left_over
  end

  def test_who_has_connected_is_served
    home(settings: "affinity :single\n").serve
    fifo = home.fifo("fifo")
    clients = Array.new(5) { home.connect }
    targets = ["/hold?fifo=#{fifo}", *["/count"] * 4]
    clients.zip(targets) { |client, target| client.write(FastCgi.request(FastCgi.params(target))) }
    writer = home.reached(fifo)
    Process.kill("TERM", home.pid)
    wait_until("no socket") { !File.exist?(home.socket) }
    writer.close
    statuses = clients.map { |client| client.reply.answer.status }
    assert_equal [200] * 5, statuses
    assert_equal 0, home.wait
  ensure
    clients&.each(&:close)
  end

  def test_workers_and_molds_that_die
    home.serve
    assert_raises(EOFError) { home.ask("/die") }
    wait_until("four again") { home.processes("worker").size == 4 }
    assert_match(/worker \d+ has ended: signal 9/, home.log)
    mold = home.processes("mold").first.pid
    Process.kill("KILL", mold)
    assert_match(/\A\d+ /, body("/count"))
    wait_until("another mold") { home.processes("mold").any? { |entry| entry.pid != mold } }
  end

  def test_all_end_with_the_server
    home.serve
    fifo = home.fifo("fifo")
    client = home.connect
    client.write(FastCgi.request(FastCgi.params("/hold?fifo=#{fifo}")))
    home.reached(fifo)
    home.processes
    Process.kill("KILL", home.pid)
    wait_until("all are gone", within: 2) { home.left_over.empty? }
    assert client.ended?
    home.serve
    assert_equal 200, home.get("/count").status
  ensure
    client&.close
  end

  def test_commands
    assert_equal ["dead\n", "", 1], home.run("status")
    assert_equal ["", "", 1], home.run("pid")
    assert_equal ["", "", 0], home.run("start")
    out, = home.run("status")
    pid = Integer(out[/\Aalive \((\d+)\)\n\z/, 1])
    assert_equal ["#{pid}\n", "", 0], home.run("pid")
    assert_equal 200, home.get("/count").status
    assert_equal ["", "", 0], home.run("start")
    assert_equal ["", "", 0], home.run("restart")
    other = Integer(home.run("pid").first)
    refute_equal pid, other
    assert_equal ["", "", 0], home.run("stop")
    assert_equal ["dead (#{other})\n", "", 1], home.run("status")
    assert_equal ["", "", 0], home.run("stop")
    assert_empty home.processes
    # Orphans of the commands that started them, and so this process's children.
    [pid, other].each { |child| Process.wait(child) }
  end

  # Where Oribi is installed, it is what the same commands start and stop.
  def test_a_native_server_is_taken
    ways = { "PATH" => "#{File.join(ROOT, 'exe')}:#{ENV.fetch('PATH')}", "ACGI_NATIVE" => nil }
    assert_equal ["", "", 0], home.run("start", env: ways)
    pid = Integer(home.run("pid").first)
    assert_equal 200, home.get("/count").status
    server = Helper.family(pid)
    assert_match(/oribi/, server.first.title)
    assert(server.any?(&:worker?))
    assert_equal ["", "", 0], home.run("stop")
    assert_equal "dead (#{pid})\n", home.run("status").first
    # An orphan of the command that started it, and so this process's child.
    Process.wait(pid)
    wait_until("all are gone") { server.none? { |one| one.same?(Helper.process(one.pid)) } }
  end

  def test_server_in_the_foreground
    pid = Process.spawn(home.environment, RbConfig.ruby, home.path("server.cgi"), "--server",
                        in: File::NULL, %i[out err] => File::NULL)
    wait_until("it serves") { File.socket?(home.socket) }
    assert_equal ["#{pid}\n", "", 0], home.run("pid")
    # A second one leaves the first alone.
    home.launch
    assert_equal 0, home.wait
    assert_includes home.log, "runs already"
    Process.kill("TERM", pid)
    Process.wait(pid)
  end

  def test_what_cannot_be_served_is_said_at_once
    home.write("server.cgi", "require 'acgi'\nraise 'no database'\n")
    home.launch
    assert_equal 1, home.wait
    assert_match(/server\.cgi does not load: no database \(RuntimeError\)\n\z/, home.log)
    home.write("server.cgi", "require 'acgi'\n")
    home.launch
    assert_equal 1, home.wait
    assert_match(/never comes to ACGI.each_cgi/, home.log.lines.last)
    home.write("oribi.rb", "threads 2\n")
    home.launch
    assert_equal 1, home.wait
    assert_match(/server\.cgi needs threads 1/, home.log.lines.last)
  end

  def test_a_start_that_fails_says_why
    home.write("server.cgi", "require 'acgi'\nabort 'no key' if ENV['KEYLESS']\n" \
                             "ACGI.each_cgi { |cgi| cgi.out { '' } }\n")
    ruby = [RbConfig.ruby, File.join(LIB, "acgi.rb"), "start", home.directory]
    _, errors, status = Open3.capture3(home.environment("KEYLESS" => "1"), *ruby)
    assert_equal 1, status.exitstatus
    assert_match(/\Aacgi: the server ended: acgi: .*server\.cgi ended before it served/, errors)
  end

  def test_a_place_of_somebody_elses_is_refused
    Dir.mkdir(File.join(File.dirname(home.directory), "elsewhere"))
    base = File.join(File.dirname(home.directory), "run")
    File.symlink("elsewhere", base)
    assert_match(/must be a directory of this user's alone/, home.run("start")[1])
    File.unlink(base)
    Dir.mkdir(base, 0o755)
    assert_match(/mode 0700/, home.run("start")[1])
  end

  def test_nothing_is_open_to_others
    home.serve
    modes = [home.run_directory, File.dirname(home.run_directory), home.socket].map do |path|
      File.stat(path).mode & 0o777
    end
    assert_equal [0o700, 0o700, 0o600], modes
  end
end
