# frozen_string_literal: true

# What apps answer, well and badly.

# Notes on a file that a body was closed.
class Body
  def initialize(*parts, &block)
    @parts = parts
    @block = block
  end

  def each(&block)
    @parts.each(&block)
    @block&.call(block)
  end

  def close
    File.write("closed", "#{self.class} #{Process.pid}\n", mode: "a")
  end
end

# Closes with an exception.
class BadEnd < Body
  def close
    super
    raise "cannot close"
  end
end

# An Array of a kind of its own, so its `each` counts.
class Loud < Array
  def each
    super { |part| yield part.upcase }
  end
end

# Parts until nobody wants them any more; then notes how it ended.
ENDLESS = lambda do |yielder|
  count = 0
  loop { yielder.call("#{'x' * 1000}#{count += 1}\n") }
ensure
  File.write("ended", "#{count}\n", mode: "a")
end

# Copied for each response: Rack 3 wants headers that are not frozen.
PLAIN = { "content-type" => "text/plain" }.freeze

# Replies that Lint would not let through: it stands behind, so they are made here.
WRONG = {
  "nothing" => -> {},
  "status-text" => -> { ["fine", PLAIN.dup, []] },
  "status-99" => -> { [99, PLAIN.dup, []] },
  "status-1000" => -> { [1000, PLAIN.dup, []] },
  "status-nil" => -> { [nil, PLAIN.dup, []] },
  "status-object" => -> { [Object.new, PLAIN.dup, []] },
  "status-100" => -> { [100, PLAIN.dup, []] },
  "status-101" => -> { [101, PLAIN.dup, []] },
  "headers-nil" => -> { [200, nil, []] },
  "headers-text" => -> { [200, "a: b", []] },
  "name-number" => -> { [200, { 1.5 => "x" }, []] },
  "name-space" => -> { [200, { "a b" => "x" }, []] },
  "name-return" => -> { [200, { "a\r\nb" => "x" }, []] },
  "name-empty" => -> { [200, { "" => "x" }, []] },
  "value-float" => -> { [200, { "x-a" => 1.5 }, []] },
  "value-nil" => -> { [200, { "x-a" => nil }, []] },
  "value-list-nil" => -> { [200, { "x-a" => ["x", nil] }, []] },
  "value-return" => -> { [200, { "x-a" => "a\r\nb: c" }, []] },
  "value-zero" => -> { [200, { "x-a" => "a\0b" }, []] },
  "value-long" => -> { [200, { "x-a" => "x" * 70_000 }, []] },
  "values-long" => -> { [200, (1..5).to_h { |i| ["x-#{i}", "x" * 60_000] }, []] },
  "length-text" => -> { [200, { "content-length" => "5 or so" }, ["short"]] },
  "length-twice" => -> { [200, { "content-length" => "5", "Content-Length" => "5" }, ["short"]] },
  "coding" => -> { [200, { "transfer-encoding" => "gzip" }, ["x"]] },
  "coding-wrong" => -> { [200, { "transfer-encoding" => "chunked" }, ["x\r\n"]] },
  "body-nil" => -> { [200, PLAIN.dup, nil] },
  "body-text" => -> { [200, PLAIN.dup, "text"] },
  "body-numbers" => -> { [200, PLAIN.dup, [1, 2]] },
  "body-late-number" => -> { [200, PLAIN.dup, ["text", 2]] }
}.freeze

# Exceptions of every kind.
RAISE = {
  "error" => -> { raise ArgumentError, "on purpose" },
  "exception" => -> { raise Exception, "on purpose" }, # rubocop:disable Lint/RaiseException
  "script" => -> { raise NotImplementedError, "on purpose" },
  "throw" => -> { throw :on_purpose },
  "stack" => -> { deep = -> { deep.call }; deep.call }, # rubocop:disable Style/Semicolon
  "encoding-\u00e4".b => -> { raise "on purp\u00f6se" },
  "interrupt" => -> { raise Interrupt, "on purpose" }
}.freeze

use(Class.new do
  def initialize(app)
    @app = app
  end

  def call(env)
    case env["PATH_INFO"]
    when %r{\A/wrong/(.*)} then WRONG.fetch($1).call
    # As Rack 2 has it; Rack 3's Lint has lists instead, and names in lower case.
    when "/headers"
      cookies = Rack.release < "3" ? "a=1\nb=2" : %w[a=1 b=2]
      [200, PLAIN.merge("set-cookie" => cookies, "x-one" => "1", "x-empty" => ""), []]
    when "/array" then [200, PLAIN.dup, %w[one two three]]
    when "/array/big" then [200, PLAIN.dup, ["x" * 1_000_000, "y" * 4_000_000]]
    when "/array/many" then [200, PLAIN.dup, (1..20_000).map { |i| "#{i}\n" }]
    when %r{\A/array/cut/(\d+)} then [200, PLAIN.dup, ["x" * $1.to_i, "y" * 100_000]]
    when "/array/loud" then [200, PLAIN.dup, Loud.new(%w[one two])]
    when "/length/short" then [200, PLAIN.merge("content-length" => "10"), ["short"]]
    when "/length/stream"
      [200, PLAIN.merge("content-length" => "20"), Body.new("first") { File.read("gate") }]
    when "/length/stream/none"
      [200, PLAIN.merge("content-length" => "20"), Body.new { File.read("gate") }]
    when "/length/stream/long"
      late = ->(part) { File.read("gate").then { part.call("second") } }
      [200, PLAIN.merge("content-length" => "7"), Body.new("first", &late)]
    when "/length/long" then [200, PLAIN.merge("content-length" => "2"), ["long"]]
    else @app.call(env)
    end
  end
end)
use Rack::Lint
run(lambda do |env|
  case env["PATH_INFO"]
  when "/pid" then [200, PLAIN.dup, [Process.pid.to_s]]
  when "/stream"
    late = ->(part) { File.read("gate").then { part.call("second\n") } }
    [200, PLAIN.dup, Body.new("first\n", &late)]
  when "/stream/big" then [200, PLAIN.dup, Body.new("x" * 1_000_000, "y" * 4_000_000)]
  when "/stream/many" then [200, PLAIN.dup, Body.new(*(1..5000).map { |i| "#{i}\n" })]
  when "/stream/endless" then [200, PLAIN.dup, Body.new(&ENDLESS)]
  when "/stream/raise" then [200, PLAIN.dup, Body.new("first\n") { raise "in each" }]
  when "/stream/raise-length"
    [200, PLAIN.merge("content-length" => "9"), Body.new("first\n") { raise "in each" }]
  when "/stream/exit" then [200, PLAIN.dup, Body.new("first\n") { exit(3) }]
  when "/close/raise" then [200, PLAIN.dup, BadEnd.new("whole\n")]
  when "/close" then [200, PLAIN.dup, Body.new("whole\n")]
  when "/exit" then exit(3)
  when "/thread/exit" then Thread.exit
  when "/thread/gate"
    File.write("held", "\n", mode: "a")
    File.read(Thread.current == Thread.main ? "main" : "other")
    [200, PLAIN.dup, ["held"]]
  when %r{\A/raise/(.*)} then RAISE.fetch($1).call
  end
end)
