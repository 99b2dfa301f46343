# frozen_string_literal: true

# Whether the lines of a file are true: `expression # => expected`, `expression # raises Class`, as
# they are read in mruby.
require "erb"
require "json"
require "securerandom"
require "time"

def raised(context, expression)
  context.eval(expression)
  nil
rescue StandardError, ScriptError => error
  error.class
end

def check(line)
  context = Object.new.instance_eval { binding }
  if line =~ / # raises (\S+)\z/
    expression = $`
    wanted = Object.const_get($1)
    got = raised(context, expression)
    abort "#{line}: it raises #{got.inspect}" unless got && got <= wanted
  else
    expression, _, expected = line.rpartition(" # => ")
    got = context.eval(expression)
    want = context.eval(expected)
    abort "#{line}: it is #{got.inspect}" unless [want, want.class] == [got, got.class]
  end
end

# Some lines warn, as they should.
$VERBOSE = nil
lines = File.readlines(ARGV.fetch(0), chomp: true).grep_v(/\A(#|\z)/)
lines.each { |line| check(line) }
puts "#{lines.size} lines"
