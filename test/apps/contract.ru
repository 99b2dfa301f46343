# frozen_string_literal: true

require "digest/sha2"

# What the contract of all doors looks at: what the app is told, and replies of every kind.
TEXT = { "content-type" => "text/plain; charset=utf-8" }.freeze
LONG = Random.new(42).bytes(1024 * 1024).freeze

# Comes in pieces, of which nobody knows how many there are.
class Pieces
  def each
    3.times { |nr| yield "piece #{nr}\n" * 50 }
  end
end

# Comes as the test says so: the second piece once the first one has arrived.
class Slow
  def each
    yield "first\n"
    File.read("fifo")
    yield "second\n"
  end
end

# Takes the connection over and sends back one line, as a WebSocket that talks nonsense. Outside of
# Lint, whose hijacked connection cannot read lines.
class Talk
  HEAD = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
         "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

  def initialize(app)
    @app = app
  end

  def call(env)
    return @app.call(env) unless env["PATH_INFO"] == "/talk"

    io = env["rack.hijack"].call
    io.write(HEAD)
    io.write("<#{io.gets.chomp}>\n")
    io.close
    [200, {}, []]
  end
end

def told(env)
  body = env["rack.input"]&.read || ""
  said = env.select { |_, value| [String, TrueClass, FalseClass].include?(value.class) }
  said["test.keys"] = env.keys.sort
  said["test.body"] = [body.bytesize, Digest::SHA256.hexdigest(body)]
  Marshal.dump(said)
end

def cookies = Rack.release < "3" ? "a=1; path=/\nb=2; httponly" : ["a=1; path=/", "b=2; httponly"]

def not_modified?(env) = env["HTTP_IF_NONE_MATCH"] == '"one"'

use Talk
use Rack::Lint
run(lambda do |env|
  case env["PATH_INFO"]
  when "/nothing" then [204, {}, []]
  when "/etag" then not_modified?(env) ? [304, { "etag" => '"one"' }, []] : [200, TEXT.dup, ["new"]]
  when "/away" then [302, TEXT.merge("location" => "/app/there?a=b%20c"), ["there"]]
  when "/here" then [303, { "location" => "http://else.example/there" }, []]
  when "/cookies" then [200, TEXT.merge("set-cookie" => cookies), ["two"]]
  when "/pieces" then [200, TEXT.dup, Pieces.new]
  when "/slow" then [200, TEXT.merge("x-accel-buffering" => "no"), Slow.new]
  when "/long" then [200, { "content-type" => "image/x-noise" }, [LONG]]
  when "/missing" then [404, TEXT.merge("x-reason" => "none"), ["not here"]]
  when "/teapot" then [418, TEXT.dup, ["short and stout"]]
  when "/unavailable" then [503, TEXT.merge("retry-after" => "7"), ["later"]]
  when "/raise" then raise "on purpose"
  else [200, { "content-type" => "application/octet-stream" }, [told(env)]]
  end
end)
