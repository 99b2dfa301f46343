# frozen_string_literal: true

# What the tests of HTTP ask for.

require "digest/sha2"

# Outside of Lint, which allows none of it: a body in the answer to HEAD, and with 204 and 304.
class Careless
  def initialize(app)
    @app = app
  end

  def call(env)
    case env["PATH_INFO"]
    when "/careless" then [200, { "content-type" => "text/plain" }, ["a body"]]
    when %r{\A/careless/(\d+)\z} then [Integer($1), { "etag" => "\"1\"" }, ["a body"]]
    when "/careless/stream" then [200, {}, Enumerator.new { |parts| parts << "a" << "body" }]
    else @app.call(env)
    end
  end
end

# Outside of Lint, which hides what kind of body it is: a plain Array, so that its length is known.
class Whole
  def initialize(app)
    @app = app
  end

  def call(env)
    status, headers, body = @app.call(env)
    return [status, headers, body] unless env["PATH_INFO"].start_with?("/whole")

    parts = body.enum_for(:each).to_a
    body.close
    [status, headers, parts]
  end
end

# A body that is not an Array, so that nobody knows its length before its end.
class Parts
  def initialize(*parts)
    @parts = parts
  end

  def each(&block) = @parts.each(&block)
end

# Its first part comes at once, the second when the test has opened the gate.
Gated = Struct.new(:gate) do
  def each
    yield "first, "
    File.read(gate)
    yield "second"
  end
end

use Careless
use Whole
use Rack::Lint
use Rack::Head
run(lambda do |env|
  plain = { "content-type" => "text/plain" }
  body = env["rack.input"].read
  case env["PATH_INFO"]
  when "/digest"
    digest = Digest::SHA256.hexdigest(body)
    [200, plain, ["#{digest} #{body.bytesize} #{env['CONTENT_LENGTH'].inspect}"]]
  when "/echo" then [200, plain, [body]]
  when "/parts" then [200, plain, Parts.new("one, ", "two, ", "three")]
  when "/length" then [200, plain.merge("content-length" => "9"), Parts.new("nine ", "long")]
  when "/whole/empty" then [200, plain, []]
  when "/close" then [200, plain.merge("connection" => "close"), ["last"]]
  when "/gated" then [200, plain, Gated.new("gate")]
  when "/whole/parts" then [200, plain, ["one, ", "two, ", "three"]]
  when %r{\A/status/(\d+)\z} then [Integer($1), { "etag" => "\"1\"" }, []]
  when "/long"
    [200, plain, [Digest::SHA256.hexdigest(env["QUERY_STRING"] + env["HTTP_X_LONG"].to_s)]]
  else [200, plain, ["#{env['REQUEST_METHOD']} #{env['PATH_INFO']}"]]
  end
end)
