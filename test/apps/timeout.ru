# frozen_string_literal: true

# Requests that last, each in its way. "gate" waits until the test opens it.

# With Rack 3.1's rackup, which adds it in development, two would spoil each other's bodies.
use Rack::Lint unless $PROGRAM_NAME.end_with?("rackup")

PLAIN = { "content-type" => "text/plain" }.freeze

# One call in C that keeps the interpreter to itself.
HASH = ->(rounds) { "secret".crypt("$6$rounds=#{rounds}$saltsalt") }

# Bodies that begin and do not end.
class Endless
  def each
    yield "first"
    sleep
  end
end

WAYS = {
  "/sleep" => ->(*) { sleep },
  "/spin" => ->(*) { nil until File.exist?("go") },
  "/read" => ->(*) { IO.pipe.first.read },
  "/hash" => ->(*) { HASH.call(900_000_000) },
  "/gate" => ->(*) { File.read("gate") },
  "/other" => ->(*) { File.read("other") },
  "/late" => ->(*) { HASH.call(300_000) && File.read("gate") },
  "/raise" => ->(*) { raise "oh no" },
  "/extend" => ->(timeout) { timeout.extend(300) && File.read("gate") },
  "/cancel" => ->(timeout) { timeout.cancel || File.read("gate") },
  "/set" => ->(timeout) { timeout.set(0.4) && sleep },
  "/thread" => ->(timeout) { Thread.new { timeout.set(0.4) }.join && sleep },
  "/leave" => ->(timeout) { timeout.set(1000, soft: 500) },
  "/soft" => ->(timeout) { timeout.set(nil, soft: 0.1) || File.read("gate") },
  "/numbers" => lambda do |timeout|
    [timeout.remaining, timeout.extend(100), timeout.set(1000, soft: 500), timeout.cancel,
     timeout.extend(1), timeout.remaining]
  end,
  "/wrong" => lambda do |timeout|
    [0, -1, "soon", Float::NAN].map do |value|
      timeout.set(value)
    rescue ArgumentError => error
      error.message
    end
  end
}.freeze

run(lambda do |env|
  path = env["PATH_INFO"]
  File.write("called", "#{env['REQUEST_METHOD']} #{path} #{Process.pid}\n", mode: "a")
  next [200, PLAIN.dup, Endless.new] if path == "/stream"

  if path == "/hijack"
    io = env["rack.hijack"].call
    io.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    File.read("gate")
    io.write("bye")
    io.close
    next [200, PLAIN.dup, []]
  end
  found = WAYS[path]&.call(env["oribi.timeout"])
  [200, PLAIN.dup, ["#{Process.pid} #{found.inspect}"]]
end)
