# frozen_string_literal: true

require "fileutils"
require "open3"
require "helper_fastcgi"

module Helper
  # For a class of tests that share the folder that its `home` makes, and what serves there.
  module SharesHome
    include StopsAfterwards

    def stop
      @home&.clean_up
      @home = nil
    end
  end

  # A folder as a web server has it, with a script or a rackup file, and the server in plain Ruby
  # that belongs to it.
  class Acgi
    SCRIPT = File.join(ROOT, "test/apps/acgi/server.cgi")

    attr_reader :directory, :pid

    # `files` are names and texts; without any it is the script that does what its path says.
    def initialize(files = { "server.cgi" => File.read(SCRIPT) })
      @base = File.realpath(Dir.mktmpdir("oribi-acgi"))
      @directory = File.join(@base, "www")
      Dir.mkdir(@directory)
      @seen = {}
      files.each { |name, text| write(name, text) }
    end

    # Replaces a file at once, as a careful upload does.
    def write(name, text)
      path = File.join(@directory, name)
      FileUtils.mkdir_p(File.dirname(path))
      File.write("#{path}.new", text)
      File.chmod(0o755, "#{path}.new")
      File.rename("#{path}.new", path)
    end

    def path(name) = File.join(@directory, name)

    def environment(others = {})
      { "RUBYLIB" => LIB, "ORIBI_RUNTIME_DIR" => File.join(@base, "run"), "ACGI_NATIVE" => "0",
        "ORIBI" => nil, "ORIBI_MOLD" => nil, "GATEWAY_INTERFACE" => nil }.merge(others)
    end

    # Runs the script with these arguments, as people or a web server do: what it wrote and its exit
    # status.
    def run(*words, env: {}, input: "")
      words = [RbConfig.ruby, path("server.cgi"), *words]
      options = { stdin_data: input, binmode: true, chdir: @directory }
      out, errors, status = Open3.capture3(environment(env), *words, **options)
      [out, errors, status.exitstatus]
    end

    PLAIN = [RbConfig.ruby, File.join(LIB, "acgi.rb"), "--server"].freeze
    NATIVE = [RbConfig.ruby, File.join(ROOT, "exe/oribi"), "cgi", "serve"].freeze

    # The server in the foreground, without waiting.
    def launch(env: {}, command: PLAIN)
      @status = nil
      @log ||= File.join(@base, "log")
      # A pipe, where Ruby cannot go back to what it has read ahead.
      @stdin ||= IO.pipe
      @pid = Process.spawn(environment(env), *command, @directory,
                           in: @stdin.first, out: [@log, "a"], err: %i[child out])
    end

    # The same, once it serves.
    def serve(env: {}, command: PLAIN)
      launch(env: env, command: command)
      Helper.wait_until("the server serves; its log: #{log}") do
        raise Minitest::Assertion, "it ended instead: #{log}" if ended?

        answers?
      end
      self
    end

    def answers?
      connect.close
      true
    rescue SystemCallError
      false
    end

    def log = File.exist?(@log.to_s) ? File.read(@log) : ""

    def run_directory = Dir[File.join(@base, "run/acgi-*")].first.to_s

    def socket = File.join(run_directory, "socket")

    def connect = FastCgi.unix(socket)

    # One request over a connection of its own.
    def ask(target, **options)
      client = connect
      client.ask(target, **options)
    ensure
      client&.close
    end

    def get(target, **options) = ask(target, **options).answer

    # Exit code of the server, or its signal.
    def wait
      Helper.wait_until("the server ends; its log: #{log}") { ended? }
      @status.signaled? ? "signal #{@status.termsig}" : @status.exitstatus
    end

    def ended?
      return true if @status

      _, @status = Process.wait2(@pid, Process::WNOHANG)
      !@status.nil?
    end

    # Its processes of a role: server, mold, worker. All: the native server's too.
    def processes(role = nil)
      all = Helper.all_processes
      found = all.select do |entry|
        entry.title.end_with?(" #{@directory}") && entry.title.match?(/\Aacgi: #{role}/)
      end
      found |= Helper.family(@pid, all) if @pid && role.nil?
      found.each { |entry| @seen[entry.pid] = entry }
    end

    def fifo(name) = path(name).tap { |path| File.mkfifo(path) }

    # A fifo opened to write once somebody reads there; closing it lets him go on.
    def reached(fifo)
      Helper.wait_until("somebody at #{File.basename(fifo)}") do
        File.open(fifo, File::WRONLY | File::NONBLOCK)
      rescue Errno::ENXIO
        nil
      end
    end

    # Ends what there is. Fails when a process will not go.
    def clean_up
      processes.each { |entry| Process.kill("KILL", entry.pid) if Helper.process(entry.pid) }
      Helper.wait_until("all of #{@directory} is gone") { left_over.empty? }
    ensure
      @stdin&.each(&:close)
      FileUtils.remove_entry(@base)
    end

    # What has been seen and is still there; orphans are this process's to reap.
    def left_over
      processes
      @seen.values.select do |entry|
        @status = reap(entry.pid) || @status if entry.pid == @pid && @status.nil?
        reap(entry.pid) unless entry.pid == @pid
        entry.same?(Helper.process(entry.pid))
      end
    end

    private

    def reap(pid)
      Process.wait2(pid, Process::WNOHANG)&.last
    rescue Errno::ECHILD
      nil
    end
  end
end
