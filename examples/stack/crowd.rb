# frozen_string_literal: true

require "io/wait"
require "socket"

module Stack
  # Many clients at once, in one thread. Each asks for one page on a connection of its own, as `ab`
  # does, and must get it whole.
  class Crowd
    # How long all of it may take, in seconds.
    PATIENCE = 120.0
    # What came of it: answers that were right, what went wrong (each with its count), and the
    # seconds from the first request on.
    Outcome = Struct.new(:answered, :failures, :seconds) do
      def rate = answered / seconds

      def complete? = failures.empty?
    end

    # One client: a socket, what it still has to say and what it has heard.
    class Visitor
      attr_reader :socket, :failure

      def initialize(port, request)
        @address = Socket.sockaddr_in(port, "127.0.0.1")
        @socket = Socket.new(:INET, :STREAM)
        @rest = request
        @heard = +"".b
        connect
      end

      # Connects, as far as it gets without waiting; true once it is done.
      def connect
        @socket.connect_nonblock(@address, exception: false) == 0 # rubocop:disable Style/NumericPredicate
      rescue Errno::EISCONN
        true
      rescue SystemCallError => error
        @failure = "cannot connect: #{error.message}"
        true
      end

      # Sends what it can; true once nothing is left.
      def send
        written = @socket.write_nonblock(@rest, exception: false)
        @rest = @rest.byteslice(written..) unless written == :wait_writable
        @rest.empty?
      rescue SystemCallError => error
        @failure = "while sending: #{error.message}"
        true
      end

      # Hears what there is; true at the end.
      def hear
        loop do
          case part = @socket.read_nonblock(65_536, exception: false)
          when :wait_readable then return false
          when nil then return true
          else @heard << part
          end
        end
      rescue SystemCallError => error
        @failure = "while reading: #{error.message}"
        true
      end

      # What is wrong with the answer; nil where it is right.
      def fault(expected)
        return @failure if @failure
        return "no answer" if @heard.empty?

        line = @heard[/\A[^\r\n]*/]
        return line unless line.match?(%r{\AHTTP/1\.1 200\b})

        head, body = @heard.split("\r\n\r\n", 2)
        # Apache passes no length on that came from a CGI program, FastCGI or SCGI.
        body = joined(body) if head.match?(/^transfer-encoding: chunked\r?$/i)
        "another page than #{expected.bytesize} bytes" unless body == expected
      end

      private

      # The data of chunks; what is no chunk is left as it is, and so is wrong.
      def joined(chunks)
        data = +"".b
        while (size = chunks[/\A\h+(?=\r\n)/])
          start = size.bytesize + 2
          length = size.to_i(16)
          return data if length.zero? && chunks.byteslice(start..) == "\r\n"

          data << chunks.byteslice(start, length)
          chunks = chunks.byteslice((start + length + 2)..) || ""
        end
        data << chunks
      end
    end

    def initialize(port, path, expected)
      @port = port
      @expected = expected.b
      @request = "GET #{path} HTTP/1.1\r\nHost: 127.0.0.1:#{port}\r\nConnection: close\r\n\r\n".b
    end

    # All at once: nobody asks before all are connected, nobody listens before all have asked.
    def together(count)
      @deadline = Stack.now + PATIENCE
      visitors = Array.new(count) { Visitor.new(@port, @request) }
      all(visitors, :write, &:connect)
      asked = Stack.now
      all(visitors.reject(&:failure), :write, &:send)
      all(visitors.reject(&:failure), :read, &:hear)
      outcome(visitors.map { |visitor| visitor.fault(@expected) }, Stack.now - asked)
    ensure
      visitors&.each { |visitor| visitor.socket.close }
    end

    # One after the other, never more than so many.
    def in_turn(count, at_once)
      began = Stack.now
      @deadline = began + PATIENCE
      threads = Array.new(at_once) do |nr|
        Thread.new { Array.new((count / at_once) + (nr < count % at_once ? 1 : 0)) { ask } }
      end
      outcome(threads.flat_map(&:value), Stack.now - began)
    end

    private

    def ask
      visitor = Visitor.new(@port, @request)
      { connect: :wait_writable, send: :wait_writable, hear: :wait_readable }.each do |step, wait|
        until visitor.failure || visitor.public_send(step)
          return "no answer in time" if Stack.now > @deadline

          visitor.socket.public_send(wait, 1)
        end
      end
      visitor.fault(@expected)
    ensure
      visitor&.socket&.close
    end

    # Takes the step with every visitor, each as often as it needs.
    def all(visitors, direction)
      left = visitors.to_h { |visitor| [visitor.socket, visitor] }
      until left.empty? || Stack.now > @deadline
        sockets = left.keys
        ready = IO.select(*(direction == :read ? [sockets, []] : [[], sockets]), [], 1)
        (ready || []).flatten.each { |socket| left.delete(socket) if yield(left[socket]) }
      end
    end

    # Of the faults of all, nil for who had none.
    def outcome(faults, seconds)
      Outcome.new(faults.count(nil), faults.compact.tally, seconds)
    end
  end
end
