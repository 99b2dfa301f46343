# frozen_string_literal: true

module ACGI
  # The process that has the app loaded and forks the workers from it. New code is a new mold.
  class Mold
    # Seconds that requests may take to finish when their worker is to leave.
    SHUTDOWN = 30
    # Seconds: a worker that lives shorter was never well, and its successor waits.
    EARLY = 1
    LONGEST = 10

    def initialize(place, ties, report)
      @place = place
      @ties = ties
      @report = report
      @workers = {}
      @early = 0
      @due = 0
    end

    # Does not return.
    def run
      @signals = Signals.new("TERM", "QUIT", "CHLD")
      @own, @life = IO.pipe
      prepare
      fork_workers
      Marshal.dump({ idle: @settings.idle_seconds, watch: @watch, stamp: @stamp }, @report)
      @report.close
      turn until @leaving && @workers.empty?
      exit(0)
    end

    private

    def prepare
      watch = Watch.new(@place.directory)
      @stamp = watch.stamp
      @settings = Settings.read(@place.directory)
      file = App.file(@place.directory)
      @settings.check_threads(File.basename(file) == App::SCRIPT && file)
      @settings.warnings.each { |warning| warn "acgi: #{warning}" }
      @watch = Watch.new(@place.directory, @settings.patterns)
      @stamp = @watch.stamp.merge(@stamp)
      load(file)
    rescue Error, SystemCallError => error
      abort "acgi: #{error.message}"
    end

    def load(file)
      # What a script that is run finds there.
      $PROGRAM_NAME = file
      @ties.title("mold")
      @app = App.load(file, @settings.worker_count)
      GC.start
    rescue SystemExit
      abort "acgi: #{file} ended before it served anything"
    rescue Error
      raise
    rescue Exception => error # rubocop:disable Lint/RescueException
      warn ACGI.describe(error)
      abort "acgi: #{file} does not load: #{error.message.lines.first.to_s.chomp} (#{error.class})"
    end

    def turn
      ready, = IO.select([@signals.io, @ties.life], nil, nil, wait)
      exit!(1) if ready&.include?(@ties.life)
      @signals.take.each { |signal| leave(signal) unless signal == "CHLD" }
      reap
      fork_workers unless @leaving
      @workers.each_key { |pid| kill("KILL", pid) } if @leaving && now > @leaving
    end

    def wait
      return [@leaving - now, 0.1].max if @leaving

      [@due - now, 0.01].max if missing.positive?
    end

    def missing = @settings.worker_count - @workers.size

    def fork_workers
      return if now < @due

      missing.times do
        pid = fork { become_worker }
        @workers[pid] = now
      end
    end

    def become_worker
      at_exit { end_worker($!) } # rubocop:disable Style/SpecialGlobalVars
      [@life, @report].each { |io| io.close unless io.closed? }
      @signals.close
      Random.srand
      @ties.title("worker")
      Worker.new(@app, @ties, @own, @settings).run
      exit(0)
    end

    # What the mold has registered for the end is not for its workers.
    def end_worker(error)
      Streams.report(error) unless error.nil? || error.is_a?(SystemExit)
      Streams.flush
      exit!(error.is_a?(SystemExit) ? error.status : error.nil?)
    end

    def leave(signal)
      @leaving ||= now + SHUTDOWN
      @workers.each_key { |pid| kill(signal, pid) }
    end

    def kill(signal, pid)
      Process.kill(signal, pid)
    rescue Errno::ESRCH
      nil
    end

    def reap
      while (pid, status = Process.wait2(-1, Process::WNOHANG))
        began = @workers.delete(pid)
        mourn(pid, status, now - began) if began && !@leaving
      end
    rescue Errno::ECHILD
      nil
    end

    def mourn(pid, status, life)
      how = status.signaled? ? "signal #{status.termsig}" : "exit #{status.exitstatus}"
      warn "acgi: worker #{pid} has ended: #{how}"
      @early = life < EARLY ? @early + 1 : 0
      @due = now + [0.1 * ((2**@early) - 1), LONGEST].min
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
