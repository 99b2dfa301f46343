# All gems that Oribi brings to mruby, in one app. What is made here is made once; a request must not
# be able to change it for another one.

require "erb"
require "json"
require "securerandom"
require "time"

ROUTE = %r{\A/(?<action>\w+)(?:/(?<rest>.*?))?(?:\.(?<format>json|html))?\z}
PAGE = ERB.new(<<TEMPLATE, trim_mode: "-")
<ul>
<% items.each do |name, value| -%>
  <li><%= ERB::Util.h(name) %>: <%= ERB::Util.h(value) %></li>
<% end -%>
</ul>
TEMPLATE
BOOT = SecureRandom.uuid

module Actions
  # What a request of before has left, if anything.
  def self.left(_rest, _body)
    { last: $~ && $~[0], first: $1, patterns: $patterns.to_a.size, boot: BOOT }
  end

  def self.random(_rest, _body)
    { uuid: SecureRandom.uuid, hex: SecureRandom.hex(8), number: SecureRandom.random_number(1 << 60),
      text: SecureRandom.alphanumeric(20), rand: rand.to_s }
  end

  # A body of JSON, with every text in it changed.
  def self.shout(_rest, body)
    change = lambda do |value|
      case value
      when Hash then value.map { |key, inner| [key, change.call(inner)] }.to_h
      when Array then value.map { |inner| change.call(inner) }
      when /\A\d{4}-\d\d-\d\dT/ then Time.iso8601(value).utc.httpdate
      when String then value.gsub(/(?<first>\b\w)(\w*)/) { $~[:first].upcase + $~.post_match[0, 0] + $~[0][1..-1] }
      else value
      end
    end
    change.call(JSON.parse(body))
  end

  # Patterns and objects of a request's own, and garbage.
  def self.storm(rest, _body)
    $patterns = (0...200).map { |n| Regexp.new("#{Regexp.escape(rest)}#{n}(?<x>.)") }
    GC.start
    found = $patterns.select { |pattern| pattern =~ "#{rest}7#{rest}8" }.map { |pattern| pattern.source.size }
    { found: found, parts: "#{rest},#{rest}".split(/,/).size, at: Time.at(0).utc.strftime("%F %T") }
  end

  def self.count(_rest, _body)
    Oribi.counter(:mruby_gems_requests).increment
    Oribi.gauge(:mruby_gems_last).set(7)
    Oribi.histogram(:mruby_gems_seconds, buckets: [0.1, 1]).observe(0.5)
    { requests: Oribi.counter(:mruby_gems_requests).get, last: Oribi.gauge(:mruby_gems_last).get }
  end

  def self.slow(_rest, _body)
    ("a" * 5_000).match?(/(a*)*\1b/)
    { slow: "not given up" }
  rescue Regexp::TimeoutError => error
    { slow: error.class.to_s }
  end

  def self.wrong(_rest, body)
    { value: JSON.parse(body) }
  rescue JSON::ParserError => error
    { error: error.message }
  end

  ALL = %w[left random shout storm count slow wrong].freeze
end

run(lambda do |env|
  found = ROUTE.match(env["PATH_INFO"])
  next [404, { "content-type" => "text/plain" }, ["no such thing"]] unless found && Actions::ALL.include?(found[:action])

  answer = Actions.__send__(found[:action], found[:rest], env["rack.input"].read.to_s)
  html = found[:format] == "html"
  body = html ? PAGE.result_with_hash(items: answer) : JSON.generate(answer)
  [200, { "content-type" => html ? "text/html" : "application/json" }, [body]]
end)
