# frozen_string_literal: true

require "helper_case"

# How the server listens.
class ListenTest < Helper::Case
  def teardown
    super
    FileUtils.remove_entry(@scratch) if @scratch
  end

  def launch(*arguments, bind: "tcp://127.0.0.1:0", **options)
    @server = Helper::Server.new(:oribi, "--workers", "1", *arguments, bind: bind, **options)
  end

  # A path of a unix socket in the server's directory.
  def path = File.join(server.directory, "app.sock")

  def unix = keep(Helper::Client.unix(path))

  def test_the_mode_of_a_unix_socket
    launch("--socket-mode", "0602", bind: "unix://app.sock").ready
    assert_equal 0o602, File.stat(path).mode & 0o777
    assert_match(%r{ /x\z}, unix.get("/x").body)
  end

  def test_a_socket_file_that_nobody_listens_on_is_removed_with_a_line
    file = File.join(@scratch = Dir.mktmpdir("oribi-listen"), "old.sock")
    UNIXServer.new(file).close
    launch(bind: "unix://#{file}").ready
    assert_match(/^oribi: removing existing socket file: #{file}$/, server.log)
    assert_match(%r{ /x\z}, keep(Helper::Client.unix(file)).get("/x").body)
    # Another server may not have it while this one lives.
    assert_match(/\Aoribi: cannot listen on .*a server is listening/, said_by("unix://#{file}"))
  end

  def test_what_is_no_socket_is_left_alone
    launch(bind: "unix://app.sock", files: { "app.sock" => "precious" })
    assert_equal 1, server.wait
    assert_match(/something that is not a socket is there: move it away/, server.log)
    assert_equal "precious", File.read(path)
  end

  def test_two_servers_share_a_port
    port = Helper.free_port
    launch("--reuse-port", bind: "tcp://127.0.0.1:#{port}").ready
    second = Helper::Server.new(:oribi, "--workers", "1", "--reuse-port",
                                bind: "tcp://127.0.0.1:#{port}").ready
    pids = [server, second].map { |one| one.one("worker").pid }
    wait_until("both answer") do
      pids.delete(keep(Helper::Client.tcp(port)).get.body.to_i)
      pids.empty?
    end
    assert_match(/port is taken/, said_by("tcp://127.0.0.1:#{port}"))
  ensure
    if second
      # Cleaning up after one would take the other for a leftover.
      second.signal("TERM")
      second.wait
      FileUtils.remove_entry(second.directory)
    end
  end

  # What a server says that cannot listen there.
  def said_by(address)
    command = [Oribi::Binary.environment, Oribi::Binary.path, "-b", address,
               File.join(Helper::ROOT, "test/apps/http.ru"), { err: %i[child out] }]
    IO.popen(command, &:read)
  end

  # Such a connection is not accepted, so the server's patience with silent ones does not end it.
  def test_a_connection_that_sends_nothing_is_not_accepted
    launch("--defer-accept", "--first-byte-timeout", "0.1").ready
    listening = Integer(server.log[/listening on \S+:(\d+)$/, 1], 10)
    client = keep(Helper::Client.tcp(listening))
    assert_nil client.socket.wait_readable(0.6)
    assert_match(%r{ /late\z}, client.get("/late").body)
  end

  def test_backlog
    launch("--backlog", "7").ready
    listening = Integer(server.log[/listening on \S+:(\d+)$/, 1], 10)
    row = File.readlines("/proc/net/tcp").map(&:split).find do |fields|
      fields[1].end_with?(format(":%04X", listening)) && fields[3] == "0A"
    end
    assert row
    # Of a listening socket ss shows the backlog in the place of what is to be sent.
    shown = IO.popen(["ss", "-ltnH", "sport = :#{listening}"], &:read)
    assert_equal 7, Integer(shown.split[2], 10)
  end
end
