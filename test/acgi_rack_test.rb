# frozen_string_literal: true

require "digest"
require "helper_acgi"
require "helper_case"

# FastCGI and Rack of the server in plain Ruby.
class AcgiRackTest < Minitest::Test
  extend Helper::SharesHome
  include Helper

  F = Helper::FastCgi

  APP = <<~'RUBY'
    require "digest"
    use Rack::Lint
    run(lambda do |env|
      text = { "content-type" => "text/plain" }
      case env["PATH_INFO"]
      when "/digest"
        input = env["rack.input"]
        first = input.read(3)
        # Rack 3's judge lets nobody rewind.
        again = input.respond_to?(:rewind)
        input.rewind if again
        whole = "#{first unless again}#{input.read}"
        [200, text, [Digest::SHA256.hexdigest(whole), " #{first}"]]
      when "/parts" then [200, text, Enumerator.new { |out| 100.times { |i| out << i.to_s * 1000 } }]
      when "/call" then [200, text, ->(stream) { stream.write("called"); stream.close }]
      when "/cookies"
        values = %w[a=1 b=2]
        [200, { "set-cookie" => Rack.release < "3" ? values.join("\n") : values }, []]
      when "/errors"
        env["rack.errors"].puts("to the log")
        env["rack.errors"].write("and more")
        env["rack.errors"].flush
        [200, text, ["told"]]
      when "/raise" then raise "out of order"
      when "/late" then [200, text, Enumerator.new { |out| out << "begun"; raise "too late" }]
      when "/status" then [nil, {}, []]
      when "/injection" then [200, { "x-one" => "a\r\nSet-Cookie: b" }, []]
      else [200, text, [Marshal.dump(env.select { |_, value| case value when String, true, false then true end })]]
      end
    end)
  RUBY

  def self.home
    @home ||= Acgi.new({ "config.ru" => APP, "oribi.rb" => "workers 2\n" }).tap(&:serve)
  end

  def home = self.class.home

  def teardown
    @clients&.each(&:close)
    @own&.clean_up
  end

  def connect = home.connect.tap { |client| (@clients ||= []) << client }

  def env(target = "/", **params)
    Marshal.load(home.get(target, **params).body) # rubocop:disable Security/MarshalLoad
  end

  def begin_request(id: 1, role: F::RESPONDER)
    F.record(F::BEGIN_REQUEST, id, [role, 0].pack("nCx5"))
  end

  def test_env
    env = env("/a%20b?c=d", REQUEST_URI: "/a%20b?c=d", PATH_INFO: "/a b", HTTP_X_ONE: "1",
                            HTTPS: "on", HTTP_PROXY: "http://p.example", CONTENT_LENGTH: "")
    assert_equal ["GET", "", "/a%20b", "c=d", "1", "https", "192.0.2.1", nil, nil],
                 env.values_at("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING",
                               "HTTP_X_ONE", "rack.url_scheme", "REMOTE_ADDR", "HTTP_PROXY",
                               "CONTENT_LENGTH")
    assert_equal [false, true, false],
                 env.values_at("rack.multithread", "rack.multiprocess", "rack.run_once")
  end

  # What was asked for, what the web server made of it, and what the app is to see.
  PLACES = [
    ["/", "", "/", "", "/"],
    ["/app/x%2Fy", "/app", "/x/y", "/app", "/x%2Fy"],
    ["/dir/", "/dir/index.cgi", "", "/dir", "/"],
    ["/dir/x", "/dir/index.cgi", "/x", "/dir", "/x"],
    ["/dir/index.cgi", "/dir/index.cgi", "", "/dir/index.cgi", ""],
    ["/dir/index.cgi/a%20b", "/dir/index.cgi", "/a b", "/dir/index.cgi", "/a%20b"],
    ["/index.cgi/x", "/index.cgi", "/x", "/index.cgi", "/x"],
    ["/%61pp/x", "/app", "/x", "/%61pp", "/x"],
    # Slashes, and dots that nobody has looked at.
    ["/app/", "/app/", "", "/app", "/"],
    ["/dir/../x", "/dir/index.cgi", "", "/dir/index.cgi", ""],
    ["/app/x", "/app", "/app/x", "", "/app/x"],
    # Rewritten.
    ["/old", "/new", "/a b", "/new", "/a%20b"],
    # Sends no PATH_INFO.
    ["/app/a%20b", "/app/a b", nil, "", "/app/a%20b"],
    ["http://test/whole", "", "/whole", "", "/whole"]
  ].freeze

  def test_places
    PLACES.each do |uri, name, path, *expected|
      params = F.params("/", REQUEST_URI: uri, SCRIPT_NAME: name, PATH_INFO: path).compact
      client = connect.write(F.request(params))
      env = Marshal.load(client.reply.answer.body) # rubocop:disable Security/MarshalLoad
      assert_equal expected, env.values_at("SCRIPT_NAME", "PATH_INFO"), [uri, name, path].inspect
    end
  end

  def test_bodies
    [0, 5, 100_000, 2_000_000].each do |size|
      body = Random.bytes(size)
      expected = "#{Digest::SHA256.hexdigest(body)} #{body[0, 3]}".b
      assert_equal expected, home.get("/digest", body: body).body.b, size
    end
  end

  def test_replies
    assert_equal (0...100).map { |i| i.to_s * 1000 }.join, home.get("/parts").body
    assert_equal %w[a=1 b=2], home.get("/cookies")["set-cookie"]
    assert_equal "called", home.get("/call").body if rack >= 3
  end

  def test_errors
    reply = home.ask("/errors")
    assert_equal ["told", "to the log\nand more"], [reply.answer.body, reply.errors]
    reply = home.ask("/raise")
    assert_equal [500, "Internal Server Error\n"], reply.answer.to_a.values_at(1, 3)
    assert_includes reply.errors, "out of order (RuntimeError)"
    %w[/status /injection].each { |path| assert_equal 500, home.get(path).status, path }
  end

  def test_half_a_reply_is_no_reply
    client = connect.write(F.request(F.params("/late")))
    assert_raises(EOFError) { client.reply }
  end

  def test_params_in_pieces
    params = F.params("/x?#{'y' * 200}", HTTP_LONG: "z" * 1000)
    parts = F.pairs(params).scan(/.{1,7}/mn)
    records = parts.map.with_index { |part, i| F.record(F::PARAMS, 1, part, padding: i % 8) }
    bytes = [begin_request, *records, F.record(F::PARAMS, 1), F.record(F::INPUT, 1)].join
    client = connect
    # Cut anywhere.
    bytes.scan(/.{1,11}/mn) { |part| client.write(part) }
    env = Marshal.load(client.reply.answer.body) # rubocop:disable Security/MarshalLoad
    assert_equal ["/x", "z" * 1000], env.values_at("PATH_INFO", "HTTP_LONG")
    assert client.ended?
  end

  def test_management
    client = connect.write(F.record(F::GET_VALUES, 0, F.pairs("FCGI_MPXS_CONNS" => "",
                                                              "FCGI_MAX_CONNS" => "", "X" => "")),
                           F.record(77, 0, "what"))
    record = client.record
    assert_equal F::GET_VALUES_RESULT, record.kind
    assert_equal F.pairs("FCGI_MPXS_CONNS" => "0", "FCGI_MAX_CONNS" => "2"), record.content
    assert_equal [F::UNKNOWN_TYPE, [77].pack("Cx7")], client.record.to_a.values_at(0, 2)
    assert_equal 200, client.get("/").status
  end

  def test_what_is_not_answered
    reply = connect.write(begin_request(role: 2)).reply
    assert_equal [0, 3], [reply.status, reply.protocol]
    client = connect.write(begin_request, begin_request(id: 2))
    assert_equal 1, client.reply(2).protocol
    client.write(F.record(F::ABORT_REQUEST, 1))
    aborted = client.reply(1)
    assert_equal [0, ""], [aborted.protocol, aborted.out]
    [{ "SCRIPT_NAME" => "/" }, F.params("/", CONTENT_LENGTH: "x")].each do |params|
      assert_equal 500, connect.write(F.request(params)).reply.answer.status
    end
    cut = begin_request << F.record(F::PARAMS, 1, "\x7f") << F.record(F::PARAMS, 1)
    ["GET / HTTP/1.0\r\n\r\n", cut].each { |bytes| assert connect.write(bytes).ended? }
    assert_equal 200, home.get("/").status
  end

  def test_without_rack
    @own = Acgi.new({ "config.ru" => <<~'RUBY' })
      class Loud
        def initialize(app, mark:) = (@app, @mark = app, mark)
        def call(env) = @app.call(env).tap { |reply| reply[2] = reply[2].map { |part| part + @mark } }
      end
      use Loud, mark: "!"
      map("/one") { run ->(env) { [200, {}, ["#{env['SCRIPT_NAME']} #{env['PATH_INFO']}"]] } }
      run ->(env) { [200, {}, ["other #{env['PATH_INFO']}"]] }
      __END__
      nothing
    RUBY
    @own.serve(env: { "RUBYOPT" => "--disable=gems" })
    assert_equal "/one /two!", @own.get("/one/two").body
    assert_equal "other /oneness!", @own.get("/oneness").body
    @own.write("config.ru", "use Rack::Static\nrun ->(env) { [200, {}, []] }\n")
    wait_until("it is said") { @own.log.include?("Rack is not installed here") }
  end
end
