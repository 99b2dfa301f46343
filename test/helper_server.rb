# frozen_string_literal: true

require "fileutils"
require "helper"

module Helper
  # A server that a test has started, and everything it has ever been seen to consist of.
  class Server
    attr_reader :pid, :directory, :status

    APP = <<~'RUBY'
      require "uri"
      raise "no database here" if File.exist?(File.join(__dir__, "broken"))

      # In development rackup adds it by itself, and with Rack 3.1 two spoil each other's bodies.
      use Rack::Lint unless $PROGRAM_NAME.end_with?("rackup")
      run(lambda do |env|
        # A request that lasts until the test says so.
        File.read(File.join(__dir__, "fifo")) if env["PATH_INFO"] == "/hold"
        [200, { "content-type" => "text/plain" }, ["#{Process.pid} #{env['PATH_INFO']}"]]
      end)
    RUBY

    # `how` is :oribi, :rackup, :bundle (exec rackup), :script (in Ruby), :program (the executable
    # and nothing else) or :rails; arguments are
    # words of the command line; what is in the directory `tree` is copied. `before` are words that
    # run the command, `fds` are its fds from 3 on; others may look into the directory if it is
    # `open`.
    def initialize(how, *arguments, app: APP, files: {}, bind: "tcp://127.0.0.1:0", env: {},
                   rackup: [], tree: nil, executable: File.join(ROOT, "exe/oribi"), before: [],
                   out: nil, open: false, fds: [], input: File::NULL)
      @how = how
      @before = before
      @rackup = rackup
      @executable = executable
      @directory = Dir.mktmpdir("oribi-test")
      FileUtils.chmod(0o755, @directory) if open
      FileUtils.cp_r("#{tree}/.", @directory) if tree
      File.write(File.join(@directory, "config.ru"), app) if app
      files.each { |name, text| File.write(File.join(@directory, name), text) }
      File.mkfifo(File.join(@directory, "fifo"))
      @log = File.join(@directory, "log")
      FileUtils.touch(@log)
      @seen = {}
      env = { "RUBYLIB" => LIB, "ORIBI_MOLD" => nil,
              "ORIBI_RUNTIME_DIR" => File.join(@directory, "control") }.merge(env)
      streams = { in: input, out: out || @log, err: %i[child out] }
      fds.each_with_index { |io, index| streams[index + 3] = io }
      words = [*@before, *command(bind, arguments)]
      @pid = Process.spawn(env, *words, chdir: @directory, **streams)
    end

    def log = File.read(@log)

    # Waits until it serves; its first TCP port, if it has any.
    def ready
      Helper.wait_until("the server serves; its log: #{log}") do
        raise Minitest::Assertion, "it ended instead: #{log}" if ended?

        serves = /^oribi: (?:\S+: at \S+, )?(?:\d+ workers? of|proxy of)/
        log[/^oribi: listening on .*\n(?:.*\n)*/]&.match?(serves)
      end
      @port = log[%r{listening on http://\S+:(\d+)$}, 1]&.to_i
      self
    end

    def ended?
      return true if @status

      _, @status = Process.wait2(@pid, Process::WNOHANG)
      !@status.nil?
    end

    # How it ended: an exit code, or the number of a signal as a String.
    def wait(within: PATIENCE)
      Helper.wait_until("the server ends; its log: #{log}", within: within) { ended? }
      @status.signaled? ? "signal #{@status.termsig}" : @status.exitstatus
    end

    def signal(name) = Process.kill(name, @pid)

    def get(path = "/") = response(path).body

    # Once: what Net::HTTP would silently ask again is what these tests look at.
    def response(path)
      options = { open_timeout: PATIENCE, read_timeout: PATIENCE, max_retries: 0 }
      Net::HTTP.start("127.0.0.1", @port, **options) { |http| http.get(path) }
    end

    # Starts a request that lasts until `release`; the pid of the worker that has it.
    def hold
      @held = Thread.new { response("/hold") }
      @held.report_on_exception = false
      hold_again
    end

    # Waits until a worker has the request in its hands, for the first or the second time.
    def hold_again
      before = @fifo
      # Opening a fifo to write succeeds once the app has it open to read.
      @fifo = Helper.wait_until("the app holds a request") do
        File.open(File.join(@directory, "fifo"), File::WRONLY | File::NONBLOCK)
      rescue Errno::ENXIO
        nil
      end
      # Only now: a reader whose last writer goes is at its end.
      before&.close
    end

    def release
      @fifo.close
      answer_held.body
    end

    # The answer to the held request.
    def answer_held = @held.value

    # All of it, in order, noted for `left_over`.
    def tree
      Helper.family(@pid).each { |entry| @seen[[entry.pid, entry.start]] = entry }
    end

    def find(role, **wanted)
      tree.select do |e|
        e.role == role && wanted.all? do |name, value|
          e[name] == value || e.send(name) == value
        end
      end
    end

    def one(role, **wanted)
      Helper.wait_until("one #{role} #{wanted}: #{print_tree}") do
        found = find(role, **wanted)
        found.first if found.size == 1
      end
    end

    # Workers of a generation, once there are that many.
    def workers(count, generation: 1)
      Helper.wait_until("#{count} workers of generation #{generation}") do
        found = find("worker").select { |worker| worker.generation == generation }
        found if found.size == count && found.none? { |worker| worker.state == "Z" }
      end
    end

    # The tree as people draw it.
    def print_tree(step = nil)
      all = tree
      depth = Hash.new(0)
      lines = all.map do |entry|
        depth[entry.pid] = depth[entry.parent] + 1
        values = { pid: entry.pid, state: entry.state, title: entry.title[0, 70],
                   indent: "  " * (depth[entry.pid] - 1) }
        format("    %<pid>7d %<state>s %<indent>s%<title>s", values)
      end
      puts "  #{@how}: #{step}", lines if step
      lines.join("\n")
    end

    # What has been seen and is still there, zombies included.
    def left_over
      tree
      ended?
      adopt_orphans
      @seen.values.select { |entry| entry.same?(Helper.process(entry.pid)) }
    end

    # Ends what a failed test has left.
    def clean_up
      left_over.each { |entry| kill(entry.pid) }
      Helper.wait_until("everything killed is gone") { left_over.empty? }
    ensure
      FileUtils.remove_entry(@directory)
    end

    private

    # Orphans of the server are this process's children (`subreaper!`), and its to reap.
    def adopt_orphans
      mine = Helper.all_processes.select do |entry|
        entry.parent == Process.pid && entry.pid != @pid
      end
      mine.each do |entry|
        known = @seen.key?([entry.pid, entry.start])
        @seen[[entry.pid, entry.start]] ||= entry if entry.role
        Process.wait(entry.pid, Process::WNOHANG) if known || entry.role
      end
    end

    def kill(pid)
      Process.kill("KILL", pid)
    rescue Errno::ESRCH
      nil
    end

    # Where a test does not say otherwise, an old generation leaves at once.
    def command(bind, arguments)
      ours = !%i[rails script bundle program].include?(@how)
      if ours && arguments.none? { |word| word.start_with?("--rollback-window") }
        arguments = [*arguments, "--rollback-window=0"]
      end
      case @how
      when :oribi, :gem
        # Not through a shell or a wrapper: this is the pid a service manager sees.
        [RbConfig.ruby, @executable, *(bind && ["-b", bind]), *arguments]
      when :rails
        [RbConfig.ruby, "bin/rails", "server", "-u", "oribi", "-b", "127.0.0.1", "-p", "0",
         *arguments]
      when :script then [RbConfig.ruby, *arguments]
      when :program then [@executable, *arguments]
      when :bundle
        [RbConfig.ruby, "-S", "bundle", "exec", "rackup", *arguments, "config.ru"]
      when :rackup
        options = arguments.join(" ").scan(/--([\w-]+)[ =](\S+)/)
        words = options.flat_map { |name, value| ["-O", "#{name.delete('-')}=#{value}"] }
        rackup = Gem.bin_path(rackup_gem, "rackup")
        words.unshift("-O", "bind=#{bind}") if bind
        [RbConfig.ruby, rackup, "-s", "Oribi", *words, *@rackup, "config.ru"]
      end
    end

    def rackup_gem = Gem::Specification.any? { |gem| gem.name == "rackup" } ? "rackup" : "rack"
  end
end
