# frozen_string_literal: true

require "helper"
require "io/wait"

module Helper
  # One answer as it came over the wire.
  Answer = Struct.new(:version, :status, :fields, :body) do
    # The value of a header; an Array where it came several times.
    def [](name)
      values = fields.filter_map { |field, value| value if field.casecmp?(name) }
      values.size > 1 ? values : values.first
    end
  end

  # A client that hides nothing: what is written goes out as it is, and what comes back is read no
  # further than the answer asked for.
  class Client
    # Bytes a unix socket's peer has not read yet, TIOCOUTQ on Linux.
    UNREAD = 0x5411

    def self.tcp(port, host = "127.0.0.1")
      socket = TCPSocket.new(host, port)
      socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      new(socket)
    end

    def self.unix(path) = new(UNIXSocket.new(path))

    attr_reader :socket

    def initialize(socket)
      @socket = socket
      @buffer = +"".b
    end

    def write(*parts)
      parts.each { |part| @socket.write(part) }
      self
    end

    # A request, and its answer.
    def ask(line, *fields, body: nil)
      write(Client.request(line, *fields, body: body))
      answer(bodiless: line.start_with?("HEAD "))
    end

    def get(path = "/", *fields) = ask("GET #{path}", *fields)

    # The bytes of a request. `line` is method and path, and the version unless it is 1.1.
    def self.request(line, *fields, body: nil)
      line = "#{line} HTTP/1.1" unless line.include?(" HTTP/")
      fields = ["Host: test", *fields] unless fields.grep(/\Ahost:/i).any?
      fields << "Content-Length: #{body.bytesize}" if body
      "#{line}\r\n#{fields.map { |field| "#{field}\r\n" }.join}\r\n".b << body.to_s.b
    end

    # The next answer. One to HEAD has no body, whatever its headers say.
    def answer(bodiless: false)
      answer = head
      return answer if bodiless || answer.status == 204 || answer.status == 304

      answer.body = if answer["transfer-encoding"] == "chunked"
                      all_chunks
                    elsif answer["content-length"]
                      take(Integer(answer["content-length"], 10))
                    else
                      rest
                    end
      answer
    end

    # Status line and headers alone.
    def head
      first, *lines = line_block
      version, status, = first.split(" ", 3)
      fields = lines.map { |line| line.split(/:\s*/, 2) }
      Answer.new(version, Integer(status, 10), fields, "")
    end

    # The next chunk's bytes; nil for the last, empty one.
    def chunk
      size = Integer(take_line, 16)
      data = take(size)
      raise Minitest::Assertion, "a chunk of #{size} has no end" unless take_line == ""

      data unless size.zero?
    end

    def all_chunks
      whole = +"".b
      while (part = chunk)
        whole << part
      end
      whole
    end

    def take(count)
      fill until @buffer.bytesize >= count
      @buffer.slice!(0, count)
    end

    # Everything up to the end of the connection.
    def rest
      loop { fill }
    rescue EOFError
      @buffer.slice!(0..)
    end

    # True when the server closes without another byte.
    def ended? = rest.empty?

    # Nothing has come that was not asked for, and the connection is open.
    def quiet? = @buffer.empty? && !@socket.wait_readable(0)

    # Waits until the server has read all that was written, so that what is written next comes to
    # it by itself. Unix sockets only: TCP does not tell.
    def wait_until_taken
      deadline = Helper.now + PATIENCE
      until outstanding.zero?
        raise Minitest::Assertion, "the server does not read" if Helper.now > deadline

        IO.select(nil, nil, nil, 0.0002)
      end
    end

    # Ends the connection at once: over TCP with a reset, as a client that crashes does.
    def reset
      unless @socket.is_a?(UNIXSocket)
        @socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
      end
      close
    end

    def close = @socket.close

    private

    def outstanding
      count = [0].pack("i")
      @socket.ioctl(UNREAD, count)
      count.unpack1("i")
    end

    def line_block
      lines = []
      until (line = take_line) == ""
        lines << line
      end
      lines
    end

    def take_line
      fill until (stop = @buffer.index("\r\n"))
      @buffer.slice!(0, stop + 2).delete_suffix("\r\n")
    end

    def fill
      unless @socket.wait_readable(PATIENCE)
        raise Minitest::Assertion, "nothing more came after #{@buffer[0, 200].inspect}"
      end

      @buffer << @socket.readpartial(256 * 1024)
    end
  end
end
