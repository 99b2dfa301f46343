# frozen_string_literal: true

require "helper_case"
require "helper_gateways"
require "json"

# Ten apps of one server: which request goes where, and that none of them notices another.
class MountsTest < Helper::Case
  # Says which mount it is (by its environment) and what it was given.
  APP = <<~'RUBY'
    use Rack::Lint
    run(lambda do |env|
      name = ENV.fetch("RACK_ENV")
      case env["PATH_INFO"]
      when "/die" then Process.kill("KILL", Process.pid) && sleep
      when "/wait" then File.read("gate-#{name}")
      # Longer than the front knows the length of.
      when "/stream"
        next [200, { "content-type" => "text/plain" }, (["x" * 1_500_000] * 3).each]
      when "/file"
        body = File.open(__FILE__)
        body.define_singleton_method(:each) { |&block| super(65_536, &block) }
        next [200, { "content-type" => "text/plain" }, body]
      end
      input = env["rack.input"].read.to_s
      words = [name, env["SCRIPT_NAME"], env["PATH_INFO"], env["QUERY_STRING"], env["HTTP_HOST"],
               env["REQUEST_METHOD"], input.bytesize, input.hash == ("b" * input.bytesize).hash]
      [200, { "content-type" => "application/json" }, [JSON.generate(words)]]
    end)
  RUBY

  TEN = <<~'RUBY'
    workers 1
    rollback_window 0
    { "/" => "root", "/shop" => "shop", "/shop/admin" => "admin", "/a~b" => "tilde" }
      .each { |path, name| mount path, name: name, environment: name, rackup: "app.ru" }
    mount "/", name: "api", host: ["api.example", "*.wild.example"], environment: "api",
               rackup: "app.ru"
    mount "/shop", name: "wild", host: "*.example", environment: "wild", rackup: "app.ru"
    mount "/small", environment: "small", body_limit: "10k", rackup: "app.ru"
    mount "/brief", environment: "brief", queue_timeout: 0.1, rackup: "app.ru"
    mount "/whole", environment: "whole", chunked_transfer: false, rackup: "app.ru"
    mount "/taken", rackup: "hijack.ru"
  RUBY

  # Its own server, without the root.
  TWO = <<~'RUBY'
    workers 1
    rollback_window 0
    %w[one two].each { |name| mount "/#{name}", environment: name, rackup: "app.ru" }
  RUBY

  class << self
    def shared
      log = %w[--access-log access --access-log-format json]
      @shared ||= server(TEN, *Helper::Gateways::DOORS, *log)
    end

    def server(mounts, *arguments)
      files = { "app.ru" => "require 'json'\n#{APP}", "hijack.ru" => source("hijack.ru"),
                "oribi.rb" => mounts }
      Helper::Server.new(:oribi, "-C", "oribi.rb", *arguments, app: nil, files: files).ready
    end
  end

  include Helper::Gateways

  # Mount, SCRIPT_NAME and PATH_INFO, or the status; over HTTP, FastCGI and SCGI, which must agree.
  def everywhere(target, host)
    @http ||= connect
    @http.write("GET #{target} HTTP/1.1\r\nHost: #{host}\r\n\r\n")
    http = @http.answer
    fcgi = fastcgi.get(target, HTTP_HOST: host, PATH_INFO: "")
    all = [[http.status, http.body], [fcgi.status, fcgi.body],
           scgi(target, HTTP_HOST: host, PATH_INFO: "")]
    found = all.map { |status, body| status == 200 ? JSON.parse(body).first(3) : status }
    assert_equal 1, found.uniq.size, "#{host}#{target}: #{found}"
    found.first
  end

  WHERE = {
    "/" => ["root", "", "/"], "/x?q" => ["root", "", "/x"], "/shop" => ["shop", "/shop", ""],
    "/shop/" => ["shop", "/shop", "/"], "/shop/x" => ["shop", "/shop", "/x"],
    "/shopping" => ["root", "", "/shopping"], "/Shop/x" => ["root", "", "/Shop/x"],
    "/shop/admin" => ["admin", "/shop/admin", ""], "/shop/admin/" => ["admin", "/shop/admin", "/"],
    "/shop/administrator" => ["shop", "/shop", "/administrator"],
    "/sh%6Fp/%C3%A9%2Fb" => ["shop", "/sh%6Fp", "/%C3%A9%2Fb"],
    "/sh%6fp/%61dmin/x" => ["admin", "/sh%6fp/%61dmin", "/x"],
    "/a%7Eb/c" => ["tilde", "/a%7Eb", "/c"], "/sh%256Fp" => ["root", "", "/sh%256Fp"],
    "/shop/.well-known" => ["shop", "/shop", "/.well-known"], "/shop//x" => ["shop", "/shop", "//x"]
  }.freeze
  # In which one program would see one mount's path and the next another's.
  BOTH = %w[//shop/x /./shop /x/../shop/y /x/%2e%2e/shop /shop/../x /shop/./admin /shop//admin
            /shop%2Fadmin /shop/x/%2E./admin].freeze
  HOSTS = {
    %w[api.example /shop/x] => ["api", "", "/shop/x"], %w[API.Example:8080 /] => ["api", "", "/"],
    %w[a.wild.example /shop] => ["api", "", "/shop"],
    %w[b.example /shop/x] => ["wild", "/shop", "/x"],
    %w[b.example /x] => ["root", "", "/x"], %w[wild.example /shop] => ["wild", "/shop", ""],
    %w[example /shop] => ["shop", "/shop", ""], %w[notapi.example.org /] => ["root", "", "/"]
  }.freeze

  def test_paths_and_hosts_over_every_door
    WHERE.each { |target, wanted| assert_equal wanted, everywhere(target, "test"), target }
    BOTH.each { |target| assert_equal 404, everywhere(target, "test"), target }
    HOSTS.each { |(host, target), wanted| assert_equal wanted, everywhere(target, host), host }
    # What the web server has resolved, and where it has taken the mount's path away.
    told = { "/old" => ["/shop", "/x"], "/shop/x" => ["", "/x"], "//shop//x" => ["/shop", "/x"] }
    told.each do |uri, (script, info)|
      answer = fastcgi.get(uri, SCRIPT_NAME: script, PATH_INFO: info)
      assert_equal ["shop", "/shop", "/x"], JSON.parse(answer.body).first(3), uri
    end
  end

  def test_a_connection_goes_from_mount_to_mount
    client = connect
    asked = %w[/ /shop/a /shop/admin/b /small /shop/c /].cycle.first(30)
    client.write(*asked.map { |path| Client.request("GET #{path}") })
    names = { "/small" => "small", "/shop/admin/b" => "admin", "/" => "root" }
    got = asked.map { client.answer.body }
    assert_equal(asked.map { |path| names.fetch(path, "shop") }, got.map do |body|
                                                                   JSON.parse(body)[0]
                                                                 end)
    client.write(Client.request("HEAD /shop/a"))
    assert_equal [200, nil],
                 [client.answer(bodiless: true).status, client.quiet? ? nil : client.take(1)]
    %w[/shop/x *].zip(%w[shop root]) do |target, name|
      assert_equal [name, "OPTIONS"],
                   JSON.parse(connect.ask("OPTIONS #{target}").body).values_at(0, 5)
    end
  end

  def test_bodies_files_and_streams_of_a_second_mount
    [0, 1000, 300_000, 3_000_000].each do |size|
      answer = connect.ask("POST /shop/in", body: "b" * size)
      assert_equal ["shop", size, true], JSON.parse(answer.body).values_at(0, 6, 7)
    end
    assert_equal "require 'json'\n#{APP}", get("/shop/admin/file").body
    assert_equal 4_500_000, get("/shop/stream").body.size
  end

  def test_connections_that_an_app_of_a_mount_takes
    client = ask_for("/taken/full/echo")
    assert_equal "hello\n", client.take(6)
    client.write("one\n")
    assert_equal "<one>\n", client.take(6)
    socket = ask_for("/taken/full/websocket", "Upgrade: websocket", "Connection: Upgrade",
                     "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
    assert_equal 101, socket.head.status
    socket.write([0x81, 0x83, 0, 0, 0, 0].pack("C6"), "two")
    assert_equal "\x81\x05<two>".b, socket.take(7)
    assert_equal "shop", JSON.parse(get("/shop").body).first
  end

  def test_limits_are_a_mount_s_own
    assert_equal 413, connect.ask("POST /small", body: "b" * 10_241).status
    assert_equal 200, connect.ask("POST /small", body: "b" * 10_240).status
    assert_equal 200, connect.ask("POST /shop", body: "b" * 10_241).status
    assert_equal 413, fastcgi.ask("/small", body: "b" * 10_241).answer.status

    streamed = %w[/whole/stream /shop/stream].map { |path| get(path) }
    assert_equal([nil, "chunked"], streamed.map { |answer| answer["transfer-encoding"] })

    # The only worker of each has a request: what waits is shed in one, and stays in the other.
    held = %w[brief shop].map { |name| [gate("gate-#{name}"), ask_for("/#{name}/wait")] }
    held.each { |gate, _| gate.arrived }
    waiting = ask_for("/shop/behind")
    assert_equal 503, get("/brief/behind").status
    assert waiting.quiet?
    held.each { |gate, client| gate.open && client.answer }
    assert_equal "shop", JSON.parse(waiting.answer.body).first
    wait_for_log(/mount brief: shed, for they waited longer than queue_timeout/)
  end

  def test_a_mount_whose_workers_die_leaves_the_others_untouched
    held = gate("gate-admin")
    other = ask_for("/shop/admin/wait")
    held.arrived
    3.times do
      assert_equal 502, get("/shop/die").status
      assert_equal "root", JSON.parse(get("/").body).first
    end
    held.open
    assert_equal "admin", JSON.parse(other.answer.body).first
    assert_equal "shop", JSON.parse(get("/shop").body).first
  end

  def test_the_log_names_the_mount
    get("/shop/logged", "X-Request-Id: in-shop")
    fastcgi.get("/shop/admin", HTTP_X_REQUEST_ID: "in-admin")
    get("/shop/../nowhere", "X-Request-Id: in-none")
    connect.ask("POST /small/too-much", "X-Request-Id: in-small", body: "b" * 10_241)
    mounts = wait_until("their lines") do
      found = lines("access").to_h { |line| JSON.parse(line).values_at("request_id", "mount") }
      found = found.values_at("in-shop", "in-admin", "in-small", "in-none")
      found if found.first(3).all?
    end
    assert_equal ["shop", "admin", "small", nil], mounts
  end

  def test_a_mount_s_directory_and_gemfile
    self.class.stop
    said = 'run ->(_) { [200, {}, [[Dir.pwd, ENV["BUNDLE_GEMFILE"], defined?(Bundler)].inspect]] }'
    config = "workers 1\nmount '/shop', chdir: 'shop'\nmount '/', rackup: 'app.ru'\n"
    Dir.mktmpdir do |tree|
      FileUtils.mkdir("#{tree}/shop")
      { "shop/config.ru" => said, "shop/Gemfile" => "gem 'rack'\n", "app.ru" => said,
        "oribi.rb" => config }.each { |name, text| File.write("#{tree}/#{name}", text) }
      @server = Helper::Server.new(:oribi, "-C", "oribi.rb", app: nil, tree: tree).ready
    end
    shop = File.join(server.directory, "shop")
    assert_equal [shop, "#{shop}/Gemfile", "constant"].inspect, get("/shop").body
    assert_equal [server.directory, nil, nil].inspect, get("/").body
  end

  def test_without_a_mount_at_the_root_there_is_nothing_there
    self.class.stop
    @server = self.class.server(TWO, *DOORS)
    assert_equal ["two", "/two", "/x"], everywhere("/two/x", "test")
    %w[/ /three /onetwo].each { |target| assert_equal 404, everywhere(target, "test") }
    client = connect
    assert_equal [404, 404],
                 [client.ask("OPTIONS *").status, client.ask("POST /x", body: "b").status]
    # Nothing is wrong with the connection.
    assert_equal "one", JSON.parse(client.get("/one").body).first
    # Only what could be meant for another mount is refused.
    assert_equal ["one", "/one", "/../x"], everywhere("/one/../x", "test")
    assert_equal 404, everywhere("/one/../two/x", "test")
  end
end
