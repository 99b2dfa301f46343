# frozen_string_literal: true

require "fileutils"
require "helper_server"

module Helper
  # Clients that start the server when there is none, as the CGI shim does: they connect under a
  # shared lock, and start under an exclusive one.
  class OnDemand
    # Servers started so far.
    attr_reader :started, :directory

    # `arguments` are words of the server's command line.
    def initialize(*arguments, app: Server::APP)
      @arguments = arguments
      @directory = Dir.mktmpdir("oribi-demand")
      File.write(path("config.ru"), app)
      @started = 0
      @pids = []
    end

    def path(name) = File.join(@directory, name)

    # One request, one connection.
    def ask(line = "/")
      client = Client.new(connect)
      client.get(line, "Connection: close")
    ensure
      client&.close
    end

    # What the last server has said.
    def log = File.read(path("log"))

    # A lock of this thread's own.
    def locked(how)
      File.open(path("lock"), File::RDWR | File::CREAT, 0o600) do |lock|
        lock.flock(how)
        yield
      end
    end

    # The exit statuses of servers that have ended, other than 0.
    def failed
      statuses = @pids.map { |pid| Process.wait2(pid).last }
      @pids.clear
      statuses.reject(&:success?)
    end

    def clean_up
      @pids.each { |pid| Process.kill("KILL", pid) }
      failed
    ensure
      FileUtils.remove_entry(@directory)
    end

    private

    def connect
      locked(File::LOCK_SH) { try } || locked(File::LOCK_EX) { try || start }
    end

    def try
      UNIXSocket.new(path("socket"))
    rescue Errno::ENOENT, Errno::ECONNREFUSED
      nil
    end

    def start
      @started += 1
      command = [RbConfig.ruby, File.join(ROOT, "exe/oribi"), "-b", "unix://#{path('socket')}",
                 "-w", "1", *@arguments]
      pid = Process.spawn({ "ORIBI_RUNTIME_DIR" => path("control") }, *command,
                          chdir: @directory, in: File::NULL, out: path("log"),
                          err: %i[child out])
      @pids << pid
      Helper.wait_until("a server listens") do
        raise Minitest::Assertion, "it ended: #{log}" if ended?(pid)

        try
      end
    end

    # Left to be reaped.
    def ended?(pid) = Helper.process(pid)&.state == "Z"
  end
end
