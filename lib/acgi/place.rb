# frozen_string_literal: true

module ACGI
  # Where the server of a directory and those who look for it meet: the run directory with its
  # socket and locks. The shim and the native server know the same rules.
  #
  # Who connects holds `lock` shared; who starts a server, or takes the socket of an ending one
  # away, holds it alone. The server holds `server.lock` for its life, and its pid is in there.
  class Place
    OFFSET = 0xcbf29ce484222325
    PRIME = 0x100000001b3
    # Seconds that a server may take to load its app, and to finish its requests.
    PATIENCE = 60
    STEP = 0.01
    # Bytes of a log that is begun anew.
    LONG = 1024 * 1024
    # Seconds after which one that answers is not ending.
    DOUBT = 1

    attr_reader :directory, :run

    # Bytes of a path, FNV-1a of 64 bits, as 16 hexadecimal digits.
    def self.name(path)
      hash = path.each_byte.inject(OFFSET) { |sum, byte| ((sum ^ byte) * PRIME) & ((2**64) - 1) }
      format("acgi-%016x", hash)
    end

    def initialize(directory)
      @directory = File.realpath(directory)
      base = ENV.fetch("ORIBI_RUNTIME_DIR", "")
      base = "/tmp/oribi-#{Process.euid}" if base.empty?
      @run = File.join(base, Place.name(@directory))
      [base, @run].each { |path| own(path) }
    rescue Errno::ENOENT
      raise Error, "there is no directory #{directory}"
    end

    def socket = File.join(@run, "socket")

    def log = File.join(@run, "log")

    # Holds `lock` during the block: File::LOCK_SH or LOCK_EX.
    def locked(how)
      file = open_lock("lock")
      file.flock(how)
      yield
    ensure
      file&.close
    end

    # Whether somebody accepts at the socket.
    def answers?
      UNIXSocket.open(socket).close
      true
    rescue SystemCallError
      false
    end

    # The lock of a server, taken for life; nil when another server serves already. One that is
    # ending is waited for: it may answer for a moment yet. `lock` is held by whoever started this
    # process.
    def take_over
      file = open_lock("server.lock")
      doubt = now
      until file.flock(File::LOCK_EX | File::LOCK_NB)
        doubt = now unless answers?
        return file.close if now - doubt > DOUBT

        sleep(STEP)
      end
      file.truncate(0)
      file.write("#{Process.pid}\n")
      file.flush
      # What is locked systemd-tmpfiles leaves alone (tmpfiles.d(5), "Age").
      @kept = File.open(@run).tap { |run| run.flock(File::LOCK_SH | File::LOCK_NB) }
      file
    end

    # The pid of the last server (0: there was none), and whether it lives.
    def server
      file = open_lock("server.lock")
      alive = !file.flock(File::LOCK_SH | File::LOCK_NB)
      pid = file.read.to_i
      # Taken this instant, and not written yet.
      return [pid, alive] unless alive && pid.zero?

      sleep(STEP)
      server
    ensure
      file&.close
    end

    # Starts the server in the background unless one answers, and waits until it does.
    def start
      locked(File::LOCK_EX) do
        next if answers?

        seen = File.size?(log).to_i
        pid = spawn
        limit = now + PATIENCE
        until answers?
          raise Error, last_line(seen) if Process.wait(pid, Process::WNOHANG)
          raise Error, "the server is not ready after #{PATIENCE} s: see #{log}" if now > limit

          sleep(STEP)
        end
        Process.detach(pid)
      end
    end

    # Tells the server to end, and waits until it has. One that starts has clients already, and is
    # waited for.
    def stop
      pid, alive = server
      return unless alive

      limit = now + PATIENCE
      sleep(STEP) until answers? || !server.last || now > limit
      Process.kill("TERM", pid)
      limit = now + PATIENCE
      while server.last
        raise Error, "process #{pid} does not end: `kill -9 #{pid}` ends it" if now > limit

        sleep(STEP)
      end
    rescue Errno::ESRCH
      nil
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def open_lock(name)
      flags = File::RDWR | File::CREAT | File::NOFOLLOW
      File.open(File.join(@run, name), flags, 0o600)
    rescue Errno::ELOOP
      raise Error, "#{File.join(@run, name)} is a symbolic link: remove it"
    end

    # Somebody else's directory could have their socket in it.
    def own(path)
      begin
        Dir.mkdir(path, 0o700)
      rescue Errno::EEXIST
        nil
      end
      found = File.lstat(path)
      return if found.directory? && found.uid == Process.euid && (found.mode & 0o077).zero?

      raise Error, "#{path} must be a directory of this user's alone (mode 0700): remove it, or " \
                   "set ORIBI_RUNTIME_DIR"
    rescue SystemCallError => error
      raise Error, "no run directory #{path}: #{error.message}; set ORIBI_RUNTIME_DIR"
    end

    def spawn
      log = File.open(self.log, File::WRONLY | File::CREAT | File::APPEND | File::NOFOLLOW, 0o600)
      log.truncate(0) if log.size > LONG
      fork do
        # A session of its own: it outlives the terminal.
        Process.setsid
        streams = { in: File::NULL, out: log, err: log }
        exec(RbConfig.ruby, ACGI::FILE, "--server", @directory, chdir: @directory, **streams)
      end
    ensure
      log&.close
    end

    def last_line(seen)
      text = File.binread(log)
      lines = text.byteslice([seen, text.bytesize].min..).scrub.lines.map(&:strip).reject(&:empty?)
      "the server ended: #{lines.last || "see #{log}"}"
    end
  end
end
