# frozen_string_literal: true

require "helper_case"
require "json"
require "open3"
require "oribi/rhebok"

# Rhebok's users change one word, or none: its handler, its names, its defaults, its order.
class RhebokTest < Helper::Case
  # Rhebok's options by the names of its code: a value, our names, and the value there.
  OPTIONS = {
    "BackLog" => ["77", { "backlog" => "77" }],
    "ReusePort" => ["yes", { "reuse_port" => "true" }],
    "MaxWorkers" => ["7", { "workers" => "7" }],
    "MaxRequestPerChild" => ["2000", { "max_requests" => "2000" }],
    "MinRequestPerChild" => ["900", { "min_requests" => "900" }],
    "Timeout" => ["7.5", %w[first_byte head body write].to_h { |of| ["#{of}_timeout", "7.5"] }],
    "OobGC" => ["1", { "oob_gc" => "true" }],
    "MaxGCPerRequest" => ["9", { "max_gc_per_request" => "9" }],
    "MinGCPerRequest" => ["4", { "min_gc_per_request" => "4" }],
    "ChunkedTransfer" => ["TRUE", { "chunked_transfer" => "true" }],
    "SpawnInterval" => ["3", { "spawn_interval" => "3" }],
    "ErrRespawnInterval" => ["0", { "err_respawn_interval" => "0" }]
  }.freeze
  # As its configuration file writes them.
  IN_FILE = {
    "BackLog" => "backlog", "ReusePort" => "reuseport", "OobGC" => "oobgc",
    "MaxGCPerRequest" => "max_gc_per_request", "MinGCPerRequest" => "min_gc_per_request"
  }.freeze
  # Rhebok's defaults where they are not ours, and what it does without being asked.
  DEFAULTS = {
    "workers" => "5", "max_requests" => "1000", "max_gc_per_request" => "5",
    "first_byte_timeout" => "300", "head_timeout" => "300", "body_timeout" => "300",
    "write_timeout" => "300", "err_respawn_interval" => "1", "chunked_transfer" => "false",
    "backlog" => Socket::SOMAXCONN.to_s, "socket_mode" => "0777", "defer_accept" => "true",
    "reuse_port" => "false", "oob_gc" => "false", "spawn_interval" => "0", "min_requests" => "0"
  }.freeze

  def setup
    @directory = Dir.mktmpdir("oribi-rhebok")
    File.write(File.join(@directory, "config.ru"), "run ->(_) { [200, {}, []] }\n")
  end

  def teardown
    super
    FileUtils.remove_entry(@directory)
  end

  def file(text) = File.write(File.join(@directory, "rhebok.rb"), text)

  def rackup(*words)
    gem = Gem::Specification.any? { |spec| spec.name == "rackup" } ? "rackup" : "rack"
    env = { "RUBYLIB" => LIB, "RACK_ENV" => nil }
    Open3.capture3(env, RbConfig.ruby, Gem.bin_path(gem, "rackup"), *words, chdir: @directory)
  end

  # What holds when rackup is started like this: name => [value, origin].
  def explain(server, *options, words: [])
    options = options.flat_map { |option| ["-O", option] }
    out, err, status = rackup("-s", server, *words, "-O", "Explain=json", *options)
    assert status.success?, err
    JSON.parse(out).to_h { |row| [row["name"], [row["values"].last, row["origin"]]] }
  end

  def assert_holds(expected, found, origin = nil)
    expected.each do |name, value|
      assert_equal value, found[name][0], name
      assert_match(origin, found[name][1], name) if origin
    end
  end

  def snake(name) = IN_FILE[name] || name.gsub(/(?<=[a-z])(?=[A-Z])/, "_").downcase

  def all_wanted = OPTIONS.values.map(&:last).reduce(:merge)

  def test_every_option_in_every_spelling
    spellings = { "code" => :itself.to_proc, "file" => method(:snake),
                  "README" => ->(name) { name == "ChunkedTransfer" ? "Chunked_Transfer" : name } }
    %w[Oribi Rhebok].product(spellings.values) do |server, spell|
      found = explain(server, *OPTIONS.map { |name, (value, _)| "#{spell.call(name)}=#{value}" })
      assert_holds(all_wanted, found, /command line/)
    end
  end

  def test_every_option_in_the_configuration_file
    file(OPTIONS.map { |name, (value, _)| "#{snake(name)} #{value.inspect}\n" }.join)
    found = explain("Rhebok", "ConfigFile=rhebok.rb", "MaxWorkers=2")
    assert_holds(all_wanted, found, /rhebok\.rb:\d+\z/)
    assert_equal "command line", found["environment"][1]
  end

  def test_flags_that_only_a_block_could_set
    file("reuseport { true }\nchunked_transfer { }\noobgc { false }\nspawn_interval ENV['NONE']\n")
    found = explain("Rhebok", "ConfigFile=rhebok.rb", "SpawnInterval=2")
    assert_holds({ "reuse_port" => "true", "chunked_transfer" => "true", "oob_gc" => "false" },
                 found)
    assert_equal ["2", "command line"], found["spawn_interval"]
  end

  def test_the_defaults_of_either_name
    assert_holds(DEFAULTS, explain("Rhebok"))
    assert_equal ["5", "default of Rhebok"], explain("Rhebok")["workers"]
    ours = explain("Oribi", "OobGC")
    assert_equal ["true", "command line"], ours["oob_gc"]
    assert_equal [%w[0 default], %w[true default]],
                 ours.values_at("max_requests", "chunked_transfer")
  end

  def test_addresses
    bind = ->(*options, **more) { explain("Rhebok", *options, **more)["bind"].first }
    assert_equal "tcp://localhost:9292", bind.call
    assert_equal "tcp://0.0.0.0:9292", bind.call(words: %w[-E production])
    assert_equal "tcp://127.0.0.2:81", bind.call(words: %w[-o 127.0.0.2 -p 81])
    assert_equal "tcp://[::1]:82", bind.call("Host=::1", "port=82")
    file("port 83")
    assert_equal "tcp://localhost:83", bind.call("ConfigFile=rhebok.rb", words: %w[-p 81])
    assert_equal "unix:///a", bind.call("Path=/a", "ConfigFile=rhebok.rb", words: %w[-p 81])
    file("host '0.0.0.0'\nport 84\npath '/b'")
    assert_equal "unix:///b", bind.call("ConfigFile=rhebok.rb", words: %w[-p 81])
  end

  def test_the_configuration_file_wins_with_either_name
    file("max_workers 3")
    %w[Oribi Rhebok].each do |server|
      found = explain(server, "MaxWorkers=2", "ConfigFile=rhebok.rb")
      assert_equal ["3", "#{File.realpath(@directory)}/rhebok.rb:1"], found["workers"]
    end
  end

  def test_what_is_wrong_ends_it
    { ["MaxWokers=2"] => "no option MaxWokers, do you mean MaxWorkers?",
      ["QueueTimeut=2"] => "no option QueueTimeut, do you mean QueueTimeout?",
      ["Config=a.rb"] => "no option Config, do you mean ConfigFile?",
      ["MaxWorkers"] => 'workers: "true" is not a number from 1 to 512',
      ["OobGC=perhaps"] => 'oob_gc: "perhaps" is not true or false',
      ["BeforeFork=x"] => 'BeforeFork takes a Proc, not "x"',
      ["ConfigFile=no.rb"] => %r{/no\.rb is not there: name a configuration file} }
      .each do |options, message|
      _, err, status = rackup("-s", "Rhebok", *options.flat_map { |option| ["-O", option] })
      assert_equal 1, status.exitstatus
      message = "oribi: #{message}\n" if message.is_a?(String)
      assert_match(message, err)
    end
  end

  def test_what_is_another_servers_or_the_frameworks_passes
    # rails server's, Sinatra's and WEBrick's.
    options = { user_supplied_options: [:Port], server: nil, log_stdout: true, Port: 3000,
                Host: "::1", DoNotReverseLookup: true, config: "config.ru", pid: "/a",
                environment: "test", daemonize: true, caching: nil, restart_cmd: "x",
                early_hints: nil, AccessLog: [], Logger: Object.new, "Silent" => true }
    assert_equal %w[--port=3000 --host=::1 --environment=test],
                 Oribi::RackOptions.new(options).line
  end

  APP = <<~'RUBY'
    run ->(_env) { [200, { "content-type" => "text/plain" }, [Process.pid.to_s]] }
  RUBY

  def test_it_serves_and_begins_as_rhebok_does
    path = File.join(@directory, "a.sock")
    file("max_workers 2\nbefore_fork { warn 'before' }\n")
    words = ["-s", "Rhebok", "-O", "Path=#{path}", "-O", "MaxWorkers=9",
             "-O", "ConfigFile=#{@directory}/rhebok.rb", "-E", "production"]
    @server = Helper::Server.new(:rackup, rackup: words, bind: "", app: APP).ready
    pids = @server.workers(2).map(&:pid)
    assert_match(/\Aloading from config_file:#{@directory}/, @server.log)
    assert_equal 2, @server.log.scan(/^before$/).size
    assert_includes pids, Integer(keep(Client.unix(path)).get.body, 10)
    @server.signal("TERM")
    assert_equal 0, @server.wait
  end

  def test_it_is_found_by_its_name
    prefix = Helper.rack >= 3 ? "rackup" : "rack"
    require "#{prefix}/handler/rhebok"
    handlers = Helper.rack >= 3 ? Rackup::Handler : Rack::Handler
    found = [handlers.get("Rhebok"), handlers.get("rhebok"), handlers.const_get(:Rhebok)]
    assert_equal [Oribi::Rhebok], found.uniq
  end

  def test_the_class_takes_what_rhebok_s_took
    rackup_file = <<~'RUBY'
      require "oribi/rhebok"
      app = ->(_env) { [200, { "content-type" => "text/plain" }, ["from a Hash"]] }
      options = { Host: "127.0.0.1", Port: 0, MaxWorkers: 1, OobGC: true, MinRequestPerChild: nil,
                  BeforeFork: -> { warn "before" }, AfterFork: proc { |worker| warn "after #{worker.nr}" } }
      # As Rhebok's is called: with a Hash.
      Oribi::Rhebok.run(app, options)
    RUBY
    @server = Helper::Server.new(:script, "serve.rb", app: nil,
                                                      files: { "serve.rb" => rackup_file }).ready
    assert_equal "from a Hash", get.body
    assert_match(/^before\nafter 1$/, @server.log)
  end

  def test_under_bundle_exec_and_again_after_a_restart
    gems = ["gem 'oribi', path: '#{ROOT}'", "gem 'rack'"]
    gems << "gem 'rackup'" if Helper.rack >= 3
    words = %w[-s Rhebok -o 127.0.0.1 -p 0 -O MaxWorkers=1]
    @server = Helper::Server.new(:bundle, *words, app: APP, files: { "Gemfile" => gems.join("\n") },
                                                  env: { "RUBYLIB" => nil }).ready
    assert_equal @server.workers(1).first.pid, Integer(get.body, 10)
    @server.signal("USR2")
    assert_equal 1, @server.workers(1, generation: 2).size
  end
end
