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
    starter = [START_SERVER, *words, "--interval=#{INTERVAL}", "--status-file=status", *options, "--"]
    @server = Helper::Server.new(how, "--workers", "2", *arguments, before: starter, bind: nil,
                                 app: Helper::Case.source("deploy.ru"),
                                 files: { "release" => "1" }, env: env)
    generation(1)
  end

  # Waits until so many servers have begun to serve.
  def generation(count)
    wait_until("generation #{count} serves: #{server.log}") do
      server.log.scan(/^oribi: \d+ workers? of/).size >= count
    end
    server
  end

  # A new release; waits until the old server has gone.
  def release(number)
    File.write(File.join(server.directory, "release"), number.to_s)
    server.signal("HUP")
    generation(number)
    wait_until("server #{number} is alone: #{server.log}", within: 30) do
      File.read(File.join(server.directory, "status")).lines.size == 1
    end
  end

  def unix = File.join(server.directory, "app.sock")

  # Ends start_server, and with it the server.
  def finish
    server.signal("TERM")
    assert_equal 0, server.wait
  end

  def assert_no_failures
    assert_equal [], @load.stop.tally.first(5)
  end

  def test_several_sockets_are_taken_over_under_load
    first, second = Array.new(2) { Helper.free_port }
    deploy(first.to_s, "127.0.0.1:#{second}", "./app.sock")
    assert_match(%r{^oribi: listening on http://0\.0\.0\.0:#{first}$}, server.log)
    assert_match(%r{^oribi: listening on http://127\.0\.0\.1:#{second}$}, server.log)
    assert_match(%r{^oribi: listening on unix://\./app\.sock$}, server.log)
    refute_match(/9292/, server.log)

    @load = Helper::Load.new(-> { Helper::Client.tcp(first) }, -> { Helper::Client.tcp(second) },
                             -> { Helper::Client.unix(unix) })
    [2, 3].each do |number|
      @load.more(100)
      release(number)
      @load.more(100)
    end
    assert_no_failures
    assert_equal ["release 1", "release 2", "release 3"], @load.bodies.sort
    assert_equal "127.0.0.1 #{second}", Helper::Client.tcp(second).get("/env", "Host:").body
    finish
  end
end
