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
  DOORS = %w[http fastcgi scgi].freeze

  # Keys of env that may be there beside those over HTTP, by door and web server.
  X_FORWARDED = %w[HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_HOST HTTP_X_FORWARDED_PROTO].freeze
  LIGHTTPD = %w[DOCUMENT_ROOT GATEWAY_INTERFACE PATH_TRANSLATED REDIRECT_STATUS SCRIPT_FILENAME
                SERVER_ADDR].freeze
  APACHE = %w[CONTEXT_DOCUMENT_ROOT CONTEXT_PREFIX DOCUMENT_ROOT PATH SCRIPT_FILENAME SERVER_ADDR
              SERVER_ADMIN SERVER_SIGNATURE].freeze
  STOCK = %w[DOCUMENT_ROOT DOCUMENT_URI REQUEST_SCHEME].freeze
  ADDED = {
    ["http", :nginx] => [*X_FORWARDED, "HTTP_X_REAL_IP"],
    ["http", :lighttpd] => [*X_FORWARDED, "HTTP_X_HOST", "HTTP_CONNECTION"],
    ["http", :apache] => [*X_FORWARDED, "HTTP_X_FORWARDED_SERVER", "HTTP_CONNECTION"],
    ["fastcgi", :nginx] => [],
    ["fastcgi", :lighttpd] => LIGHTTPD,
    ["fastcgi", :apache] => [*APACHE, "GATEWAY_INTERFACE"],
    ["scgi", :nginx] => ["SCGI"],
    ["scgi", :lighttpd] => [*LIGHTTPD, "SCGI"],
    ["scgi", :apache] => [*APACHE, "SCGI"],
    ["fastcgi", :stock] => [*STOCK, "GATEWAY_INTERFACE", "REDIRECT_STATUS", "REMOTE_USER",
                            "SERVER_ADDR"],
    ["scgi", :stock] => [*STOCK, "SCGI"]
  }.freeze
  # Keys of env that may have other values or be missing, and in which requests.
  ALL = Contract::REQUESTS.keys.freeze
  GATEWAY = { "rack.hijack" => ALL, "rack.hijack?" => ALL }.freeze
  # These resolve paths before they look where to send them, and say so by PATH_INFO or SCRIPT_NAME.
  RESOLVED = ["dot segments", "two slashes"].freeze
  THEIRS = GATEWAY.merge("SERVER_SOFTWARE" => ALL, "PATH_INFO" => RESOLVED).freeze
  EXCEPT = {
    ["http", :nginx] => {},
    ["http", :lighttpd] => { "CONTENT_LENGTH" => %w[DELETE OPTIONS] },
    ["http", :apache] => {},
    ["fastcgi", :nginx] => GATEWAY,
    ["fastcgi", :lighttpd] => THEIRS,
    ["fastcgi", :apache] => THEIRS,
    ["scgi", :nginx] => GATEWAY,
    ["scgi", :lighttpd] => THEIRS,
    ["scgi", :apache] => THEIRS,
    # Debian's files of parameters leave the port out of HTTP_HOST.
    ["fastcgi", :stock] => THEIRS.merge("HTTP_HOST" => ALL, "SERVER_PORT" => ALL),
    ["scgi", :stock] => THEIRS.merge("HTTP_HOST" => ALL, "SERVER_PORT" => ALL)
  }.freeze
  # Requests that the web server refuses, and how.
  REFUSED = { ["scgi", :apache] => { "chunks" => 411 } }.freeze

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
      @direct ||= Contract.ask_all(port("http"), self::PREFIX)
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
    text = yield text if block_given?
    text = Helper::WebServer.with_tls(kind, text, @tls_port = free_port)
    @web = Helper::WebServer.new(kind, text, files: Helper::WebServer.certificate)
    @web.ready(@web_port, @tls_port)
  end

  def teardown
    super
    @web&.stop
  end

  def through = keep(Helper::Client.tcp(@web_port))

  # Asks everything, and compares.
  def compare(door, kind, added: ADDED.fetch([door, kind]), except: EXCEPT.fetch([door, kind]))
    refused = REFUSED.fetch([door, kind], {})
    rules = Contract::Rules.new(added, except, refused)
    different = rules.differences(self.class.direct) do |name|
      Contract.ask(through, name, prefix)
    end
    assert_empty different, "#{kind}, #{door}: #{@web.log}"
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

  # Whoever comes over TLS is told to have come over TLS.
  def encrypted
    address = "https://127.0.0.1:#{@tls_port}#{prefix}/env?a"
    output, status = curl("--insecure", "--header", Contract::HOST, address)
    assert_equal 0, status, output
    told = Marshal.load(output) # rubocop:disable Security/MarshalLoad
    names = %w[rack.url_scheme HTTPS HTTP_HOST SERVER_PORT REMOTE_ADDR SCRIPT_NAME PATH_INFO]
    assert_equal ["https", "on", "shop.example:8042", "8042", "127.0.0.1", prefix, "/env"],
                 told.values_at(*names)
  end

  def talk
    fields = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    client = through.write(Contract.line("GET #{prefix}/talk", *fields))
    assert_equal 101, client.head.status
    client.write("hello\n")
    assert_equal "<hello>\n", client.take(8)
  end

  # The page that people read.
  class PageTest < Minitest::Test
    def test_every_difference_is_on_the_page
      page = File.read(File.join(Helper::ROOT, "docs/doors.md"))
      names = ADDED.values.flatten + EXCEPT.values.flat_map(&:keys)
      assert_empty(names.uniq.reject { |name| page.match?(/\b#{Regexp.escape(name)}/) })
    end
  end

  # At `/`.
  class AtRootTest < Helper::Case
    extend Served
    include DoorsContract
    PREFIX = ""

    # What is broken everywhere would be the same everywhere.
    def test_directly_nothing_fails_that_should_not
      failed = self.class.direct.select { |_, seen| seen.status == 500 }
      assert_equal ["an exception"], failed.keys, server.log
      told = self.class.direct.values.count(&:env)
      assert_operator told, :>, 20
    end
  end

  # Under a path of its own.
  class UnderPrefixTest < Helper::Case
    extend Served
    include DoorsContract
    PREFIX = "/app"
  end

  [AtRootTest, UnderPrefixTest].each do |tests|
    SERVERS.product(DOORS, ["", "-unix"]).each do |kind, door, socket|
      tests.define_method("test_#{door}#{socket.tr('-', '_')}_behind_#{kind}") do
        behind(kind, "#{door}#{socket}")
        compare(door, kind)
        encrypted
        stream
        talk if door == "http"
      end
    end
    # As nginx's own files of parameters say it: the whole path is SCRIPT_NAME or DOCUMENT_URI.
    %w[fastcgi scgi].each do |door|
      tests.define_method("test_#{door}_behind_nginx_with_its_stock_parameters") do
        stock = "include /etc/nginx/#{door}_params;"
        behind(:nginx, door) do |text|
          text.gsub(/^ +#{door}_param .*\n/, "").sub(/^ +#{door}_pass/) { "#{stock}#{_1}" }
        end
        compare(door, :stock)
      end
    end
    # Apache also says it in other ways, if it is asked to.
    %w[dirname full].each do |name|
      tests.define_method("test_fastcgi_behind_apache_with_pathinfo_#{name}") do
        behind(:apache, "fastcgi") do |text|
          "#{text}LoadModule env_module ${MODULES}/mod_env.so\nSetEnv proxy-fcgi-pathinfo #{name}\n"
        end
        compare("fastcgi", :apache, added: [*APACHE, "GATEWAY_INTERFACE", "PATH_TRANSLATED",
                                            "proxy-fcgi-pathinfo"])
      end
    end
  end

  # With SetHandler Apache splits the path by its files, so the prefix must be known.
  UnderPrefixTest.define_method(:test_fastcgi_behind_apache_by_set_handler) do
    behind(:apache, "fastcgi") do |text|
      text.sub(/^ProxyPass .*\n/, "").sub("</Location>") do |close|
        "SetHandler proxy:fcgi://127.0.0.1:#{self.class.port('fastcgi')}\n#{close}"
      end
    end
    compare("fastcgi", :apache, added: [*APACHE, "GATEWAY_INTERFACE", "PATH_TRANSLATED",
                                        "proxy-nokeepalive"])
  end
end
