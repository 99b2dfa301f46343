# frozen_string_literal: true

# What the app is given: the env, rack.input, rack.errors.

# Every String of the env with its encoding, everything else as what it is.
DESCRIBE = lambda do |env|
  env.transform_values do |value|
    value.is_a?(String) ? [value, value.encoding.name] : [value.class.name, value.inspect]
  end
end

# Outside of Lint, which wraps input and errors.
class Bare
  def initialize(app)
    @app = app
  end

  def call(env)
    case env["PATH_INFO"]
    when "/env", %r{\A/env/}, "", "*" then answer(DESCRIBE.call(env))
    when "/keys" then answer(env.keys.map { |key| [key.frozen?, key.encoding.name] }.uniq)
    when "/spoil" then spoil(env)
    else @app.call(env.merge("test.input" => env["rack.input"]))
    end
  end

  # Whatever an app does to its env, the next request starts anew.
  def spoil(env)
    spoilt = env.keys.grep_v(/\Arack\.(input|errors)/).each { |key| env[key] = "spoilt" }
    env["spoilt"] = "spoilt"
    env.delete("REQUEST_METHOD")
    answer(spoilt)
  end

  def answer(object) = [200, { "content-type" => "text/plain" }, [Marshal.dump(object)]]
end

INPUTS = {
  "/read" => ->(input) { [input.read, input.read, input.read(1)] },
  "/length" => ->(input) { [input.read(0), input.read(3), input.read(100), input.read(1)] },
  "/buffer" => lambda do |input|
    buffer = +"before"
    same = input.read(3, buffer).equal?(buffer)
    [same, buffer.dup, input.read(nil, buffer).dup, input.read(3, buffer), buffer]
  end,
  "/gets" => ->(input) { [input.gets, input.gets, input.gets, input.gets] },
  "/each" => ->(input) { [].tap { |found| input.each { |line| found << line } } },
  "/rewind" => lambda do |input|
    [input.read(2), input.rewind && nil, input.read, input.rewind && nil, input.gets]
  end,
  "/encodings" => lambda do |input|
    [input.read(2), input.read, input.rewind && "", input.gets].map { |s| s&.encoding&.name }
  end
}.freeze

use Bare
use Rack::Lint
run(lambda do |env|
  if env["PATH_INFO"] == "/errors"
    env["rack.errors"].puts("a line for the log")
    env["rack.errors"].write("and ", "more\n") if env["rack.errors"].is_a?(IO)
    env["rack.errors"].flush
    next [200, { "content-type" => "text/plain" }, ["logged"]]
  end

  if env["PATH_INFO"] == "/gate"
    File.write("asked", "#{env['QUERY_STRING']} #{env['oribi.queue_time']}\n", mode: "a")
    File.read("gate") if env["QUERY_STRING"] == "hold"
    next [200, { "content-type" => "text/plain" }, [env["oribi.queue_time"].to_s]]
  end

  # Rack 3's Lint hides `rewind`, which it does not ask for any more.
  input = env["rack.input"]
  input = env["test.input"] unless input.respond_to?(:rewind)
  found = INPUTS.fetch(env["PATH_INFO"]).call(input)
  [200, { "content-type" => "text/plain" }, [Marshal.dump(found)]]
end)
