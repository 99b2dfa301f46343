# frozen_string_literal: true

require "helper"

module Helper
  # A server of HTTP behind a proxy mount, whose answers the test writes. It counts what it sees.
  class Backend
    Request = Struct.new(:line, :fields, :body, :socket) do
      def [](name) = fields[name.downcase]

      def reply(body = "", *fields, status: "200 OK")
        head = ["HTTP/1.1 #{status}", *fields, "Content-Length: #{body.bytesize}"]
        socket.write("#{head.join("\r\n")}\r\n\r\n#{body}")
      end
    end

    attr_reader :requests, :most, :connections

    # The block answers a request, and gives true if its connection goes on.
    def initialize(path, &answer)
      @path = path
      @answer = answer
      @lock = Mutex.new
      @requests = []
      @now = @most = @connections = 0
      start
    end

    def start
      @server = UNIXServer.new(@path)
      @server.listen(64)
      @sockets = []
      @accepting = Thread.new { accept }
      @accepting.report_on_exception = false
      self
    end

    # As if its process were killed.
    def stop
      @accepting.kill.join
      [@server, *@sockets].each(&:close)
      File.unlink(@path)
    end

    private

    def accept
      loop do
        socket = @server.accept
        @connections += 1
        @sockets << socket
        Thread.new { serve(socket) }.report_on_exception = false
      end
    end

    def serve(socket)
      while (request = read(socket))
        break unless count { @answer.call(request) } == true
      end
    rescue IOError, SystemCallError
      nil
    ensure
      socket.close
    end

    def count
      @lock.synchronize { @most = [@most, @now += 1].max }
      yield
    ensure
      @lock.synchronize { @now -= 1 }
    end

    def read(socket)
      line = socket.gets("\r\n") || return
      fields = Hash.new { |hash, name| hash[name] = nil }
      until (field = socket.gets("\r\n").chomp("\r\n")).empty?
        name, value = field.split(/:\s*/, 2)
        fields[name.downcase] = [fields[name.downcase], value].compact.join(", ")
      end
      body = socket.read(fields["content-length"].to_i)
      request = Request.new(line.chomp, fields, body, socket)
      @lock.synchronize { @requests << request }
      request
    end
  end
end
