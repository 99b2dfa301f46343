# frozen_string_literal: true

require "helper_case"
require "helper_contract"
require "helper_web_servers"

# One contract through every door and every web server: the app is told the same, and clients get
# the same answers, as over HTTP without anything in front. The web servers run with the
# configurations of examples/behind-*. What differs stands here and in docs/doors.md.
module DoorsContract
  Contract = Helper::Contract
  SERVERS = %i[nginx lighttpd apache].freeze
  DOORS = %w[http].freeze

  # Keys of env that may be there beside those over HTTP, by door and web server. Nothing of what
  # HTTP tells may be missing, nor be different, unless it stands below.
  ADDED = {
    ["http", :nginx] => %w[HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_HOST HTTP_X_FORWARDED_PROTO
                           HTTP_X_REAL_IP],
    ["http", :lighttpd] => %w[HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_HOST HTTP_X_FORWARDED_PROTO
                              HTTP_X_HOST HTTP_CONNECTION],
    ["http", :apache] => %w[HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_HOST HTTP_X_FORWARDED_PROTO
                            HTTP_X_FORWARDED_SERVER HTTP_CONNECTION]
  }.freeze
  # Keys of env by the requests in which they may be different, too.
  EXCEPT = {
    ["http", :lighttpd] => { "CONTENT_LENGTH" => %w[DELETE OPTIONS] }
  }.freeze
  # Each connection has its own.
  OF_CONNECTIONS = %w[REMOTE_PORT].freeze

  # The class's server, which listens for every door.
  module Served
    def shared
      @shared ||= begin
        binds = DOORS.flat_map do |door|
          tcp, unix = door == "http" ? %w[tcp unix] : [door, "#{door}+unix"]
          ["-b", "#{tcp}://127.0.0.1:0", "-b", "#{unix}://#{door}.sock"]
        end
        trust = ["--trusted-proxies", "127.0.0.1", "--trusted-proxies", "unix"]
        prefix = self::PREFIX.empty? ? [] : ["--prefix", self::PREFIX]
        words = ["-w", "2", *binds, *trust, *prefix, "--socket-mode", "0666"]
        app = Helper::Case.source("contract.ru")
        Helper::Server.new(:oribi, *words, app: app, bind: nil, open: true).ready
      end
    end

    # What is seen without anything in front; asked once.
    def direct
      @direct ||= Contract::REQUESTS.to_h do |name, _|
        client = Helper::Client.tcp(port("http"))
        [name, Contract.ask(client, name, self::PREFIX)]
      ensure
        client&.close
      end
    end

    # The TCP port of a door.
    def port(door) = Integer(shared.log[%r{listening on #{door}://\S+:(\d+)$}, 1], 10)

    def stop
      @direct = nil
      super
    end
  end

  def prefix = self.class::PREFIX

  # Starts the web server with the example's configuration, on a port of the test's and with our
  # addresses.
  def behind(kind, example)
    door = example[/\A[a-z]+/]
    name = "behind-#{kind}/#{example}#{'-app' unless prefix.empty?}.conf"
    text = File.read(File.join(Helper::ROOT, "examples", name))
    @web_port = free_port
    text = text.gsub(/\b8080\b/, @web_port.to_s)
               .gsub(/\b(?:9292|9000|4000)\b/, self.class.port(door).to_s)
               .gsub("/tmp/oribi.sock", File.join(server.directory, "#{door}.sock"))
    text, files, ports = yield text if block_given?
    @web = Helper::WebServer.new(kind, text, files: files || {}).ready(@web_port, *ports)
  end

  def teardown
    super
    @web&.stop
  end

  def through = keep(Helper::Client.tcp(@web_port))

  # Asks everything, and compares.
  def compare(door, kind, added: ADDED.fetch([door, kind], []),
              except: EXCEPT.fetch([door, kind], {}))
    different = Contract::REQUESTS.keys.flat_map do |name|
      got = Contract.ask(through, name, prefix)
      expected = self.class.direct.fetch(name)
      found = %i[status fields body].reject { |part| got[part] == expected[part] }
      found.map! do |part|
        "#{part}: #{expected[part].inspect[0, 200]}, #{got[part].inspect[0, 200]}"
      end
      found += different_env(expected.env, got.env, added, except, name) if expected.env && got.env
      found.map { |text| "#{name}: #{text}" }
    end
    assert_empty different, "#{kind}, #{door}, in front: #{@web.log}"
  end

  def different_env(expected, got, added, except, name)
    keys = (expected.keys | got.keys) - OF_CONNECTIONS - ["test.keys"]
    wrong = keys.reject do |key|
      expected[key] == got[key] || except[key]&.include?(name) ||
        (added.include?(key) && !expected.key?(key))
    end
    allowed = added + OF_CONNECTIONS + except.keys
    objects = [expected, got].map { |env| env["test.keys"] }
    objects = (objects.first | objects.last) - (objects.first & objects.last)
    wrong.map { |key| "#{key}: #{expected[key].inspect}, #{got[key].inspect}" } +
      (objects - allowed - wrong)
  end

  # A reply that has not ended yet reaches the client.
  def stream
    client = through.write(Contract.line("GET #{prefix}/slow"))
    seen = +""
    seen << client.socket.readpartial(4096) until seen.include?("first\n")
    refute_includes seen, "second"
    wait_until("the app waits") do
      File.open(File.join(server.directory, "fifo"), File::WRONLY | File::NONBLOCK).close || true
    rescue Errno::ENXIO
      nil
    end
    seen << client.socket.readpartial(4096) until seen.include?("second\n")
  end

  def talk
    fields = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    client = through.write(Contract.line("GET #{prefix}/talk", *fields))
    assert_equal 101, client.head.status
    client.write("hello\n")
    assert_equal "<hello>\n", client.take(8)
  end

  # At `/`.
  class AtRootTest < Helper::Case
    extend Served
    include DoorsContract
    PREFIX = ""
  end

  # Under a path of its own.
  class UnderPrefixTest < Helper::Case
    extend Served
    include DoorsContract
    PREFIX = "/app"
  end

  [AtRootTest].each do |tests|
    SERVERS.product(DOORS, ["", "-unix"]).each do |kind, door, socket|
      tests.define_method("test_#{door}#{socket.tr('-', '_')}_behind_#{kind}") do
        behind(kind, "#{door}#{socket}")
        compare(door, kind)
        stream
        talk if door == "http"
      end
    end
  end
end
