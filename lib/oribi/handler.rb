# frozen_string_literal: true

require "json"
require "socket"
require "stringio"
require "oribi/binary"
require "oribi/mold"
require "oribi/place"
require "oribi/rack_options"

module Oribi
  # Serves an app that is loaded in a Ruby already: `rackup -s Oribi`, `Rack::Handler::Oribi.run`.
  #
  # The calling process forks the mold, which keeps the app, starts the supervisor, and then only
  # waits: signals go on to the supervisor, orphans are reaped, and the supervisor's exit status
  # becomes its own.
  class Handler
    # How this process was started: generation 2 is the same once more. Read when the file is
    # loaded, before anybody has renamed the process or changed the directory.
    ARGV_OF_PROCESS = File.read("/proc/self/cmdline").split("\0").freeze
    DIRECTORY = Place.directory.freeze
    FORWARDED = %w[TERM INT QUIT HUP USR1 USR2 TTIN TTOU].freeze
    # What the processes of a dead supervisor need to notice and to end.
    LAST_WAIT = 1.0

    # For the class that keeps the pid file. Generation 2 is a part of a server that has one, not
    # another server: neither does it mind that file nor write it.
    module NoPidFile
      def check_pid! = nil

      def write_pid = nil
    end

    private_constant :ARGV_OF_PROCESS, :DIRECTORY, :FORWARDED, :LAST_WAIT

    class << self
      # Serves `app` until the server ends. Returns when it ended well, exits with its status when
      # it did not.
      def run(app, given = {}, **options)
        options = given.to_h.merge(options)
        if ENV["ORIBI_MOLD"]
          return Mold.join(Mold.inherited_socket, app, RackOptions.new(options).hooks)
        end

        status = new(app, options).run
        exit(status) unless status.zero?
      rescue Error => error
        abort "oribi: #{error.message}"
      end

      # Makes this handler known by a name among those of Rack 2 (`Rack::Handler`) or Rack 3.
      def known_as(name, handlers)
        handlers.const_set(name, self) unless handlers.const_defined?(name, false)
        return unless handlers.respond_to?(:register)

        # Rack 2 wants to be told where it is.
        rack2 = handlers.name == "Rack::Handler"
        handlers.register(name.downcase, rack2 ? "Rack::Handler::#{name}" : self)
      end

      # Called when the handler is loaded, which is before anybody looks for pid files.
      def leave_pid_file_alone(servers)
        servers.prepend(NoPidFile) if ENV["ORIBI_MOLD"]
      end

      # For `rackup -h`.
      def valid_options
        RackOptions.settable.to_h do |option|
          ["#{option['name']}=#{option['metavar']}", option["doc"]]
        end
      end

      # A command line for generation 2, which neither becomes a daemon nor writes the pid file.
      def again(argv)
        words = argv.dup
        kept = []
        while (word = words.shift)
          case word
          when "-P", "--pid" then words.shift
          when "-D", "--daemonize", /\A(-P|--pid=)/ then next
          else kept << word
          end
        end
        kept
      end
    end

    def initialize(app, options)
      @app = app
      @options = options
      @words = RackOptions.new(options)
      require "oribi/native"
    rescue LoadError => error
      raise Error, "the extension does not load: #{error.message}: build it again"
    end

    # Returns the supervisor's exit status, as a shell would see it.
    def run
      return explain if @words.explain

      announce
      Native.subreaper!
      @inbox, @outbox = IO.pipe
      before = catch_signals
      @inherited = Place.given_fds
      ours, theirs = UNIXSocket.pair(:SEQPACKET)
      fork_mold(ours, theirs)
      ours.close
      @supervisor = start_supervisor(theirs)
      theirs.close
      Place.close(@inherited)
      wait_for_supervisor
    ensure
      before&.each { |signal, handler| trap(signal, handler || "DEFAULT") }
    end

    private

    # For people who look at how another server begins.
    def announce; end

    # Prints what would hold; the exit status.
    def explain
      words = [Binary.path, "config", "--#{@words.explain}", *@words.line(directory)]
      system(environment, *words) ? 0 : 1
    end

    def catch_signals
      before = FORWARDED.to_h do |signal|
        [signal, trap(signal) { @outbox.write_nonblock("#{signal}\n", exception: false) }]
      end
      before["CHLD"] = trap("CHLD") { @outbox.write_nonblock("CHLD\n", exception: false) }
      before
    end

    def fork_mold(ours, theirs)
      $stdout.flush
      $stderr.flush
      Process.fork do
        [theirs, @inbox, @outbox].each(&:close)
        Place.leave(@inherited)
        trap("CHLD", "DEFAULT")
        Mold.join(ours, @app, @words.hooks)
      end
    end

    # In a process group of its own, so that what a terminal sends to its foreground group arrives
    # once: from here.
    def start_supervisor(socket)
      variables = environment.merge("ORIBI_JOIN" => socket.fileno.to_s,
                                    "ORIBI_CALLER" => Process.pid.to_s)
      kept = [socket.fileno, *@inherited].to_h { |number| [number, number] }
      Process.spawn(variables, [Binary.path, Binary::TITLE], *@words.line(directory),
                    **kept, pgroup: true)
    end

    def environment
      Binary.environment.merge("ORIBI_COMMAND" => JSON.generate(about))
    end

    # What the supervisor is told about this process. A configuration file that is named as an
    # option of the handler wins over the others, as Rhebok documents.
    def about
      { "argv" => self.class.again(ARGV_OF_PROCESS), "directory" => directory,
        "config_wins" => true }
    end

    # A daemon has left its directory before the handler was loaded.
    def directory
      left = @options[:daemonize] && ENV.fetch("PWD", nil)
      left && File.directory?(left) ? left : DIRECTORY
    end

    def wait_for_supervisor
      status = nil
      while status.nil?
        signal = @inbox.gets.chomp
        if signal == "CHLD"
          status = reap
        else
          forward(signal)
        end
      end
      reap_the_rest
      status.exited? ? status.exitstatus : 128 + status.termsig
    end

    def forward(signal)
      Process.kill(signal, @supervisor)
    rescue Errno::ESRCH
      # It has just ended; CHLD follows.
    end

    # Collects every child that has ended, orphans included; the supervisor's status if it was
    # among them.
    def reap
      found = nil
      while (pid, status = Process.wait2(-1, Process::WNOHANG))
        found = status if pid == @supervisor
      end
      found
    rescue Errno::ECHILD
      found
    end

    def reap_the_rest
      deadline = Mold.now + LAST_WAIT
      loop do
        reap
        left = deadline - Mold.now
        break if left <= 0 || no_children?

        @inbox.gets if @inbox.wait_readable(left)
      end
    end

    def no_children?
      File.read("/proc/self/task/#{Process.pid}/children").empty?
    rescue SystemCallError
      false
    end
  end
end
