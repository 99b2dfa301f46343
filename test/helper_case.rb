# frozen_string_literal: true

require "helper_client"
require "helper_server"

module Helper
  # Tests that ask a server. Those of a class that says `serve` share one server; others `start`
  # their own.
  class Case < Minitest::Test
    include Helper

    extend StopsAfterwards

    class << self
      # The app (a file of test/apps) and the command line of the class's server.
      def serve(app, *arguments)
        @served = [app, arguments]
      end

      def shared
        app, arguments = @served
        @shared ||= app && Server.new(:oribi, *arguments, app: Case.source(app)).ready
      end

      # Ends the shared server; it comes again when it is asked for.
      def stop
        @shared&.clean_up
        @shared = nil
      end

      def source(app) = File.read(File.join(ROOT, "test/apps", app))
    end

    def server = @server || self.class.shared

    def teardown
      @clients&.each(&:close)
      # A test that failed must not leave a shared server's workers standing at its gates.
      @gates&.each(&:release)
      @server&.clean_up
    end

    # A server for this test alone.
    def start(app, *arguments, **options)
      # A server takes its neighbours for leftovers.
      self.class.stop
      @server = Server.new(:oribi, *arguments, app: Case.source(app), **options).ready
    end

    # The server's first TCP port.
    def port = Integer(server.log[%r{listening on http://\S+:(\d+)$}, 1], 10)

    # A new connection to it.
    def connect = keep(Client.tcp(port))

    def keep(client)
      (@clients ||= []) << client
      client
    end

    # A connection that has sent a GET and got nothing yet.
    def ask_for(path, *fields) = connect.write(Client.request("GET #{path}", *fields))

    # What the app was given, on a connection of its own.
    def get(path = "/", *fields) = connect.get(path, *fields)

    def gate(name)
      gate = Gate.new(server, name)
      (@gates ||= []) << gate
      gate
    end

    # Lines that the app has written into a file of the server's directory.
    def lines(name)
      File.readlines(File.join(server.directory, name), chomp: true)
    rescue Errno::ENOENT
      []
    end

    def wait_for_lines(name, count)
      wait_until("#{count} lines in #{name}; log: #{server.log}") do
        found = lines(name)
        found if found.size >= count
      end
    end

    def wait_for_log(pattern)
      wait_until("#{pattern.inspect} in the log: #{server.log}") { server.log.match(pattern) }
    end

    # An object that an app of ours has sent.
    def unpack(answer) = Marshal.load(answer.body) # rubocop:disable Security/MarshalLoad

    def curl(*arguments)
      output = IO.popen(["curl", "--silent", "--show-error", "--max-time", PATIENCE.to_s,
                         *arguments, { err: %i[child out] }], "rb", &:read)
      [output, $?.exitstatus] # rubocop:disable Style/SpecialGlobalVars
    end

    def url(path = "/") = "http://127.0.0.1:#{port}#{path}"
  end

  # A door in the app that the test opens: the app reads a fifo, which lasts until the test has
  # opened and closed it.
  class Gate
    def initialize(server, name)
      @path = File.join(server.directory, name)
      File.mkfifo(@path) unless File.exist?(@path)
    end

    # Lets everyone in who waits, once somebody does.
    def open
      arrived
      @writer.close
      @writer = nil
    end

    # Lets in everyone who comes until the block is satisfied.
    def open_until
      Helper.wait_until("nobody waits at #{File.basename(@path)} any more") do
        arrived_now&.close
        yield
      end
    end

    # Lets in whoever waits at this moment.
    def release
      arrived_now&.close
      @writer&.close
      @writer = nil
    end

    # Waits until a request has come to the gate.
    def arrived
      @writer ||= Helper.wait_until("a request at #{File.basename(@path)}") { arrived_now }
      self
    end

    private

    # The fifo opened to write, which succeeds only while somebody has it open to read.
    def arrived_now
      File.open(@path, File::WRONLY | File::NONBLOCK)
    rescue Errno::ENXIO
      nil
    end
  end
end
