# frozen_string_literal: true

require "etc"
require "fileutils"
require "socket"

module Stack
  # What a person did or lacks; its message says the remedy.
  class Trouble < StandardError; end

  # Where a stack lives: its ports, the folder for its logs, sockets and pid files, and what it
  # serves.
  class Place
    # The most bytes of a unix socket's path (unix(7)), without the zero that ends it.
    LONGEST_SOCKET = 107

    MAGTAG = File.expand_path("../magtag/config.ru", __dir__)

    attr_reader :port, :log, :app

    def initialize(env = ENV)
      @port = number("STACK_PORT", env.fetch("STACK_PORT", "3333"))
      @given = env.fetch("STACK_SERVER_PORTS", "3000").split(",").map do |word|
        number("STACK_SERVER_PORTS", word)
      end
      @app = File.expand_path(env.fetch("STACK_APP", MAGTAG))
      named = env.fetch("STACK_LOG", "")
      @log = named.empty? ? File.join(__dir__, "log") : File.expand_path(named)
    end

    # The ports of so many servers: those given, or one after the other from the only one given.
    def server_ports(count)
      return Array.new(count) { |nr| @given.first + nr } if @given.one?
      return @given.first(count) if count <= @given.size

      raise Trouble, "STACK_SERVER_PORTS names #{@given.size} ports and N is #{count}: name as " \
                     "many, or only the first of a row"
    end

    def file(*names) = File.join(@log, *names)

    # The unix socket of a server.
    def socket(nr)
      path = file("oribi-#{nr}.sock")
      return path if path.bytesize <= LONGEST_SOCKET

      raise Trouble, "#{path} is too long for a unix socket (#{LONGEST_SOCKET} bytes): name a " \
                     "shorter folder with STACK_LOG"
    end

    # Whom the servers run as when root starts them, as on a real machine (Apache insists on it).
    # Nil: whoever starts them.
    def user
      return unless Process.uid.zero?

      @user ||= %w[www-data http nobody].filter_map { |name| known(name) }.first
    end

    # The words that run a command as that user.
    def as_user(*command)
      return command unless user

      ["setpriv", "--reuid", user.uid.to_s, "--regid", user.gid.to_s, "--init-groups", *command]
    end

    # Makes the folder, for the servers to write into.
    def prepare
      [@log, file("run"), file("htdocs")].each do |folder|
        FileUtils.mkdir_p(folder)
        hand_over(folder) unless theirs?(folder)
      end
      # Apache would append to it.
      FileUtils.rm_f(file("apache.err"))
      # Where the CGI program meets its servers: it wants that to be nobody else's.
      File.chmod(0o700, file("run"))
    end

    def hand_over(path) = user && File.chown(user.uid, user.gid, path)

    # Complains about a port that somebody else has.
    def require_free(port)
      TCPServer.open("127.0.0.1", port).close
    rescue Errno::EADDRINUSE
      raise Trouble, "port #{port} of 127.0.0.1 is taken: `make stack-stop` ends an earlier " \
                     "stack, STACK_PORT and STACK_SERVER_PORTS name other ports"
    end

    private

    # Whether a folder is the servers' already. One that holds something of somebody else's stays
    # his.
    def theirs?(folder)
      return true if user.nil? || File.stat(folder).uid == user.uid
      return false if Dir.empty?(folder)

      raise Trouble, "#{folder} is not #{user.name}'s and not empty: name another with STACK_LOG"
    end

    def known(name)
      Etc.getpwnam(name)
    rescue ArgumentError
      nil
    end

    def number(name, word)
      value = Integer(word, 10, exception: false)
      return value if value&.between?(1, 65_535)

      raise Trouble, "#{name}: #{word.inspect} is no port"
    end
  end
end
