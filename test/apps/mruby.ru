# frozen_string_literal: true

# What test/mruby_test.rb asks of an app in mruby, which knows a part of Ruby only.
# rubocop:disable Style, Layout/LineLength, Lint/AmbiguousOperatorPrecedence

require_relative "release" if File.exist?("release.rb")

$count = 0
$left = nil

class Deep
  def self.fail(text)
    raise ArgumentError, text
  end
end

# A body that says when it was closed.
class Slow
  def initialize(parts)
    @parts = parts
  end

  def each
    @parts.each do |part|
      raise "the stream broke" if part == :break

      yield part
    end
  end

  def close
    $stderr.puts "closed #{@parts.size}"
  end
end

class Name
  def initialize(app, name)
    @app = app
    @name = name
  end

  def call(env)
    status, headers, body = @app.call(env)
    [status, headers.merge("x-by" => @name), body]
  end
end

def recurse(number)
  recurse(number + 1) + 1
end

def text(body, status = 200, headers = {})
  [status, { "content-type" => "text/plain" }.merge(headers), [body]]
end

# What a request may leave, and what another one would see of it.
def leave
  $left = "here"
  Deep.class_variable_set(:@@left, 1)
  Deep.const_set(:LEFT, 1)
  Deep.define_method(:left) { 1 }
  Object.const_get(:String).define_method(:left) { 1 }
  $memory = "x" * 5_000_000
  2000.times { |i| "left#{i}".to_sym }
  $file = File.open("/dev/null")
  $random = rand(1_000_000_000)
  Deep.instance_variable_set(:@left, [])
  $stderr = nil
end

def seen
  fd = File.open("/dev/null") { |file| file.fileno }
  [$left, Deep.class_variable_defined?(:@@left), Deep.const_defined?(:LEFT), Deep.new.respond_to?(:left),
   "".respond_to?(:left), $memory.nil?, fd, Deep.instance_variable_get(:@left), $stderr.nil?].inspect
end

map "/mapped" do
  use Name, "middleware"
  run ->(env) { text("#{env['SCRIPT_NAME']} #{env['PATH_INFO']}") }
end

run(lambda do |env|
  case env["PATH_INFO"]
  when "/env"
    names = env.keys.select { |name| name == name.upcase }
    lines = names.map { |name| "#{name}=#{env[name]}" }
    text((lines + [%w[version multithread multiprocess run_once url_scheme].map { |n| env["rack." + n].inspect }.join(" "),
                   env["oribi.queue_time"].class.to_s]).join("\n"))
  when "/body"
    input = env["rack.input"]
    whole = input.read
    input.rewind
    lines = 0
    input.each { |_| lines += 1 }
    input.rewind
    part = input.read(3)
    sum = 0
    # An array of all bytes, as `each_byte` makes it, would be most of the interpreter's memory.
    whole.bytesize.times { |i| sum = (sum + whole.getbyte(i)) % 65521 }
    text("#{whole.bytesize} #{lines} #{part} #{input.gets.to_s.bytesize} #{sum}")
  when "/size" then text(env["rack.input"].read.bytesize.to_s)
  when "/stream" then [200, { "content-type" => "text/plain" }, Slow.new(["one\n", "", "two\n"])]
  when "/broken" then [200, { "content-type" => "text/plain" }, Slow.new(["one\n", :break])]
  when "/large" then [200, {}, Slow.new(["y" * 100_000] * 30)]
  when "/headers" then text("ok", 201, "x-list" => "a\nb", "rack.secret" => "no", "set-cookie" => %w[c=1 d=2])
  when "/bad" then [200, { "x bad" => "1" }, []]
  when "/nothing" then nil
  when "/none" then [204, {}, []]
  when "/boom" then Deep.fail("boom\nand more")
  when "/errors"
    env["rack.errors"].puts "to the log", "twice"
    text("ok")
  when "/count" then text(($count += 1).to_s)
  when "/leave"
    leave
    text("left")
  when "/see" then text(seen)
  when "/random" then text(rand(1_000_000_000).to_s)
  when "/memory"
    all = []
    loop { all << "x" * 10_000 }
  when "/recurse" then text(recurse(0).to_s)
  when "/forever" then loop {}
  when "/finished"
    env["rack.response_finished"] << ->(*) { $stderr.puts "finished" }
    text("ok")
  when "/release" then text(RELEASE)
  else text("hello")
  end
end)
# rubocop:enable Style, Layout/LineLength, Lint/AmbiguousOperatorPrecedence
