# frozen_string_literal: true

module ACGI
  # A mold and its workers, as the server sees them.
  Generation = Struct.new(:pid, :reader)

  # The server of a directory: it holds the listener and the run directory, and runs nothing of the
  # app's. It starts the mold, another one when the code changes, and ends when nothing has come for
  # a while.
  class Server
    # Seconds between two looks at the files.
    LOOK = 0.5
    BACKLOG = 1024

    def initialize(place)
      @place = place
      @leaving = []
    end

    # Returns when the server has ended.
    def run
      Dir.chdir(@place.directory)
      Variables.settle
      @lock = @place.take_over
      return say("another server of #{@place.directory} runs already") unless @lock

      open_all
      boot
      turn until @ended
    ensure
      @candidate && kill("KILL", @candidate)
    end

    private

    def say(line) = warn("acgi: #{line}")

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # The socket has its name only once there are workers: who can connect is served.
    def open_all
      @signals = Signals.new("TERM", "INT", "QUIT", "HUP", "CHLD")
      $stdout.sync = true
      @hidden = "#{@place.socket}.new"
      FileUtils.rm_f([@hidden, @place.socket])
      listener = listen
      life, @life = IO.pipe
      @pulse, pulse = IO.pipe
      @ties = Ties.new(listener: listener, life: life, pulse: pulse, directory: @place.directory)
      @ties.title("server")
      @watch = Watch.new(@place.directory)
    end

    def listen
      listener = UNIXServer.new(@hidden)
      File.chmod(0o600, @hidden)
      listener.listen(BACKLOG)
      listener
    rescue ArgumentError
      raise Error, "#{@hidden} is too long for a socket: set ORIBI_RUNTIME_DIR to a shorter path"
    end

    def boot
      @stamp = @watch.stamp
      @booted = now
      reader, report = IO.pipe
      pid = fork { become_mold(reader, report) }
      report.close
      @candidate = Generation.new(pid, reader)
    end

    def become_mold(reader, report)
      [@lock, @life, @pulse, reader].each(&:close)
      @signals.close
      Mold.new(@place, @ties, report).run
    end

    def turn
      waited = [@signals.io, @pulse, @candidate&.reader].compact
      ready, = IO.select(waited, nil, nil, LOOK)
      hear if ready&.include?(@pulse)
      meet if @candidate && ready&.include?(@candidate.reader)
      @signals.take.each { |signal| obey(signal) }
      reap
      look unless @stopping
      @ended = @stopping && [@serving, @candidate, *@leaving].compact.empty?
    end

    def hear
      @pulse.read_nonblock(4096, exception: false)
      @active = now
    end

    # The new mold says that it is ready; nothing when it failed.
    def meet
      # A mold of this very program.
      report = Marshal.load(@candidate.reader) # rubocop:disable Security/MarshalLoad
      @candidate.reader.close
      promote(report)
    rescue EOFError, SystemCallError
      # Its end is reported in a moment.
      Process.wait(@candidate.pid)
      lose(@candidate)
    end

    def promote(report)
      retire(@serving) if @serving
      @serving = @candidate
      @candidate = nil
      @idle, @watch, @stamp = report.values_at(:idle, :watch, :stamp)
      @active = now
      return kill("QUIT", @serving) if @stopping

      File.rename(@hidden, @place.socket) if File.exist?(@hidden)
      say(@published ? "serves the new code" : "serves #{@place.directory} (pid #{Process.pid})")
      @published = true
    end

    def retire(generation)
      kill("TERM", generation)
      @leaving << generation
    end

    def kill(signal, generation)
      Process.kill(signal, generation.pid)
    rescue Errno::ESRCH
      nil
    end

    def obey(signal)
      case signal
      when "TERM", "INT"
        # Whoever says it twice means now: the others end with this process.
        exit!(1) if @stopping
        stop
      when "QUIT" then exit!(1)
      when "HUP" then boot unless @candidate || @stopping
      end
    end

    # Nobody connects while the socket goes; who has connected is served.
    def stop
      @stopping = true
      hide
      kill("QUIT", @serving) if @serving
      kill("KILL", @candidate) if @candidate && (@serving || !@published)
    end

    def reap
      while (pid, = Process.wait2(-1, Process::WNOHANG))
        lost = [@candidate, @serving, *@leaving].compact.find { |one| one.pid == pid }
        lose(lost) if lost
      end
    rescue Errno::ECHILD
      nil
    end

    def lose(generation)
      return if @leaving.delete(generation)

      if generation.equal?(@serving)
        @serving = nil
        say("the mold has ended: another one is started") unless @stopping
      else
        @candidate = nil
        give_up
      end
    end

    # New code that does not load leaves the old at work; without any there is no server.
    def give_up
      return if @stopping
      return say("the new code does not load: the old one serves on") if @serving

      @published ? hide : FileUtils.rm_f(@hidden)
      exit!(1)
    end

    def hide
      @place.locked(File::LOCK_EX) { FileUtils.rm_f([@hidden, @place.socket]) }
    rescue SystemCallError => error
      # Somebody has tidied up: nobody finds this server any more.
      say("no run directory: #{error.message}")
    end

    def look
      return if @candidate
      return boot if @serving.nil? && now - @booted > 1

      changed? && @serving && boot
      stop_idle if @idle && now - @active > @idle
    end

    # Only once a look has found nothing new since the one before: a file may still be written.
    def changed?
      stamp = @watch.stamp
      settled = stamp == @last
      @last = stamp
      settled && stamp != @stamp
    end

    def stop_idle
      say("nothing came for #{@idle.round} s: the server ends")
      stop
    end
  end
end
