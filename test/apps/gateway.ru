# frozen_string_literal: true

# What an app may do when a web server stands between it and its client.

require "logger"

# Copied for each response: Rack 3 wants headers that are not frozen.
PLAIN = { "content-type" => "text/plain" }.freeze

# Writes to the errors wherever a body may.
class Talking
  def initialize(errors, parts)
    @errors = errors
    @parts = parts
  end

  def each
    @parts.each do |part|
      @errors.puts("before #{part[0]}")
      yield part
    end
    @errors.puts("after all")
  end

  def close = @errors.puts("closed")
end

# A body that is a file, and says when it is closed.
class Filed < Talking
  def to_path = __FILE__
end

# A body that cannot be closed.
class Stuck < Talking
  def close = raise("stuck")
end

# Replies that Lint would not let through.
WRONG = {
  "/wrong/hijack" => -> { [200, PLAIN.merge("rack.hijack" => ->(io) { io.close }), []] },
  "/wrong/protocol" => -> { [200, PLAIN.merge("rack.protocol" => "echo"), lambda(&:close)] },
  "/wrong/status" => -> { [101, PLAIN.dup, lambda(&:close)] },
  "/wrong/part" => -> { [200, PLAIN.dup, ["text", 2]] }
}.freeze

# What Lint allows, and a logger.
SAY_ALL = lambda do |errors|
  errors.write("one\n")
  errors.puts("two")
  errors.flush
  Logger.new(errors, formatter: ->(*, message) { "#{message}\n" }).warn("three")
  errors.write("f\u00fcnf".encode("ISO-8859-1"))
end

# A body that calls: reads what there is, and then is at its end.
CONVERSE = lambda do |stream, errors|
  stream.write("<#{stream.read}>")
  errors.puts("within")
  stream << stream.read(1).inspect
  stream.close
  errors.puts("behind")
end

use(Class.new do
  def initialize(app)
    @app = app
  end

  def call(env)
    path = env["PATH_INFO"]
    case path
    when "/raw"
      errors = env["rack.errors"]
      errors << "a" << 1 << nil
      errors.print("b", 2)
      errors.puts("c", ["d"])
      errors.printf("%03d\n", 7)
      errors.close
      errors.puts([errors.sync, errors.tty?, errors.closed?, errors.inspect].inspect)
      [200, PLAIN.dup, ["raw"]]
    when "/env"
      # Without Lint's wrappers, in what can be sent.
      [200, PLAIN.dup, [Marshal.dump(env.transform_values(&:inspect))]]
    when "/keep"
      @kept = env["rack.hijack"]
      [200, PLAIN.dup, ["kept"]]
    when "/kept"
      begin
        @kept.call
      rescue IOError => error
        [200, PLAIN.dup, ["#{error.class}: #{error.message}"]]
      end
    when "/filed" then [200, PLAIN.dup, Filed.new(env["rack.errors"], [])]
    # Rack 2's Lint knows no such bodies.
    when "/callable" then [200, PLAIN.dup, ->(stream) { CONVERSE.call(stream, env["rack.errors"]) }]
    when %r{\A/wrong/} then WRONG.fetch(path).call
    else @app.call(env)
    end
  end
end)
use Rack::Lint
run(lambda do |env|
  errors = env["rack.errors"]
  case env["PATH_INFO"]
  when "/pid" then [200, PLAIN.dup, [Process.pid.to_s]]
  when "/all"
    SAY_ALL.call(errors)
    [200, PLAIN.dup, ["all"]]
  when "/talking" then [200, PLAIN.dup, Talking.new(errors, %w[one two])]
  when "/stuck" then [200, PLAIN.dup, Stuck.new(errors, %w[one two])]
  when "/raise" then raise ArgumentError, "on purpose"
  when "/raise/encoding" then raise "t\u00f6dlich".encode("UTF-16LE")
  when "/raise/lines" then raise "one\ntwo"
  when "/raise/later"
    errors.puts("begun")
    [200, PLAIN.dup, Talking.new(errors, ["one", nil])]
  when %r{\A/size/(\d+)/(\d+)}
    errors.write("e" * $1.to_i)
    [200, PLAIN.dup, Talking.new(errors, ["x" * $2.to_i])]
  when "/forked"
    pid = fork do
      errors.puts("from the child")
      errors.flush
      exit!(0)
    end
    Process.wait(pid)
    [200, PLAIN.dup, ["forked"]]
  when "/thread"
    Thread.new { errors.puts("from a thread") }.join
    [200, PLAIN.dup, ["thread"]]
  when "/late"
    done = Queue.new
    Thread.new { done.pop.then { errors.puts("too late") } }
    env["rack.after_reply"] << -> { done << true }
    [200, PLAIN.dup, ["late"]]
  when "/die"
    errors.puts("last words")
    Process.kill("KILL", Process.pid)
  when "/die/later"
    body = lambda do |yielder|
      yielder << "first"
      errors.puts("last words")
      Process.kill("KILL", Process.pid)
    end
    [200, PLAIN.dup, Enumerator.new(&body)]
  when "/hold"
    errors.puts("before")
    File.read("gate")
    errors.puts("behind")
    [200, PLAIN.dup, ["held"]]
  when "/hang"
    errors.puts("about to hang")
    sleep
  end
end)
