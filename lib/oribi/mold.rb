# frozen_string_literal: true

require "io/wait"
require "json"
require "socket"
require "stringio"
require "oribi/errors"
require "oribi/hooks"
require "oribi/metrics"
require "oribi/place"

# What an app may ask.
module Oribi
  class << self
    # Threads of each worker, as an app that is being loaded may want to know; nil elsewhere.
    attr_accessor :threads
  end

  # The process that has the app loaded and forks workers from it. It serves nothing itself; the
  # supervisor tells it what to do, one line a message (crates/wire/src/control.rs).
  class Mold
    # Signals that are the supervisor's business even when a terminal or a service manager sends
    # them to the whole group.
    SIGNALS = %w[TERM INT QUIT HUP USR1 USR2 TTIN TTOU].freeze
    # Those that tell a worker to leave, as the supervisor can.
    LEAVE = %w[TERM QUIT].freeze
    PACKET = 64 * 1024

    class << self
      # `oribi config.ru`: the mold is a Ruby of its own and loads what `init` names.
      def start
        new(inherited_socket).run { |init| load_app(init.fetch("rackup"), init) }
      end

      # `rackup -s Oribi`: the app is loaded already. `hooks` are those of the handler's options, by
      # name; those of the configuration file come after them.
      def join(socket, app, hooks = {})
        new(socket, hooks).run { app }
      end

      # The socket the supervisor has left open for this process.
      def inherited_socket
        UNIXSocket.for_fd(Integer(ENV.delete("ORIBI_MOLD"))).tap do |socket|
          socket.close_on_exec = true
        end
      end

      # `oribi check`: loads the app, says whether it did, ends.
      def check(rackup)
        began = now
        load_app(rackup, "environment" => ENV.fetch("RACK_ENV"))
        puts format("ok %<file>s (Ruby %<ruby>s, Rack %<rack>s, %<seconds>.2f s)",
                    file: rackup, ruby: RUBY_VERSION, rack: Rack.release, seconds: now - began)
        $stdout.flush
        # What the app has registered for the end of a server is not for a check.
        exit!(0)
      rescue Exception => error # rubocop:disable Lint/RescueException
        $stderr.write(Report.full(error))
        warn "oribi: #{rackup} does not load: #{Report.line(error)}"
        exit!(1)
      end

      # The app of a rackup file. Rack 2 returns it with the options of the file's first line.
      def load_app(rackup, init)
        ENV["RACK_ENV"] = init.fetch("environment")
        require_rack
        app, = Rack::Builder.parse_file(rackup)
        app
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      private

      def require_rack
        require "rack"
        # Rack 2.2's Lint uses it without loading it.
        require "uri"
      rescue LoadError
        raise Error, "Rack is not installed: `gem install rack`, or add it to the Gemfile"
      end
    end

    def initialize(socket, hooks = {})
      @socket = socket
      @handed_hooks = hooks
      @workers = {}
      @forked_any = false
      @leaving = false
    end

    # Boots with the app the block returns, forks until told to quit. Does not return.
    def run(&boot)
      end_without_inherited_handlers
      SIGNALS.each { |signal| trap(signal) {} }
      watch_for_leave
      # What an app prints is there when it is printed, whether or not somebody looks at a terminal.
      $stdout.sync = true
      require_native
      hello
      receive_init
      @app = boot_app(&boot)
      serve_messages
    end

    private

    # `at_exit` handlers run once, in the process that registered them: neither the calling
    # process's in its mold, nor the mold's in its workers.
    def end_without_inherited_handlers
      mine = Process.pid
      at_exit do
        next unless Process.pid == mine

        error = $! # rubocop:disable Style/SpecialGlobalVars
        status = error.is_a?(SystemExit) ? error.status : (error ? 1 : 0)
        Report.write(error) if error && !error.is_a?(SystemExit)
        [$stdout, $stderr].each(&:flush)
        exit!(status)
      end
    end

    # A worker may be told to leave before it is one, while its hooks run, or later. The mold itself
    # only leaves when the supervisor says so, and remembers nothing that its workers would inherit.
    def watch_for_leave
      LEAVE.each do |signal|
        trap(signal) do
          @told_to_leave = Process.pid
          @worker&.retire
        end
      end
    end

    def require_native
      require "oribi/native"
      require "oribi/worker"
    rescue LoadError => error
      give_up("the extension does not load: #{error.message}: build it again")
    end

    def hello
      pidfd = IO.for_fd(Native.pidfd_open(Process.pid))
      tell("hello #{Process.pid}", pidfd)
    ensure
      pidfd&.close
    end

    # Everything a worker needs is opened here, once: fds and mapping pass on by fork.
    def receive_init
      message, fds = receive
      word, json = message.split(" ", 2)
      exit!(1) unless word == "init"
      @init = JSON.parse(json)
      Oribi.threads = @init["threads"]
      take_place
      # Kept: what is no longer referred to is closed.
      use_error_log(fds.pop) if @init["error_log"]
      @segment, @supervisor, @bell, @counters, *@fronts = fds
      bells, exchanges = @fronts.map(&:fileno).each_slice(@fronts.size / 2).to_a
      Native.watch(@supervisor.fileno)
      Native.open_counters(@counters.fileno, @init.fetch("mount"))
      Native.open_segment(@segment.fileno, @bell.fileno, bells, exchanges)
      ENV["RACK_ENV"] ||= @init.fetch("environment")
      @fresh = @init["isolation"] == "fresh"
      Process.setproctitle("oribi: mold gen #{@init['generation']} #{@init['mount']}")
    end

    # One that the supervisor has started is there already; so it is with the error log.
    def take_place
      Place.confine(@init.fetch("confinement", {}))
      Dir.chdir(@init["chdir"]) if @init["chdir"]
    end

    # A mold that the supervisor has started has it already; one that it found does not.
    def use_error_log(socket)
      socket.autoclose = false
      $stderr.reopen(IO.for_fd(socket.fileno, "w"))
      $stderr.sync = true
      return unless @init["error_log_format"] == "json"

      Report.record_as("role" => "mold", "generation" => @init["generation"])
      Report.mark = @init["error_log"]
    end

    def boot_app
      began = Mold.now
      @hooks = Hooks.new(@handed_hooks, hooks_of_file)
      app = yield @init
      @app = app
      @hooks.run("after_mold_fork")
      warm_up if @fresh
      tell("ready #{((Mold.now - began) * 1000).round} #{RUBY_VERSION}")
      app
    rescue Exception => error # rubocop:disable Lint/RescueException
      Report.write(error)
      give_up(Report.line(error))
    end

    # A fresh worker has one request, and no time to be asked before it: what its app does when it
    # is first asked is done here, for all of them.
    def warm_up = rehearsing.warm_up

    # It has passed once; whether the app still answers is for requests to show.
    def warm_up_again
      warm_up
    rescue Unfit => error
      Report.write(error)
    end

    # A worker that takes no requests.
    def rehearsing
      @rehearsing ||= Worker.new(@app, nr: 0, seat: 0, settings: @init, hooks: @hooks)
    end

    def hooks_of_file
      return {} unless @init["config"]

      require "oribi/config"
      Config.hooks(@init["config"], @init["mount"])
    end

    def give_up(reason)
      tell("failed #{short(reason)}")
      exit!(1)
    end

    def short(reason) = reason.tr("\n", " ")[0, 2000]

    def serve_messages
      until @leaving && @workers.empty?
        readable, = IO.select([@socket, *@workers.keys])
        readable.each { |io| io.equal?(@socket) ? obey : reap(io) }
      end
      exit(0)
    end

    def obey
      message, = receive
      word, *numbers = message.split
      case word
      when "fork" then fork_worker(*numbers.map { |number| Integer(number) })
      when "serve" then @hooks.run("on_boot") { |error| Report.write(error) }
      when "quit" then @leaving = true
      else give_up("unknown message #{message.inspect}: binary and gem differ, rebuild both")
      end
    end

    # The worker waits at a gate until the supervisor has been told of it: should the mold die in
    # between, there must be no worker on seats that the supervisor believes free.
    def fork_worker(number, seat)
      prepare_heap
      gate, opener = IO.pipe
      pid = fork_unless_hindered(number) { become_worker(number, seat, gate, opener) }
      gate.close
      return opener.close unless pid

      pidfd = IO.for_fd(Native.pidfd_open(pid))
      tell("forked #{number} #{pid}", pidfd)
      opener.write("!")
      opener.close
      @workers[pidfd] = [number, pid]
    end

    # A hook or the kernel may not let it; the supervisor then asks for another fork, later.
    def fork_unless_hindered(number, &worker)
      what = "before_fork: "
      @hooks.run("before_fork", Hooks::Worker.new(number, @init["generation"]).freeze)
      what = "fork: "
      Process.fork(&worker)
    rescue Exception => error # rubocop:disable Lint/RescueException
      Report.write(error)
      tell("unfit #{number} #{short(what + Report.line(error))}")
      nil
    end

    # What every worker starts from. What each does first is done once here, and last: collecting
    # empties caches, and a worker that fills one copies the page it lies in.
    def prepare_heap
      return if @forked_any

      @forked_any = true
      tidy_heap
      warm_up_again if @fresh
      rehearsing.rehearse
      @rehearsing = nil
      # Where there is a process for each request, half of the pages that it would copy are those in
      # which the allocator finds room.
      Native.fill_holes if @fresh
    end

    # Objects that stay are old (they survived three collections), so that no worker marks them
    # again and again, and lie close together. Measured with Sinatra: a tenth less processor time
    # for each request. Newer Rubies have a call for it.
    def tidy_heap
      return Process.warmup if Process.respond_to?(:warmup)

      3.times { GC.start }
      GC.compact if GC.respond_to?(:compact)
    end

    def become_worker(number, seat, gate, opener)
      end_without_inherited_handlers
      # Again: the app may have had other plans.
      watch_for_leave
      opener.close
      @workers.each_key(&:close)
      Native.watch(@supervisor.fileno)
      exit!(0) unless gate.read(1)
      gate.close
      Process.setproctitle("oribi: worker #{number} gen #{@init['generation']} #{@init['mount']}")
      Random.srand
      Report.record_as("role" => "worker", "worker" => number)
      @worker = Worker.new(@app, nr: number, seat: seat, settings: @init, hooks: @hooks)
      @worker.retire if @told_to_leave == Process.pid
      Place.limit_cpu(@init.dig("confinement", "rlimits", "cpu"))
      take_part(number)
      @socket.close
      @worker.run
    end

    def take_part(number)
      @worker.prepare
      tell("up #{number}") unless @worker.leaving?
    rescue Unfit => error
      tell("unfit #{number} #{short(error.message)}")
      exit(1)
    end

    def reap(pidfd)
      number, pid = @workers.delete(pidfd)
      pidfd.close
      _, status = Process.wait2(pid)
      how = status.signaled? ? "signal #{status.termsig}" : "exit #{status.exitstatus}"
      tell("reaped #{number} #{pid} #{how}")
    rescue Errno::ECHILD
      # The app reaps children of its own accord, ours among them.
      tell("reaped #{number} #{pid} unknown")
    end

    def tell(message, *fds)
      rights = fds.map { |io| Socket::AncillaryData.unix_rights(io) }
      @socket.sendmsg(message, 0, nil, *rights)
    rescue Errno::EPIPE, Errno::ECONNRESET
      exit!(1)
    end

    # A message and its fds. Without a supervisor there is nothing left to do.
    def receive
      message, _, _, *controls = @socket.recvmsg(PACKET, 0, 4096, scm_rights: true)
      exit!(1) if message.nil? || message.empty?
      [message, controls.flat_map(&:unix_rights)]
    rescue Errno::ECONNRESET
      exit!(1)
    end
  end
end
