# frozen_string_literal: true

require "helper_case"
require "json"
require "open3"

# What the gems for mruby promise to have in common with CRuby is what CRuby does: the same files
# are run in mruby by crates/mruby/tests/gems.rs and crates/text/tests.
class MrubyGemsTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)

  Dir["#{ROOT}/crates/mruby/tests/gems/*.rb"].each do |file|
    define_method("test_#{File.basename(file, ".rb")}_lines_are_true_in_cruby") do
      # In a Ruby of its own: what other tests have loaded changes what core classes do.
      output, status = Open3.capture2e(RbConfig.ruby, "#{ROOT}/test/apps/lines_are_true.rb", file)
      assert status.success?, output
      assert_match(/\A[1-9]\d* lines\n\z/, output)
    end
  end

  def test_patterns_match_as_written_down
    each_case("regexps.json") do |source, letters, text, want|
      options = { "i" => 1, "x" => 2, "m" => 4 }.sum do |name, bit|
        letters.include?(name) ? bit : 0
      end
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

  # Some lines warn, as they should.
  def quietly
    verbose = $VERBOSE
    $VERBOSE = nil
    yield
  ensure
    $VERBOSE = verbose
  end
end

# The server has the engine where its library is installed, as the Makefile has it.
if File.exist?("/usr/include/mruby.h")
  # One app in mruby that uses every gem of Oribi's, at both levels of isolation.
  class MrubyGemsServedTest < Helper::Case
    LEVELS = %w[prefork fresh].freeze
    TOML = <<~TOML
      [[mount]]
      path = "/prefork"
      rackup = "gems.ru"
      engine = "mruby"
      isolation = "prefork"
      workers = 1
      [[mount]]
      path = "/fresh"
      rackup = "gems.ru"
      engine = "mruby"
      isolation = "fresh"
      workers = 1
    TOML

    def test_gems_serve_at_both_levels
      files = { "oribi.toml" => TOML, "gems.ru" => self.class.source("mruby_gems.ru") }
      @server = Helper::Server.new(:oribi, "-C", "oribi.toml", app: nil, files: files).ready
      LEVELS.each do |level|
        texts_are_worked_on("/#{level}")
        nothing_random_comes_twice("/#{level}")
      end
      requests_share_nothing_where_that_is_promised
      counts_are_one
    end

    private

    def ask(path, body = nil)
      @http ||= Net::HTTP.start("127.0.0.1", port)
      reply = body ? @http.post(path, body) : @http.get(path)
      text = reply.body.dup.force_encoding("UTF-8")
      assert_equal "200", reply.code, "#{path}: #{text}; #{server.log}"
      reply["content-type"].include?("json") ? JSON.parse(text) : text
    end

    def texts_are_worked_on(mount)
      asked = { "a" => ["hello \u00fcber world", 1.5, nil], "at" => "1994-11-06T09:49:37+01:00" }
      want = { "a" => ["Hello \u00fcber World", 1.5, nil], "at" => "Sun, 06 Nov 1994 08:49:37 GMT" }
      assert_equal want, ask("#{mount}/shout", JSON.generate(asked))
      error = ask("#{mount}/wrong", "{\n\"a\": x}").fetch("error")
      assert_match(/line 2 column/, error)
      assert_equal "Regexp::TimeoutError", ask("#{mount}/slow").fetch("slow")
      page = ask("#{mount}/storm/%3Cb%3E.html")
      items = ["found: \\[\\d+\\]", "parts: 2", "at: 1970-01-01 00:00:00"]
      assert_match(/\A<ul>\n#{items.map { |item| "  <li>#{item}</li>\n" }.join}<\/ul>\n\z/, page)
    end

    def nothing_random_comes_twice(mount)
      replies = Array.new(8) { ask("#{mount}/random") }
      replies.first.each_key do |name|
        assert_equal 8, replies.map { |reply| reply[name] }.uniq.size, "#{mount} #{name}"
      end
    end

    def requests_share_nothing_where_that_is_promised
      boots = Array.new(5) do |number|
        ask("/fresh/storm/x#{number}")
        left = ask("/fresh/left")
        # The match of the route itself is this request's.
        assert_equal ["/left", "left", 0], left.values_at("last", "first", "patterns")
        left.fetch("boot")
      end
      assert_equal 1, boots.uniq.size, "the app was loaded more than once"
      ask("/prefork/storm/x")
      assert_equal 200, ask("/prefork/left").fetch("patterns")
    end

    def counts_are_one
      counts = LEVELS.cycle.first(6).map { |level| ask("/#{level}/count").fetch("requests") }
      assert_equal((1..6).to_a, counts)
    end
  end
end
