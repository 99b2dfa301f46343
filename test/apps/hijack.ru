# frozen_string_literal: true

# Apps that take the connection.
require "digest"

# Copied for each response: Rack 3 wants headers that are not frozen.
PLAIN = { "content-type" => "text/plain" }.freeze
HEAD = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n"

# What nobody else holds would be closed by the collector.
KEPT = [] # rubocop:disable Style/MutableConstant

NOTE = ->(name, text) { File.write(name, "#{text}\n", mode: "a") }

# Answers each line with itself; the client's end is the end. To Lint an io cannot `gets`.
ECHO = lambda do |io|
  io.write("hello\n")
  line = +""
  while (byte = io.read(1))
    next line << byte unless byte == "\n"

    io.write("<#{line}>\n")
    line.clear
  end
  NOTE.call("ended", "echo")
  io.write("bye\n")
  io.close
rescue Errno::EPIPE, Errno::ECONNRESET
  NOTE.call("ended", "gone")
end

# A WebSocket server of one text frame at a time (RFC 6455).
module WebSocket
  GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

  module_function

  def headers(env)
    accept = [Digest::SHA1.digest(env.fetch("HTTP_SEC_WEBSOCKET_KEY") + GUID)].pack("m0")
    { "upgrade" => "websocket", "connection" => "Upgrade", "sec-websocket-accept" => accept }
  end

  def handshake(env)
    lines = headers(env).map { |name, value| "#{name}: #{value}\r\n" }
    "HTTP/1.1 101 Switching Protocols\r\n#{lines.join}\r\n"
  end

  # Answers what it is told until it is told to close.
  def serve(io)
    loop do
      kind, text = receive(io)
      case kind
      when 1 then io.write([0x81, text.bytesize + 2].pack("CC"), "<#{text}>")
      when 8
        io.write([0x88, text.bytesize].pack("CC"), text)
        break NOTE.call("talked", "websocket")
      when nil then break NOTE.call("talked", "cut")
      end
    end
    io.close
  end

  def receive(io)
    first, length = io.read(2)&.unpack("CC")
    return unless length

    length &= 0x7f
    length = io.read(2).unpack1("n") if length == 126
    mask = io.read(4).bytes
    [first & 0xf, io.read(length).to_s.bytes.map.with_index { |b, i| b ^ mask[i % 4] }.pack("C*")]
  end
end

FULL = {
  "echo" => ->(io, _) { Thread.new { ECHO.call(io) } },
  "raw" => ->(io, _) { io.write("raw\n") && io.close },
  "now" => ->(io, _) { io.write(HEAD, "at once") && io.close },
  "big" => lambda do |io, _|
    Thread.new do
      io.write(HEAD, "x" * 20_000_000)
      io.close
    end
  end,
  "half" => lambda do |io, _|
    Thread.new do
      io.write("all I say\n")
      io.close_write
      NOTE.call("heard", io.read)
      io.close
    end
  end,
  "deaf" => lambda do |io, _|
    KEPT << io
    io.write("hello\n")
  end,
  "write" => lambda do |io, _|
    Thread.new do
      io.write("hello\n")
      loop { io.write("x" * 1000) }
    rescue Errno::EPIPE, Errno::ECONNRESET
      NOTE.call("left", "gone")
    end
  end,
  "input" => ->(io, env) { io.write(HEAD, env["rack.input"].read.upcase) && io.close },
  "websocket" => lambda do |io, env|
    io.write(WebSocket.handshake(env))
    Thread.new { WebSocket.serve(io) }
  end,
  "raise" => lambda do |io, _|
    io.write("hello\n")
    io.close
    raise "after hijacking"
  end
}.freeze

PARTIAL = {
  "echo" => ->(io) { Thread.new { ECHO.call(io) } },
  "raise" => ->(_) { raise "in rack.hijack" }
}.freeze

use(Class.new do
  def initialize(app) = @app = app

  def call(env)
    case env["PATH_INFO"]
    when "/nonsense"
      env["rack.hijack"].call.write("hello\n")
      env["rack.hijack_io"].close
      [-1, nil, nil]
    when "/switch"
      [101, { "upgrade" => "echo", "connection" => "upgrade" }, method(:serve)]
    when "/keep"
      [200, { "content-type" => "text/plain", "X-Case" => "as given", "Connection" => "x-own",
              "content-length" => "5",
              "rack.hijack" => ->(io) { io.write("whole") && io.close } }, []]
    when "/protocol"
      # Whatever the status: to ask for a protocol is to switch to it.
      [200, { "rack.protocol" => env["rack.protocol"].first, "x-a" => "1",
              "connection" => "close" }, method(:serve)]
    else @app.call(env)
    end
  end

  def serve(io) = Thread.new { ECHO.call(io) }
end)
use Rack::Lint
run(lambda do |env|
  case env["PATH_INFO"]
  when "/pid" then [200, PLAIN.dup, [Process.pid.to_s]]
  when "/large" then [200, PLAIN.dup, ["y" * 10_000_000]]
  when %r{\A/full/(.*)}
    raise "not hijackable" unless env["rack.hijack?"]

    io = env["rack.hijack"].call
    raise "another io" unless env["rack.hijack_io"]

    FULL.fetch($1).call(io, env)
    [200, PLAIN.dup, ["nobody sees this"]]
  when "/thread"
    Thread.new { env["rack.hijack"].call.write("from a thread\n") }.join
    env["rack.hijack_io"].close
    [200, PLAIN.dup, []]
  when "/twice"
    same = env["rack.hijack"].call
    same.write("#{env['rack.hijack'].call.class}\n")
    same.close
    [200, PLAIN.dup, []]
  when "/late"
    body = Enumerator.new do |parts|
      parts << "first "
      env["rack.hijack"].call
    rescue IOError => error
      parts << error.message
    end
    [200, PLAIN.dup, body]
  when "/partial/websocket"
    serve = ->(given) { Thread.new { WebSocket.serve(given) } }
    [101, WebSocket.headers(env).merge("rack.hijack" => serve), []]
  when %r{\A/partial/(.*)}
    [200, PLAIN.merge("rack.hijack" => PARTIAL.fetch($1)), []]
  when %r{\A/hints/(.*)}
    hints = env["rack.early_hints"]
    next [200, PLAIN.dup, [hints.inspect]] unless hints

    hints.call("link" => "</a.css>; rel=preload")
    File.read("gate") if $1 == "gate"
    hints.call("link" => ["</b.css>; rel=preload", "</c.js>; rel=preload"]) if $1 == "two"
    raise "on purpose" if $1 == "raise"

    FULL.fetch("raw").call(env["rack.hijack"].call, env) if $1 == "hijack"
    [200, PLAIN.dup, ["page"]]
  end
end)
