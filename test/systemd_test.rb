# frozen_string_literal: true

require "helper_case"

# What systemd gives and hears, by a stand-in for it: sockets from fd 3 on, and one that listens.
class SystemdTest < Helper::Case
  # Sets LISTEN_PID as systemd does: to the pid of the process it becomes.
  BECOME = ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"].freeze

  def setup
    @directory = Dir.mktmpdir("oribi-notify")
    @manager = Socket.new(:UNIX, :DGRAM)
    @heard = []
  end

  def teardown
    super
    @manager.close
    @sockets&.each(&:close)
    FileUtils.remove_entry(@directory)
  end

  # A server whose manager listens at `address`, with sockets from fd 3 on.
  def manage(*arguments, how: :oribi, sockets: [], env: {}, **options)
    address = options.delete(:address) || File.join(@directory, "notify")
    @manager.bind(Addrinfo.unix(address.sub(/\A@/, "\0"), :DGRAM))
    @sockets = sockets
    env = { "NOTIFY_SOCKET" => address, "LISTEN_FDS" => sockets.size.to_s,
            "LISTEN_FDNAMES" => "web:api" }.merge(env)
    options = { before: BECOME, app: Helper::Case.source("deploy.ru"), files: { "release" => "1" },
                bind: sockets.empty? ? "tcp://127.0.0.1:0" : nil }.merge(options)
    words = ["--workers", "1", *arguments]
    @server = Helper::Server.new(how, *words, env: env, fds: sockets, **options)
  end

  # Listens until a message has come that says all of this; the message.
  def hear(pattern)
    wait_until("the manager hears #{pattern.inspect} after #{@heard}") do
      raise Minitest::Assertion, "it ended: #{server.log}" if server.ended? && quiet?

      unless quiet?
        @heard << @manager.recv(4096)
        @heard.last if @heard.last.match?(pattern)
      end
    end
  end

  def quiet? = !@manager.wait_readable(0)

  def test_ready_reloading_and_stopping
    manage
    assert_equal "READY=1\nMAINPID=#{server.pid}\nSTATUS=generation 1 serves\n", hear(/READY/)
    assert_match(/^oribi: listening on/, server.log)
    before = now
    server.signal("USR2")
    reloading = hear(/RELOADING=1/)
    assert_in_delta before, Integer(reloading[/^MONOTONIC_USEC=(\d+)$/, 1], 10) / 1e6, 5
    assert_match(/^STATUS=generation 2 boots$/, reloading)
    assert_match(/^STATUS=generation 2 serves$/, hear(/READY=1/))
    File.write(File.join(server.directory, "config.ru"), "raise 'no'")
    server.signal("USR2")
    hear(/RELOADING=1/)
    assert_match(/^STATUS=generation 2 serves$/, hear(/READY=1/))
    server.signal("TERM")
    hear(/\ASTOPPING=1$/)
    assert_equal 0, server.wait
  end

  def test_under_rackup_the_calling_process_is_the_one_to_watch
    manage(how: :rackup, address: "@oribi-test-#{Process.pid}")
    assert_match(/^MAINPID=#{server.pid}$/, hear(/READY=1/))
    refute_equal server.pid, server.one("supervisor").pid
  end

  def test_the_watchdog_is_fed_twice_in_its_time
    manage(env: { "WATCHDOG_USEC" => "400000" })
    hear(/READY/)
    hear(/WATCHDOG/)
    began = now
    4.times { hear(/\AWATCHDOG=1\n\z/) }
    assert_in_delta 0.8, now - began, 0.5
    # A supervisor that does nothing any more must not seem alive.
    server.signal("STOP")
    @manager.recv(4096) while @manager.wait_readable(0.05)
    assert_nil @manager.wait_readable(1)
    server.signal("CONT")
    hear(/WATCHDOG/)
  end

  def test_a_watchdog_of_another_process_is_not_fed
    manage(env: { "WATCHDOG_USEC" => "100000", "WATCHDOG_PID" => "1" })
    hear(/READY/)
    assert_nil @manager.wait_readable(0.3)
  end

  def activate(how)
    tcp = TCPServer.new("127.0.0.1", 0)
    path = File.join(@directory, "web.sock")
    manage("--defer-accept=true", how: how, sockets: [tcp, UNIXServer.new(path), UDPSocket.new])
    hear(/READY/)
    assert_equal 2, server.log.scan(/^oribi: listening on/).size
    port = tcp.addr[1]
    assert_equal "127.0.0.1 #{port}", keep(Helper::Client.tcp(port)).get("/env", "Host:").body
    assert_equal "release 1", keep(Helper::Client.unix(path)).get.body
    # No child of the app holds a listener, and none is told of them.
    inodes = [tcp, *@sockets].map { |socket| socket.stat.ino }.join("|")
    child = keep(Helper::Client.tcp(port)).get("/child").body
    refute_match(/socket:\[(#{inodes})\]|LISTEN_|NOTIFY_SOCKET/, child)
    assert_match(/^PATH=/, child)
    assert_holders(inodes)
    server.signal("USR2")
    assert_match(/generation 2 serves/, hear(/READY=1/))
    assert_holders(inodes)
    assert_operator tcp.getsockopt(:TCP, :DEFER_ACCEPT).int, :>, 0
    server.signal("TERM")
    assert_equal 0, server.wait
    assert File.exist?(path), "the file is systemd's"
  end

  # Front and supervisor have the listeners open, and nobody else.
  def assert_holders(inodes)
    holders = server.tree.select do |entry|
      Dir["/proc/#{entry.pid}/fd/*"].any? do |fd|
        File.readlink(fd).match?(/socket:\[(#{inodes})\]/)
      rescue Errno::ENOENT
        false
      end
    end
    assert_equal %w[front supervisor], holders.map(&:role).sort
  end

  def test_socket_activation = activate(:oribi)

  def test_socket_activation_under_rackup = activate(:rackup)

  def test_sockets_for_another_process_are_left_alone
    tcp = TCPServer.new("127.0.0.1", 0)
    manage(sockets: [tcp], env: { "LISTEN_PID" => "1" }, before: [], bind: "tcp://127.0.0.1:0")
    hear(/READY/)
    refute_match(/:#{tcp.addr[1]}$/, server.log)
  end

  def test_an_fd_that_is_not_open_is_named_with_a_remedy
    manage(env: { "LISTEN_FDS" => "1" })
    assert_equal 1, server.wait
    assert_match(/\Aoribi: LISTEN_FDS names fd 3, which is not open: .*--keep-file-desc/,
                 server.log)
  end
end

# The unit files of the examples.
class UnitFileTest < Minitest::Test
  UNITS = Dir[File.join(Helper::ROOT, "examples/systemd/*.{service,socket}")]

  if system("systemd-analyze", "--version", out: File::NULL, err: File::NULL)
    def test_systemd_accepts_them
      verify = ["systemd-analyze", "verify", "--man=no", *UNITS, { err: %i[child out] }]
      output = IO.popen(verify, &:read)
      # The machine has no oribi where the unit looks for it.
      complaints = output.lines.grep(/oribi/).grep_v(/is not executable|Failed to load environment/)
      assert_equal [], complaints
    end
  end
end
