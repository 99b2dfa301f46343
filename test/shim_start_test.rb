# frozen_string_literal: true

require "etc"
require "helper_shim"

# How the CGI shim finds its application and starts the server, and what it refuses.
class ShimStartTest < Minitest::Test
  include Helper

  NOBODY = "nobody"

  def setup = @app = CgiDirectory.new

  def teardown
    @app.remove
    left = Helper.all_processes.select { |entry| entry.title.include?(@app.path) }
    assert_empty left
  end

  # What was printed is a page of this process.
  def page(hit)
    out, err, status = hit
    assert_equal ["", 0], [err, status]
    out[/\AContent-Type: text\/plain\r\n\r\n(\d+)\z/, 1].to_i
  end

  # A whole answer for the client, which names no file; one line for the log.
  def assert_refused(pattern, hit)
    out, err, status = hit
    assert_match(/\AStatus: 500 Internal Server Error\r\nContent-Type: text\/plain\r\n/, out)
    refute_includes out.split("\r\n\r\n", 2).last, "/tmp"
    assert_match(/\Aoribi: index.cgi: .*\n\z/, err)
    assert_match(pattern, err)
    assert_equal 1, status
  end

  def test_it_is_static_and_small
    shim = File.binread(Oribi::Binary.shim)
    assert_operator shim.bytesize, :<, 1024 * 1024
    # Of the program headers of an ELF file (64 bits) 3 is the one that names a dynamic linker.
    start, size, count = shim.byteslice(32, 8).unpack1("Q"), *shim.byteslice(54, 4).unpack("SS")
    kinds = Array.new(count) { |index| shim.byteslice(start + (index * size), 4).unpack1("L") }
    assert_includes kinds, 1
    refute_includes kinds, 3
  end

  def test_of_a_hundred_first_hits_one_starts_a_server
    @app.server("sleep 0.3")
    pids = Array.new(100) { Thread.new { page(@app.hit) } }.map(&:value)
    assert_equal 1, pids.uniq.size
    assert_equal pids.uniq, @app.starts
    assert_equal "40700", File.stat(@app.run).mode.to_s(8)
    assert_equal "40700", File.stat(@app.base).mode.to_s(8)
    assert_equal "100600", File.stat(File.join(@app.run, "log")).mode.to_s(8)
    refute_path_exists File.join(@app.run, "starting")
  end

  # Somebody connects at this moment, or ends a server: with that in sight nothing is started.
  def test_nobody_starts_a_server_under_a_lock
    @app.server
    @app.make_run
    File.open(File.join(@app.run, "lock"), "w", 0o600) do |lock|
      lock.flock(File::LOCK_EX)
      first = Thread.new { page(@app.hit) }
      wait_until("it waits to connect") { waiting_for("READ") }
      lock.flock(File::LOCK_SH)
      wait_until("it waits to start a server") { waiting_for("WRITE") }
      assert_empty @app.starts
      lock.flock(File::LOCK_UN)
      pid = first.value
      assert_equal [pid], @app.starts
    end
  end

  def test_a_server_that_is_killed_is_started_again
    @app.server
    first = page(@app.hit)
    Process.kill("KILL", first)
    Process.wait(first)
    # Its socket is still there, and nobody listens.
    refute_equal first, page(@app.hit)
  end

  # A web server has lost patience with the first request; the second waits for the same server.
  def test_who_waits_may_be_killed
    gate = File.join(@app.path, "gate")
    File.mkfifo(gate)
    @app.server("File.read(#{gate.inspect})")
    first = Process.spawn(@app.env, @app.shim, out: File::NULL, unsetenv_others: true)
    wait_until("a server starts") { @app.starts.any? }
    Process.kill("KILL", first)
    Process.wait(first)
    second = Thread.new { page(@app.hit) }
    wait_until("the second waits") { locked_by.size == 1 }
    File.write(gate, "")
    assert_equal @app.starts, [second.value]
  end

  def test_what_a_server_inherits
    @app.server(<<~'RUBY')
      File.write("seen", Marshal.dump([ENV.to_h, Dir.pwd, Process.getsid == Process.pid,
        [0, 1, 2].map { |fd| File.readlink("/proc/self/fd/#{fd}") }]))
    RUBY
    reader, writer = IO.pipe
    more = { HTTP_PROXY: "x", QUERY_STRING: "--server", REMOTE_ADDR: "::1", DATABASE_URL: "db",
             SSL_CERT_FILE: "/ca", HTTPS: "on", LANG: "C.UTF-8" }
    pid = Process.spawn(@app.env(**more), @app.shim, out: File::NULL, unsetenv_others: true,
                                                     9 => writer)
    assert_equal 0, Process.wait2(pid).last.exitstatus
    writer.close
    assert_nil reader.read_nonblock(1, exception: false), "nothing of the web server's stays open"
    seen = File.binread(File.join(@app.path, "seen"))
    env, directory, leader, streams = Marshal.load(seen) # rubocop:disable Security/MarshalLoad
    expected = { "DATABASE_URL" => "db", "LANG" => "C.UTF-8", "ORIBI_RUNTIME_DIR" => @app.base,
                 "PATH" => ENV.fetch("PATH"), "SSL_CERT_FILE" => "/ca" }
    assert_equal expected, env
    log = File.join(@app.run, "log")
    assert_equal [@app.path, true, [File::NULL, log, log]], [directory, leader, streams]
  end

  def test_a_web_server_without_a_path
    @app.server('File.write("path", ENV["PATH"])')
    page(@app.hit(PATH: nil))
    assert_equal "/usr/local/bin:/usr/bin:/bin", File.read(File.join(@app.path, "path"))
  end

  def test_a_query_is_no_command
    @app.server
    assert_operator page(@app.hit(program: [@app.shim, "--help", "--start"])), :>, 1
  end

  def test_an_application_that_does_not_start
    @app.write("acgi.rb", "def boot = raise('no database')\nboot\n")
    assert_refused(/ended while it started: .*acgi.rb:1:.*no database \(Runtime/, @app.hit)
    # And again: nothing is left that would be waited for.
    assert_refused(/no database/, @app.hit)
    @app.server
    assert_operator page(@app.hit), :>, 1
  end

  # It listens, and ends before it has looked at anybody.
  def test_an_application_that_fails_behind_its_listener
    @app.server(after: <<~RUBY)
      require "socket"
      File.delete(%2$s) if File.exist?(%2$s)
      UNIXServer.new(%2$s)
      abort "no tables"%1$s
    RUBY
    assert_refused(/: no tables \(all of it: .*\/log\)/, @app.hit)
  end

  def test_nothing_to_start
    assert_refused(/cannot run oribi: .*PATH=\/nowhere\); run `oribi cgi install`/,
                   @app.hit(PATH: "/nowhere"))
  end

  def test_no_application
    FileUtils.rm(File.join(@app.path, "config.ru"))
    assert_refused(/neither server.cgi nor config.ru is beside #{@app.shim}:/, @app.hit)
    @app.write("server.cgi", "")
    @app.server
    assert_operator page(@app.hit), :>, 1
  end

  # The program is somewhere else: the web server's name for it counts.
  def test_a_link_to_the_program
    program = File.join(@app.base, "oribi-shim")
    @app.make_run
    FileUtils.mv(@app.shim, program)
    File.symlink(program, @app.shim)
    @app.server
    assert_operator page(@app.hit(SCRIPT_FILENAME: @app.shim)), :>, 1
  end

  def test_by_hand
    out, err, status = @app.hit(REQUEST_METHOD: nil)
    assert_match(/\AStatus: 500/, out)
    assert_match(/there is no REQUEST_METHOD: .*by hand: REQUEST_METHOD=GET/, err)
    assert_equal 1, status
  end

  def test_a_run_directory_that_is_open_or_none
    @app.server
    @app.make_run
    FileUtils.chmod(0o750, @app.run)
    assert_refused(/#{@app.run}: its mode is 0750, not 0700; remove it/, @app.hit)
    Dir.rmdir(@app.run)
    elsewhere = File.join(@app.path, "elsewhere")
    Dir.mkdir(elsewhere, 0o700)
    File.symlink(elsewhere, @app.run)
    assert_refused(/it is no directory; remove it/, @app.hit)
    File.delete(@app.run)
    FileUtils.rmdir(@app.base)
    File.write(@app.base, "")
    assert_refused(/it is no directory; remove it, or name a directory/, @app.hit)
  end

  def test_a_run_directory_with_too_long_a_name
    base = File.join(@app.path, "x" * 100)
    Dir.mkdir(base, 0o700)
    assert_refused(/too long: name a shorter directory/, @app.hit(ORIBI_RUNTIME_DIR: base))
  end

  def test_something_else_in_the_place_of_the_socket
    @app.server
    @app.make_run
    File.write(@app.socket, "")
    assert_refused(/#{@app.socket}: it is no socket; remove it/, @app.hit)
    File.delete(@app.socket)
    File.symlink("/run/elsewhere", @app.socket)
    assert_refused(/it is no socket; remove it/, @app.hit)
    File.delete(@app.socket)
    File.delete(File.join(@app.run, "lock"))
    File.symlink("/etc/passwd", File.join(@app.run, "lock"))
    assert_refused(/the lock cannot be opened/, @app.hit)
  end

  if Process.uid.zero?
    # Somebody else was there first, and waits for the requests of others.
    def test_what_another_user_has_planted
      @app.server
      FileUtils.mkdir(@app.base, mode: 0o700)
      theirs = Etc.getpwnam(NOBODY).uid
      FileUtils.chown(NOBODY, nil, @app.base)
      assert_refused(/it belongs to user #{theirs}, not to user 0; remove it/, @app.hit)
      FileUtils.chown("root", nil, @app.base)
      FileUtils.mkdir(@app.run, mode: 0o700)
      FileUtils.chown(NOBODY, nil, @app.run)
      assert_refused(/it belongs to user #{theirs}, not to user 0; remove it/, @app.hit)
      FileUtils.chown("root", nil, @app.run)
      listener = @app.listen { |peer| peer.page("stolen") }
      FileUtils.chown(NOBODY, nil, @app.socket)
      assert_refused(/#{@app.socket}: it belongs to user #{theirs}; remove it/, @app.hit)
      refute_predicate listener, :closed?
      assert_empty @app.starts
    end

    # As a web server's user: everything belongs to it.
    def test_as_another_user
      @app.server
      @app.write("starts", "")
      FileUtils.chmod(0o666, File.join(@app.path, "starts"))
      FileUtils.mkdir(@app.base, mode: 0o700)
      FileUtils.chown(NOBODY, nil, @app.base)
      program = ["setpriv", "--reuid", NOBODY, "--clear-groups", @app.shim]
      assert_operator page(@app.hit(program: program)), :>, 1
      theirs = Etc.getpwnam(NOBODY).uid
      owners = %w[. socket lock log].map { |name| File.lstat(File.join(@app.run, name)).uid }
      assert_equal [theirs] * 4, owners
    end
  end

  private

  # Somebody waits for the lock file like this (READ is shared).
  def waiting_for(kind)
    inode = File.stat(File.join(@app.run, "lock")).ino
    File.foreach("/proc/locks").grep(/-> FLOCK +ADVISORY +#{kind} .*:#{inode} /).any?
  end

  # Processes that have the lock file open.
  def locked_by
    lock = File.join(@app.run, "lock")
    Dir["/proc/[0-9]*/fd/*"].select do |link|
      File.readlink(link) == lock
    rescue SystemCallError
      false
    end
  end
end
