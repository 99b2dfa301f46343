# frozen_string_literal: true

# What Rack offers beyond env, status, headers and an Array.

# Copied for each response: Rack 3 wants headers that are not frozen.
PLAIN = { "content-type" => "text/plain" }.freeze

# Headers that only respond to each.
class Pairs
  def each
    yield "content-type", "text/plain"
    yield "x-a", "1"
    yield "x-a", "2"
  end
end

# Headers that are none but can become some.
class Convertible
  def to_hash = { "content-type" => "text/plain", "x-a" => "converted" }
end

# Notes that it was closed, and how often it was asked for its parts.
class Body
  def each
    File.write("parts", "asked\n", mode: "a")
    yield "whole\n"
  end

  def close = File.write("closed", "closed\n", mode: "a")
end

# Says what becomes of it; enumerable first, if it is both.
class Both < Body
  def call(_stream) = raise("an enumerable body is not called")
end

def note(name, *words) = File.write(name, "#{words.join(' ')}\n", mode: "a")

HEADERS = {
  "array" => { "set-cookie" => ["a=1; path=/", "b=2"], "x-one" => ["1"], "x-none" => [] },
  "lines" => { "set-cookie" => "a=1\nb=2\n", "x-a" => "1" },
  "case" => { "X-Mixed-Case" => "Kept" },
  "lenient" => { "x-number" => 12, "x-symbol" => :word, :"x-name" => "symbol",
                 "x-list" => [1, :two, "three"] },
  "rack" => { "rack.secret" => "x", "rack.other" => Object.new, "x-a" => "1" },
  "hop" => { "keep-alive" => "timeout=5", "proxy-connection" => "x", "connection" => "x-secret",
             "x-a" => "1" },
  "close" => { "Connection" => "Close" }
}.freeze

CALLABLE = {
  "plain" => lambda do |stream|
    stream.write("one ", "two ")
    stream << "three " << :four
    stream.flush
    stream.close
  end,
  "open" => ->(stream) { stream << "not closed" },
  "closed" => lambda do |stream|
    found = [stream.closed?, stream.close_write, stream.closed?, stream.close_read, stream.closed?]
    begin
      stream.write("late")
    rescue IOError => error
      found << error.message
    end
    note("stream", found.inspect)
  end,
  "echo" => lambda do |stream|
    while (part = stream.read(3))
      stream.write("[#{part}]")
    end
    stream.close
  end,
  "slow" => lambda do |stream|
    stream << "first"
    File.read("gate")
    stream << "second"
    stream.close
  end,
  "endless" => lambda do |stream|
    loop { stream << ("x" * 1000) }
  rescue Errno::EPIPE
    note("stream", "gone")
  end,
  "raise" => lambda do |stream|
    stream << "first"
    raise "in the body"
  end
}.freeze

def finish(env, path)
  finished = env["rack.response_finished"]
  after = env["rack.after_reply"]
  2.times do |i|
    finished << lambda do |same, status, headers, error|
      note("finished", i, same.equal?(env), status.inspect, headers&.keys.inspect, error.inspect)
      raise "finished #{i}" if path == "bad"
    end
    after << lambda do
      note("after", i)
      raise "after #{i}" if path == "bad"

      exit(4) if path == "exit"
    end
  end
  raise "on purpose" if path == "raise"
end

use(Class.new do
  def initialize(app) = @app = app

  def call(env)
    path = env["PATH_INFO"]
    case path
    when %r{\A/headers/(.*)} then [200, HEADERS.fetch($1), ["ok"]]
    when %r{\A/call/(.*)} then [200, PLAIN.dup, CALLABLE.fetch($1)]
    when "/pairs" then [200, Pairs.new, ["ok"]]
    when "/convertible" then [200, Convertible.new, ["ok"]]
    when "/status/string" then ["201", PLAIN.dup, ["ok"]]
    when %r{\A/status/(\d+)} then [$1.to_i, { "content-length" => "6", "x-a" => "1" }, Body.new]
    when "/both" then [200, PLAIN.dup, Both.new]
    when "/body" then [200, PLAIN.dup, Body.new]
    when "/chunked"
      [200, { "Transfer-Encoding" => "chunked" },
       ["3\r\nabc\r\n", "5;x=y\r\nde", "fgh\r", "\n", "0\r\n", "trailer: 1\r\n\r\n"].each]
    else @app.call(env)
    end
  end
end)
use Rack::Lint
run(lambda do |env|
  case env["PATH_INFO"]
  when "/pid" then [200, PLAIN.dup, [Process.pid.to_s]]
  when %r{\A/finish/(.*)}
    finish(env, $1)
    [200, PLAIN.dup, ["ok"]]
  when "/gate"
    File.write("held", "\n", mode: "a")
    File.read("gate")
    [200, PLAIN.dup, ["held"]]
  when "/exit" then exit(5)
  end
end)
