# frozen_string_literal: true

require "etc"
require "helper_case"

# The server as a process: in the background, with a pid file, in another directory.
class ProcessTest < Helper::Case
  def teardown
    super
    FileUtils.remove_entry(@scratch) if @scratch
  end

  def launch(*arguments, **options)
    @server = Helper::Server.new(:oribi, "--workers", "1", *arguments,
                                 app: Helper::Case.source("deploy.ru"),
                                 files: { "release" => "1" }, **options)
  end

  def file(name) = File.join(server.directory, name)

  # The pid that the server's file names, once it is there.
  def pid_in(name)
    wait_until("a pid in #{name}") { Integer(File.read(file(name)), exception: false) }
  end

  # Ends a daemon, which the test is the subreaper of.
  def finish(pid)
    Process.kill("TERM", pid)
    wait_until("daemon #{pid} ends") { Process.wait(pid, Process::WNOHANG) }
  rescue Errno::ECHILD, Errno::ESRCH
    nil
  end

  def test_a_daemon_is_left_behind_once_it_serves
    # A pipe that nobody has open any more is read to its end: the terminal is free.
    reader, writer = IO.pipe
    launch("-d", "--pid-file", "oribi.pid", "--error-log", "errors", out: writer)
    writer.close
    assert_equal 0, server.wait
    pid = pid_in("oribi.pid")
    said = reader.wait_readable(5) && reader.read
    assert_match(/^oribi: \S+ serves, pid #{pid}, booted in/, said)
    assert_match(/^oribi: listening on http:.*\noribi: 1 worker of 1 thread/, said)
    port = Integer(said[/http:\S+:(\d+)$/, 1], 10)
    assert_equal "release 1", Helper::Client.tcp(port).get.body
    leader = File.read("/proc/#{pid}/stat").rpartition(")").last.split[3].to_i
    assert_equal pid, leader, "it has a session of its own"
    assert_match(/ serves, pid #{pid}/, File.read(file("errors")))
    family(pid).each do |entry|
      assert_equal "/dev/null", File.readlink("/proc/#{entry.pid}/fd/0") if entry.pid == pid
      refute_match(/pipe:\[#{reader.stat.ino}\]/, File.readlink("/proc/#{entry.pid}/fd/1"))
    end
  ensure
    finish(pid) if pid
    refute File.exist?(file("oribi.pid"))
  end

  def test_a_daemon_that_cannot_boot_says_why
    launch("-d", "--pid-file", "oribi.pid", app: "raise 'no database here'\n")
    assert_equal 1, server.wait
    assert_match(/no database here.*config\.ru:1/m, server.log)
    assert_match(/^oribi: the app did not load: RuntimeError: no database here/, server.log)
    refute File.exist?(file("oribi.pid"))
  end

  def test_a_daemon_whose_port_is_taken_says_so
    taken = TCPServer.new("127.0.0.1", 0)
    launch("-d", bind: "tcp://127.0.0.1:#{taken.addr[1]}")
    assert_equal 1, server.wait
    assert_match(/\Aoribi: cannot listen on .*port is taken/, server.log)
  ensure
    taken.close
  end

  def test_a_pid_file_is_there_while_the_server_is
    launch("--pid-file", "oribi.pid").ready
    assert_equal server.pid, pid_in("oribi.pid")
    server.signal("TERM")
    assert_equal 0, server.wait
    refute File.exist?(file("oribi.pid"))
  end

  def test_a_pid_file_of_a_server_that_lives_is_respected
    launch("--pid-file", "oribi.pid", files: { "release" => "1", "oribi.pid" => "1\n" })
    assert_equal 1, server.wait
    assert_match(/^oribi: pid_file: process 1 of .*oribi\.pid lives: stop it, or/, server.log)
    assert_equal "1\n", File.read(file("oribi.pid"))
  end

  def test_a_pid_file_under_rackup_names_rackup
    @server = Helper::Server.new(:rackup, "--workers", "1", "--pid-file", "oribi.pid").ready
    assert_equal server.pid, pid_in("oribi.pid")
    server.signal("TERM")
    assert_equal 0, server.wait
    refute File.exist?(file("oribi.pid"))
  end

  def test_it_goes_to_another_directory_first
    elsewhere = @scratch = Dir.mktmpdir("oribi-chdir")
    File.write(File.join(elsewhere, "config.ru"), Helper::Case.source("deploy.ru"))
    File.write(File.join(elsewhere, "release"), "there")
    launch("--chdir", elsewhere, "--pid-file", "oribi.pid").ready
    assert_equal "release there", get.body
    assert_equal elsewhere, get("/who").body.split.last
    assert File.exist?(File.join(elsewhere, "oribi.pid"))
    server.signal("USR2")
    wait_for_log(/generation 2 serves/)
    assert_equal elsewhere, get("/who").body.split.last
  end

  def test_a_directory_that_is_not_there
    launch("--chdir", "nowhere")
    assert_equal 1, server.wait
    assert_match(%r{^oribi: chdir: /.*/nowhere: No such file}, server.log)
  end

  def test_an_unknown_user
    launch("--user", "nobody-of-this-name")
    assert_equal 1, server.wait
    assert_match(/^oribi: user: this machine has no user "nobody-of-this-name"/, server.log)
  end
end

# What only root can have.
class PrivilegesTest < Helper::Case
  USER = Etc.getpwnam("nobody")
  GROUP = Etc.getgrnam("www-data")

  def ids(pid) = File.read("/proc/#{pid}/status").scan(/^(?:U|G)id:\s+(\d+)/).flatten.map(&:to_i)

  def assert_dropped(how)
    socket = File.join(@directory = Dir.mktmpdir("oribi-user"), "app.sock")
    FileUtils.chmod(0o755, @directory)
    @server = Helper::Server.new(how, "--workers=1", "--user=nobody", "--group=www-data",
                                 "--socket-mode=0660", "--access-log=access",
                                 bind: "unix://#{socket}",
                                 app: Helper::Case.source("deploy.ru"), files: { "release" => "1" },
                                 open: true)
    wait_for_log(/^oribi: 1 worker of/)
    assert_equal [0, 0], ids(server.one("supervisor").pid)
    2.times do |index|
      %w[front mold worker].each do |role|
        entry = wait_until("a #{role}") { server.find(role).max_by(&:start) }
        assert_equal [USER.uid, GROUP.gid], ids(entry.pid), role
      end
      who = Helper::Client.unix(socket).get("/who").body
      assert_equal "#{USER.uid} #{GROUP.gid}", who[/\A\d+ \d+/]
      next if index == 1

      server.signal("USR2")
      wait_for_log(/generation 2 serves/)
    end
    stat = File.stat(socket)
    assert_equal [USER.uid, GROUP.gid, 0o660], [stat.uid, stat.gid, stat.mode & 0o777]
    server.signal("TERM")
    assert_equal 0, server.wait
    refute File.exist?(socket)
    assert_match(%r{"GET /who}, File.read(File.join(server.directory, "access")))
  ensure
    FileUtils.remove_entry(@directory)
  end

  if Helper.can_be_another_user?
    def test_all_but_the_supervisor_run_as_the_user = assert_dropped(:oribi)

    def test_so_it_is_under_rackup = assert_dropped(:rackup)
  end

  if Process.uid.zero?
    # As somebody else the server is asked to be a third.
    def test_only_root_can_give_itself_up
      output = IO.popen([Oribi::Binary.environment,
                         "setpriv", "--reuid=#{USER.uid}", "--clear-groups",
                         Oribi::Binary.path, "--user", "www-data", "--chdir", "/",
                         File.join(Helper::ROOT, "test/apps/deploy.ru"),
                         { err: %i[child out] }], &:read)
      assert_match(/\Aoribi: user: only root can run workers as somebody else/, output)
    end
  end
end
