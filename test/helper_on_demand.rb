# frozen_string_literal: true

require "fileutils"
require "helper_fastcgi"
require "helper_server"

module Helper
  # Clients that start the server when there is none, as the CGI shim does: they connect under a
  # shared lock, and start under an exclusive one. This one's server listens where it is told.
  class OnDemand
    # Servers started so far.
    attr_reader :started, :directory

    # `arguments` are words of the server's command line.
    def initialize(*arguments, app: Server::APP, files: {})
      @arguments = arguments
      @directory = Dir.mktmpdir("oribi-demand")
      { "config.ru" => app, **files }.compact.each { |name, text| write(name, text) }
      FileUtils.touch(path("log"))
      File.mkfifo(path("fifo"))
      @started = 0
      @pids = []
    end

    # A file of the app.
    def path(name) = File.join(@directory, name)

    def write(name, text) = File.write(path(name), text)

    # Where socket and locks are.
    def run = @directory

    # One request, one connection.
    def get(target = "/")
      client = Client.new(connect)
      client.get(target, "Connection: close")
    ensure
      client&.close
    end

    # What the last server has said.
    def log = File.read(path("log"))

    # A lock of this thread's own.
    def locked(how)
      File.open(File.join(run, "lock"), File::RDWR | File::CREAT, 0o600) do |lock|
        lock.flock(how)
        yield
      end
    end

    # A connection to the server there is, or to a new one.
    def connect
      locked(File::LOCK_SH) { try } || locked(File::LOCK_EX) { try || start }
    end

    # Pids of the servers started, in order.
    def pids = @pids.dup

    # Waits until all servers have ended; their exit statuses, where that was none of success.
    def failed
      statuses = @pids.map do |pid|
        Helper.wait_until("server #{pid} ends: #{log}") { ended?(pid) }
        Process.wait2(pid).last
      end
      @pids.clear
      statuses.reject(&:success?)
    end

    def clean_up
      @pids.each { |pid| Process.kill("KILL", pid) }
      failed
      reap_orphans
    ensure
      FileUtils.remove_entry(@directory)
    end

    # Left to be reaped.
    def ended?(pid) = Helper.process(pid)&.state == "Z"

    # Starts a server, and waits until it listens.
    def start
      @started += 1
      @pids << pid = spawn
      Helper.wait_until("a server listens") do
        raise Minitest::Assertion, "it ended: #{log}" if ended?(pid)

        try
      end
    end

    def environment = { "ORIBI_RUNTIME_DIR" => path("control") }

    # `oribi` with these words.
    def oribi(*words) = [environment, RbConfig.ruby, File.join(ROOT, "exe/oribi"), *words]

    # A connection to the server there is.
    def try
      UNIXSocket.new(File.join(run, "socket"))
    rescue Errno::ENOENT, Errno::ECONNREFUSED
      nil
    end

    def listens?
      connection = try
      connection&.close
      !connection.nil?
    end

    private

    # Those of a server that was killed come to this process.
    def reap_orphans
      children = Helper.all_processes.select { |entry| entry.parent == Process.pid }
      children.each { |entry| Process.wait(entry.pid, Process::WNOHANG) if entry.state == "Z" }
    end

    def command
      oribi("-b", "unix://#{run}/socket", "-w", "1", "--chdir", @directory, *@arguments)
    end

    def spawn
      Process.spawn(*command, chdir: "/", in: File::NULL, out: [path("log"), "a"],
                              err: %i[child out])
    end
  end

  # The same for `oribi cgi serve`.
  class Cgi < OnDemand
    # As the shim names run directories: FNV-1a, 64 bit.
    def self.name(directory)
      hash = File.realpath(directory).each_byte.reduce(0xcbf29ce484222325) do |sum, byte|
        ((sum ^ byte) * 0x100000001b3) & 0xffffffffffffffff
      end
      format("acgi-%016x", hash)
    end

    # `before` are words that run the command, as the user whose id is `uid`.
    def initialize(before: [], uid: Process.uid, **options)
      super(**options)
      @before = before
      [path("control"), run].each do |one|
        Dir.mkdir(one, 0o700)
        File.chown(uid, uid, one)
      end
    end

    def run = File.join(path("control"), Cgi.name(@directory))

    def client = FastCgi.new(connect)

    def get(target = "/", **params)
      client = self.client
      client.get(target, keep: false, **params)
    ensure
      client&.close
    end

    # What `oribi cgi` says, and its exit status.
    def cgi(word)
      output = IO.popen([*oribi("cgi", word, @directory), { err: %i[child out] }], &:read)
      [output.chomp, $?.exitstatus] # rubocop:disable Style/SpecialGlobalVars
    end

    private

    def command
      environment, *words = oribi("cgi", "serve", @directory)
      [environment, *@before, *words]
    end
  end
end
