# frozen_string_literal: true

require "minitest"
require "acgi/variables"
require "acgi/paths"

# SCRIPT_NAME and PATH_INFO of the server in plain Ruby: what the native doors say of the same
# requests, which web servers really sent by CGI (crates/door/tests/servers.rs has the format).
class AcgiPathsTest < Minitest::Test
  CORPUS = File.expand_path("../crates/door/tests/corpus", __dir__)
  FILES = Dir["#{CORPUS}/{*cgid*,lighttpd-cgi,nginx-fcgiwrap*}.txt"]

  def unescape(text) = text.b.gsub(/\\x(\h\h)/) { $1.hex.chr }

  # Label, what is wanted, variables. Of all but the first block only what differs is said.
  def requests(file)
    first = nil
    File.read(file).split("\n\n").drop(1).map do |block|
      label, wanted, *lines = block.lines(chomp: true)
      gone, said = lines.partition { |line| line.start_with?("-") }
      pairs = said.to_h { |line| unescape(line).split("=", 2) }
      pairs = (first || {}).reject { |name, _| gone.include?("-#{name}") }.merge(pairs)
      first ||= pairs
      # The shim sends one where the web server has sent none.
      [label, wanted.delete_prefix("= "), { "PATH_INFO" => "" }.merge(pairs)]
    end
  end

  def test_what_web_servers_send
    found = FILES.flat_map do |file|
      requests(file).map { |request| [File.basename(file), *request] }
    end
    assert_operator found.size, :>=, 80
    wrong = found.filter_map do |file, label, wanted, params|
      got = "[#{ACGI::Paths.of(params).join('][')}]"
      "#{file} #{label}: #{got}, not #{wanted}" unless got == wanted
    end
    assert_empty wrong, wrong.join("\n")
  end
end
