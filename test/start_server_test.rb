# frozen_string_literal: true

require "helper_case"
require "helper_load"

START_SERVER = ENV["PATH"].split(":").map { |path| File.join(path, "start_server") }
                          .find { |file| File.executable?(file) }
# Not every system has it; tools/setup installs it where it can.
return unless START_SERVER

# Under Server::Starter, which holds the sockets and starts a new server before it ends the old one.
class StartServerTest < Helper::Case
  # So long a new server must have lived for start_server to end the old one, seconds.
  INTERVAL = 1

  def teardown
    @load&.stop
    super
  end

  # A server under start_server; `ports` are its words for sockets.
  def deploy(*ports, how: :oribi, arguments: [], options: [], env: {})
    words = ports.flat_map { |port| [port.include?("/") ? "--path" : "--port", port] }
    words += ["--interval=#{INTERVAL}", "--status-file=status", *options]
    serve(how, "--workers", "2", *arguments, starter: words, env: env)
    generation(1)
  end

  # A command under start_server with these words.
  def serve(how, *words, starter:, files: {}, env: {})
    @server = Helper::Server.new(how, *words, before: [START_SERVER, *starter, "--"], bind: nil,
                                              app: Helper::Case.source("deploy.ru"), env: env,
                                              files: { "release" => "1" }.merge(files))
  end

  # Waits until so many servers have begun to serve.
  def generation(count)
    wait_until("generation #{count} serves: #{server.log}") do
      server.log.scan(/^oribi: \d+ workers? of/).size >= count
    end
    server
  end

  def test_several_sockets_are_taken_over_under_load
    first, second, udp = Array.new(3) { Helper.free_port }
    deploy(first.to_s, "127.0.0.1:#{second}", "./app.sock", "u#{udp}")
    assert_match(%r{^oribi: listening on http://0\.0\.0\.0:#{first}$}, server.log)
    assert_match(%r{^oribi: listening on http://127\.0\.0\.1:#{second}$}, server.log)
    assert_match(%r{^oribi: listening on unix://\./app\.sock$}, server.log)
    assert_equal 3, server.log.scan(/^oribi: listening on/).size
    @load = Helper::Load.new(tcp(first), tcp(second), -> { Helper::Client.unix(unix) })
    [2, 3].each { |number| release_under_load(number) }
    assert_equal ["release 1", "release 2", "release 3"], @load.bodies.sort
    assert_equal "127.0.0.1 #{second}", keep(tcp(second).call).get("/env", "Host:").body
    finish
  end

  # The same on rackup's pid, which start_server watches.
  def test_rackup_is_deployed_under_load
    port = Helper.free_port
    deploy(port.to_s, how: :rackup)
    @load = Helper::Load.new(tcp(port))
    release_under_load(2)
    inode = server.tree.to_h { |entry| [entry.role, listeners_of(entry.pid)] }
    assert_equal inode["supervisor"], inode["front"]
    assert_equal [], inode["worker"] & inode["front"]
    finish
  end

  # Bundler closes what it does not know, unless it is told otherwise.
  def test_rhebok_with_bundle_exec
    gems = ["gem 'oribi', path: '#{Helper::ROOT}'", "gem 'rack'"]
    gems << "gem 'rackup'" if Helper.rack >= 3
    words = ["-S", "bundle", "exec", "--keep-file-descriptors", "rackup", "-s", "Rhebok",
             "-O", "MaxWorkers=1", "config.ru"]
    serve(:script, *words, starter: ["--port=0", "--interval=#{INTERVAL}"],
                           files: { "Gemfile" => gems.join("\n") }, env: { "RUBYLIB" => nil })
    generation(1)
    assert_match(%r{^oribi: listening on http://0\.0\.0\.0:(?!9292)\d+$}, server.log)
  end

  # Workers leave one after the other, while those of the new server answer.
  def test_slow_restart
    port = Helper.free_port
    deploy(port.to_s, arguments: ["--spawn-interval=0.5"], options: ["--signal-on-hup=USR1"])
    @load = Helper::Load.new(tcp(port))
    release_under_load(2)
    assert_match(/^oribi: workers leave one after the other, 0\.5 s apart, then/, server.log)
    finish
  end

  def test_hup_ends_the_server_for_another_has_taken_over
    port = Helper.free_port
    deploy(port.to_s, options: ["--signal-on-hup=HUP"])
    @load = Helper::Load.new(tcp(port))
    release_under_load(2)
    assert_match(/^oribi: HUP: finishing what runs/, server.log)
    finish
  end

  def test_hup_action_says_otherwise
    deploy(Helper.free_port.to_s, arguments: ["--hup-action=reload"])
    Process.kill("HUP", server.one("supervisor").pid)
    wait_for_log(/generation 2 serves/)
    finish
  end

  def test_what_is_not_open_is_named_with_a_remedy
    @server = Helper::Server.new(:oribi, env: { "SERVER_STARTER_PORT" => "8080=77" })
    assert_equal 1, server.wait
    assert_match(/\Aoribi: SERVER_STARTER_PORT names fd 77, which .*--keep-file-desc/, server.log)
  end

  def test_it_does_not_leave_who_watches_it
    deploy(Helper.free_port.to_s, arguments: ["--pid-file=oribi.pid"])
    server.signal("HUP")
    generation(2)
    alone(2)
    wait_until("the pid file names the new server") do
      File.read(File.join(server.directory, "oribi.pid")).to_i == server.one("supervisor").pid
    end
    finish
    refute File.exist?(File.join(server.directory, "oribi.pid"))
    server.clean_up
    serve(:oribi, "--daemonize", starter: ["--port=0"])
    wait_for_log(/^oribi: daemonize: start_server and systemd keep the server/)
  end

  private

  # A new release; waits until the old server has gone.
  def release_under_load(number)
    @load.more(50)
    File.write(File.join(server.directory, "release"), number.to_s)
    server.signal("HUP")
    generation(number)
    alone(number)
    @load.more(50)
    assert_equal({}, @load.failures.tally)
  end

  # Waits until start_server knows of one server alone, its latest.
  def alone(number)
    wait_until("server #{number} is alone: #{server.log}", within: 30) do
      File.read(File.join(server.directory, "status")).match?(/\A#{number}:\d+\n\z/)
    end
  end

  def tcp(port) = -> { Helper::Client.tcp(port) }

  def unix = File.join(server.directory, "app.sock")

  # Ends start_server, and with it the server.
  def finish
    @load&.stop
    server.signal("TERM")
    assert_equal 0, server.wait
  end

  # Inodes of the sockets that listen, of those a process has open.
  def listeners_of(pid)
    listening = File.readlines("/proc/net/tcp").grep(/ 0A /).map { |line| line.split[9] }
    links = Dir["/proc/#{pid}/fd/*"].map do |fd|
      File.readlink(fd)[/socket:\[(\d+)\]/, 1]
    rescue Errno::ENOENT
      # It has been closed since.
    end
    links.compact & listening
  end
end
