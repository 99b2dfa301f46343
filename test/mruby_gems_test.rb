# frozen_string_literal: true

require "erb"
require "json"
require "securerandom"
require "time"

# What the gems for mruby promise to have in common with CRuby is what CRuby does: the same files
# are run in mruby by crates/mruby/tests/gems.rs and crates/text/tests.
class MrubyGemsTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)

  Dir["#{ROOT}/crates/mruby/tests/gems/*.rb"].each do |file|
    define_method("test_#{File.basename(file, ".rb")}_lines_are_true_in_cruby") do
      lines = File.readlines(file, chomp: true).grep_v(/\A(#|\z)/)
      refute_empty lines
      lines.each { |line| check(line) }
    end
  end

  def test_patterns_match_as_written_down
    each_case("regexps.json") do |source, letters, text, want|
      options = { "i" => 1, "x" => 2, "m" => 4 }.sum { |letter, bit| letters.include?(letter) ? bit : 0 }
      got = quietly { spans(source, options, text) }
      assert_equal [want], [got], "/#{source}/#{letters} on #{text.inspect}"
    end
  end

  def test_times_are_formatted_as_written_down
    each_case("times.json") do |seconds, format, want|
      assert_equal want, Time.at(seconds, 123_456_789, :nsec).utc.strftime(format), format
    end
  end

  private

  def each_case(name, &block)
    JSON.parse(File.read("#{ROOT}/crates/text/tests/#{name}")).each(&block)
  end

  def spans(source, options, text)
    found = Regexp.new(source, options).match(text)
    found && (0...found.size).map do |group|
      found.begin(group) && [found.begin(group), found.end(group)].map { |at| text[0, at].bytesize }
    end
  rescue RegexpError
    "error"
  end

  # As the file's lines are read in mruby: `expression # => expected`, `expression # raises Class`.
  def check(line)
    context = Object.new.instance_eval { binding }
    if line =~ / # raises (\S+)\z/
      expression, error = $`, Object.const_get($1)
      assert_raises(error, line) { quietly { context.eval(expression) } }
    else
      expression, _, expected = line.rpartition(" # => ")
      got = quietly { context.eval(expression) }
      want = context.eval(expected)
      assert_equal [want, want.class], [got, got.class], line
    end
  end

  # Some lines warn, as they should.
  def quietly
    verbose, $VERBOSE = $VERBOSE, nil
    yield
  ensure
    $VERBOSE = verbose
  end
end
