# frozen_string_literal: true

require "helper_server"
require "json"
require "open3"
require "oribi/version"
require "rbconfig"

# The command `oribi` and what it tells people.
class CliTest < Minitest::Test
  include Helper

  APP = <<~'RUBY'
    require "uri"
    use Rack::Lint
    run ->(_env) { [200, { "content-type" => "text/plain" }, [ENV.fetch("RACK_ENV")]] }
  RUBY

  def setup
    @directory = Dir.mktmpdir("oribi-cli")
    file("config.ru", APP)
  end

  def teardown
    @server&.clean_up
    FileUtils.remove_entry(@directory)
  end

  def file(name, text) = File.write(path(name), text)

  def path(name) = File.join(@directory, name)

  # Runs the command to its end: its output, what it says to people, its exit code.
  def oribi(*arguments, env: {}, exe: File.join(ROOT, "exe/oribi"))
    Open3.popen3(env, RbConfig.ruby, exe, *arguments, chdir: @directory) do |_, out, err, waiter|
      readers = [out, err].map { |io| Thread.new { io.read } }
      unless waiter.join(PATIENCE)
        Process.kill("KILL", waiter.pid)
        flunk "oribi #{arguments.join(' ')} does not end; it said: #{readers.last.value}"
      end
      [*readers.map(&:value), waiter.value.exitstatus]
    end
  end

  def serve(*arguments, **options)
    @server = Server.new(:oribi, "-w", "1", *arguments, **options).ready
  end

  def test_version_and_help
    assert_equal ["oribi #{Oribi::VERSION}\n", "", 0], oribi("--version")
    out, err, code = oribi("--help")
    assert_equal ["", 0], [err, code]
    JSON.parse(oribi("options").first)["options"].each do |option|
      assert_includes out, "--#{option['flag']}"
      assert_includes out, option["doc"]
    end
    assert_match(/^Examples:\n  oribi /, out)
  end

  def test_an_unknown_option_suggests_the_nearest
    _, err, code = oribi("--wrokers", "2")
    assert_equal 2, code
    assert_match(/--wrokers.*--workers/m, err)
  end

  def test_a_value_out_of_bounds
    assert_equal ["", "oribi: workers: \"0\" is not a number from 1 to 512\n", 1], oribi("-w", "0")
    _, err, code = oribi("-b", "nowhere")
    assert_equal 1, code
    assert_match(%r{\Aoribi: bind: "nowhere" is no address: write tcp://HOST:PORT}, err)
  end

  def test_a_missing_config_ru
    File.delete(path("config.ru"))
    message = "oribi: config.ru is not here: run oribi in your app's directory, " \
              "or name the file: oribi path/to/config.ru\n"
    assert_equal ["", message, 1], oribi
    message = "oribi: other.ru is not there: name your app's rackup file\n"
    assert_equal ["", message, 1], oribi("other.ru")
  end

  def test_an_app_that_raises_at_boot
    file("lib.rb", "def self.connect\n  raise IOError, 'no database'\nend\nconnect\n")
    file("config.ru", "require_relative 'lib'\nrun ->(_) {}\n")
    _, err, code = oribi("-b", "tcp://127.0.0.1:0")
    assert_equal 1, code
    assert_match(/lib.rb:2:in `connect': no database \(IOError\)\n\tfrom .*lib.rb:4/, err)
    assert_match(/^oribi: the app did not load: IOError: no database \(.*lib.rb:2\)$/, err)
    refute_match(%r{lib/oribi/mold}, err)
  end

  def test_an_app_that_ends_its_process_at_boot
    file("config.ru", "Process.kill(:KILL, Process.pid)")
    _, err, code = oribi("-b", "tcp://127.0.0.1:0")
    assert_equal 1, code
    assert_match(/the app did not load: its mold ended with signal 9 while loading the app/, err)
  end

  def test_a_taken_port
    TCPServer.open("127.0.0.1", 0) do |taken|
      port = taken.addr[1]
      message = "oribi: cannot listen on tcp://127.0.0.1:#{port}: port is taken: stop the server " \
                "that has it, or choose another with -p PORT\n"
      assert_equal ["", message, 1], oribi("-p", port.to_s)
    end
  end

  def test_a_socket_file_somebody_listens_on
    UNIXServer.open(path("a.sock")) do
      _, err, code = oribi("-b", "unix://#{path('a.sock')}")
      assert_equal 1, code
      assert_match(/a server is listening there: stop it, or choose another path/, err)
    end
    assert File.exist?(path("a.sock"))
  end

  def test_check
    out, err, code = oribi("check")
    assert_equal ["", 0], [err, code]
    assert_match(/\Aok .*config.ru \(Ruby #{RUBY_VERSION}, Rack \d.*\)\n\z/, out)
    file("config.ru", "run NoSuchApp")
    out, err, code = oribi("check")
    assert_equal ["", 1], [out, code]
    assert_match(/^oribi: .*config.ru does not load: NameError: uninitialized constant/, err)
  end

  def test_a_configuration_file
    file("oribi.rb", <<~RUBY)
      puts "configuring"
      workers 3
      threads Integer("2")
      bind "tcp://127.0.0.1:0", "tcp://[::1]:0"
      environment "production"
      queue_timeout 0.5
      shutdown_timeout 1.5
      retry_idempotent
    RUBY
    @server = Server.new(:oribi, "-C", path("oribi.rb"), "-w", "1", app: APP, bind: nil).ready
    assert_match(/1 worker of 2 threads, .* environment production/, @server.log)
    assert_match(%r{listening on http://127.0.0.1:\d+\n.*listening on http://\[::1\]:\d+\n},
                 @server.log)
    port = @server.log[/\[::1\]:(\d+)/, 1].to_i
    assert_equal "production", Net::HTTP.start("::1", port) { |http| http.get("/").body }
  end

  def test_what_is_wrong_in_a_configuration_file_is_named
    { "\nwokers 3" => /oribi.rb:2: no option wokers, do you mean workers\?/,
      "workers 1, 2" => /oribi.rb:1: workers takes one value, 2 given/,
      "config 'x'" => /oribi.rb:1: config can be given on the command line only/,
      "queue_timeout :soon" => /oribi.rb:1: queue_timeout: "soon" is not a number of seconds/,
      "workers 'many'" => /oribi.rb:1: workers: "many" is not a number from 1 to 512/,
      "raise 'no'" => /oribi.rb:1:in [`'].*read': no \(RuntimeError\)/,
      "workers (" => /oribi.rb raised\n.*oribi.rb:1: syntax error/m }.each do |text, message|
      file("oribi.rb", text)
      out, err, code = oribi("-C", "oribi.rb", "check")
      assert_equal ["", 1], [out, code], text
      assert_match(message, err)
    end
    assert_equal ["", "oribi: no.rb is not there: name a configuration file with -C\n", 1],
                 oribi("-C", "no.rb")
  end

  def test_rack_env
    serve(app: APP)
    assert_equal "development", @server.get
    @server.clean_up
    serve("-e", "staging", app: APP)
    assert_equal "staging", @server.get
    @server.clean_up
    serve(app: APP, env: { "RACK_ENV" => "test" })
    assert_equal "test", @server.get
  end

  def test_a_missing_binary_and_a_missing_extension
    _, err, code = oribi(env: { "ORIBI_BINARY" => path("none") })
    assert_equal 1, code
    assert_match(/\Aoribi: the binary .*none is not there: run `make build` in /, err)

    FileUtils.cp_r([File.join(ROOT, "exe"), LIB], @directory)
    Dir[path("lib/oribi/native.*")].each { |extension| File.delete(extension) }
    _, err, code = oribi(exe: path("exe/oribi"))
    assert_equal 1, code
    assert_match(/\Aoribi: the extension .* is not there: install the gem again/, err)
  end

  def test_ruby_that_is_not_there
    _, err, code = oribi("-b", "tcp://127.0.0.1:0", env: { "ORIBI_RUBY" => path("ruby") })
    assert_equal 1, code
    assert_match(/cannot run .*: install Ruby, or name one in ORIBI_RUBY/, err)
  end

  def test_at_exit_handlers_run_once_where_they_were_registered
    @server = Server.new(:oribi, "-w", "2", app: <<~'RUBY').ready
      at_exit { warn "loaded #{Process.pid}" }
      run(lambda do |_env|
        at_exit { warn "served #{Process.pid}" }
        [200, {}, [Process.pid.to_s]]
      end)
    RUBY
    mold = @server.one("mold")
    worker = @server.get
    @server.signal("TERM")
    assert_equal 0, @server.wait
    assert_equal ["loaded #{mold.pid}"], @server.log.scan(/loaded \d+/)
    assert_equal ["served #{worker}"], @server.log.scan(/served \d+/)
  end

  # Those of rackup with Rack 3, of Rack itself with Rack 2.
  def rack_handlers
    require "rackup/handler/oribi"
    Rackup::Handler
  rescue LoadError
    require "rack/handler/oribi"
    Rack::Handler
  end

  def test_options_of_rackup_in_any_spelling
    handlers = rack_handlers
    line = ->(**options) { Oribi::RackOptions.new(options).line }
    assert_equal ["--port=80", "--host=localhost"], line.call(Host: "localhost", Port: 80)
    assert_equal ["--workers=2", "--front-threads=1"],
                 line.call(Workers: "2", FrontThreads: "1", config: "config.ru")
    assert_equal ["--bind=unix:///a", "--queue-timeout=0.5"],
                 line.call(QueueTimeout: "0.5", bind: "unix:///a")
    assert_equal ["--port=9292", "--bind=unix:///a"], line.call(Host: "unix:///a", Port: 9292)
    assert_equal [Oribi::Handler] * 2, [handlers.get("Oribi"), handlers.get("oribi")]
    assert_includes Oribi::Handler.valid_options.keys, "workers=N"
  end
end
