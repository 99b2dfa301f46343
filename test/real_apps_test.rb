# frozen_string_literal: true

require "helper_case"
require "digest"
require "json"
require "websocket/driver"

# Applications as people write them, with the frameworks that Debian has.
module RealApps
  EXAMPLE = File.join(Helper::ROOT, "examples/rails")

  # A form with one file in it, as browsers send it.
  module Form
    BOUNDARY = "----a-boundary"

    module_function

    def type = "Content-Type: multipart/form-data; boundary=#{BOUNDARY}"

    def body(fields, name, filename, content)
      parts = fields.map do |field, value|
        "--#{BOUNDARY}\r\nContent-Disposition: form-data; name=\"#{field}\"\r\n\r\n#{value}\r\n"
      end
      file = "--#{BOUNDARY}\r\nContent-Disposition: form-data; name=\"#{name}\"; " \
             "filename=\"#{filename}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
      "#{parts.join}#{file}".b << content << "\r\n--#{BOUNDARY}--\r\n"
    end
  end

  # A WebSocket by the library that Action Cable itself uses.
  class Talk
    attr_reader :url

    def initialize(client, port)
      @client = client
      @url = "ws://127.0.0.1:#{port}/cable"
      @messages = []
      @driver = WebSocket::Driver.client(self, protocols: ["actioncable-v1-json"])
      @driver.set_header("Origin", "http://127.0.0.1:#{port}")
      @driver.on(:message) { |event| @messages << JSON.parse(event.data) }
      @driver.on(:close) { |event| @closed = event }
      @driver.start
    end

    # For the driver.
    def write(data) = @client.write(data)

    def say(text) = send("message", data: JSON.generate(action: "say", text: text))

    def subscribe
      until_comes { |message| message["type"] == "welcome" }
      send("subscribe")
      until_comes { |message| message["type"] == "confirm_subscription" }
    end

    def hear = until_comes { |message| message["message"] }.dig("message", "text")

    # Closes with the closing handshake.
    def close
      @driver.close
      read until @closed
    end

    private

    def send(command, **more)
      identifier = JSON.generate(channel: "TalkChannel")
      @driver.text(JSON.generate(command: command, identifier: identifier, **more))
    end

    # Messages come in their order; pings in between are nobody's.
    def until_comes
      loop do
        while (message = @messages.shift)
          return message if yield message
        end
        read
      end
    end

    def read
      socket = @client.socket
      raise Minitest::Assertion, "nothing more came" unless socket.wait_readable(Helper::PATIENCE)

      @driver.parse(socket.readpartial(64 * 1024))
    end
  end

  # examples/rails.
  class RailsTest < Helper::Case
    def serve(*arguments)
      start("rails.ru", "-w", "1", "-t", "4", *arguments,
            env: { "RAILS_EXAMPLE" => EXAMPLE, "RACK_ENV" => "production" })
    end

    def cookies(answer)
      "Cookie: #{Array(answer['set-cookie']).map { |set| set[/\A[^;]+/] }.join('; ')}"
    end

    def test_session_and_upload
      serve
      client = connect
      first = client.get("/")
      assert_match(/been here 1 time\./, first.body)
      second = client.get("/", cookies(first))
      assert_match(/been here 2 times\./, second.body)
      assert_match(/been here 1 time\./, client.get("/").body)

      content = Random.new(1).bytes(700_000)
      token = second.body[/name="authenticity_token" value="([^"]+)"/, 1]
      form = Form.body({ "authenticity_token" => token }, "thing", "a \u00e4.bin", content)
      answer = client.ask("POST /things", cookies(second), Form.type, body: form)
      assert_equal [303, "/"], [answer.status, answer["location"][%r{\Ahttp://test(/.*)\z}, 1]]
      page = client.get("/", cookies(answer)).body.force_encoding("UTF-8")
      sum = Digest::SHA256.hexdigest(content)
      assert_includes page, "a \u00e4.bin, 700000 bytes, SHA-256 #{sum}"
      forged = Form.body({ "authenticity_token" => "x" }, "thing", "a", "")
      assert_equal 422, client.ask("POST /things", cookies(second), Form.type, body: forged).status
    end

    def test_a_stream_comes_as_it_is_written
      serve
      client = ask_for("/countdown?from=1")
      head = client.head
      assert_equal ["chunked", "text/event-stream"],
                   [head["transfer-encoding"], head["content-type"][/\A[^;]+/]]
      assert_equal "data: 1\n\n", client.chunk
      assert client.quiet?, "the second line is a second away"
      assert_equal ["data: 0\n\n", nil], [client.chunk, client.chunk]
      assert_equal 200, client.get("/").status
    end

    def test_action_cable
      serve
      one, other = Array.new(2) { Talk.new(connect, port).tap(&:subscribe) }
      one.say("hello \u00e4")
      assert_equal ["hello \u00e4"] * 2, [one.hear, other.hear]
      # Four threads, and more sockets than that: they hold none.
      more = Array.new(6) { Talk.new(connect, port).tap(&:subscribe) }
      more.last.say("x" * 400)
      assert_equal ["x" * 400] * 8, [one, other, *more].map(&:hear)
      assert_equal 200, get("/").status
      [one, other, *more].each(&:close)
    end

    def test_its_log_and_ours_name_the_same_request
      serve("--access-log", "access", "--access-log-format", "json")
      answer = get("/")
      line = JSON.parse(wait_for_lines("access", 1).first)
      assert_equal answer["x-request-id"], line["request_id"]
      wait_for_log(%r{^\[#{line['request_id']}\] Started GET "/"|\[#{line['request_id']}\]})
    end
  end

  # bin/rails server -u oribi.
  class RailsServerTest < Helper::Case
    def setup
      @server = Helper::Server.new(:rails, tree: EXAMPLE, app: nil,
                                           env: { "RAILS_ENV" => "production",
                                                  "PIDFILE" => "tmp/pids/server.pid" }).ready
    end

    def pid_file = File.join(@server.directory, "tmp/pids/server.pid")

    def test_a_new_generation_minds_no_pid_file
      assert_equal @server.pid, File.read(pid_file).to_i
      assert_match(/been here 1 time/, get("/").body)
      @server.signal("HUP")
      @server.workers(2, generation: 2)
      wait_for_log("generation 2 serves")
      assert_match(/been here 1 time/, get("/").body)
      assert_equal @server.pid, File.read(pid_file).to_i
      @server.signal("TERM")
      assert_equal 0, @server.wait
      refute_path_exists pid_file
    end
  end

  # Smaller frameworks.
  class FrameworksTest < Helper::Case
    def test_sinatra
      start("sinatra.ru", "-w", "1", "-t", "2")
      client = connect
      first = client.get("/")
      assert_equal "visit 1", first.body
      assert_equal "visit 2", client.get("/", "Cookie: #{first['set-cookie'][/\A[^;]+/]}").body
      assert_equal "a b 14", client.get("/say/a%20b?times=7").body
      form = Form.body({}, "file", "f.txt", "x" * 300_000)
      assert_equal "f.txt 300000", client.ask("POST /file", Form.type, body: form).body
      answer = client.get("/halt")
      assert_equal [418, "tea", "short"], [answer.status, answer["x-pot"], answer.body]
      answer = client.get("/boom")
      assert_equal [500, "sorry"], [answer.status, answer.body]
      assert_equal 404, client.get("/nowhere").status
    end

    def test_a_stream_of_sinatra
      start("sinatra.ru", "-w", "1", "-t", "2")
      door = gate("gate")
      client = ask_for("/stream")
      client.head
      assert_equal "one ", client.chunk
      door.open
      assert_equal ["two", nil], [client.chunk, client.chunk]
    end

    # Debian 12 has Grape, 13 neither, later ones Roda.
    def self.installed?(name) = Gem::Specification.any? { |gem| gem.name == name }

    def test_grape_is_here_where_it_should_be
      assert self.class.installed?("grape") || RUBY_VERSION >= "3.2"
    end

    if installed?("grape")
      def test_grape
        start("grape.ru", "-w", "1")
        client = connect
        assert_equal({ "hello" => "you" }, JSON.parse(client.get("/hello?name=you").body))
        json = "Content-Type: application/json"
        answer = client.ask("POST /double", json, body: '{"number": 21}')
        assert_equal [201, { "double" => 42 }], [answer.status, JSON.parse(answer.body)]
        assert_equal 400, client.ask("POST /double", json, body: "{}").status
        assert_equal 400, client.ask("POST /double", json, body: "{").status
        assert_equal 422, client.get("/fault").status
        assert_equal 405, client.ask("DELETE /hello").status
      end
    end

    if installed?("roda")
      def test_roda
        start("roda.ru", "-w", "1")
        client = connect
        assert_equal "root", client.get("/").body
        assert_equal({ "item" => 7 }, JSON.parse(client.get("/items/7").body))
        form = "Content-Type: application/x-www-form-urlencoded"
        assert_equal "7: a b", client.ask("POST /items/7", form, body: "text=a+b").body
        assert_equal "0 1 2 ", client.get("/stream").body
        assert_equal 403, client.get("/halt").status
        assert_equal 404, client.get("/nowhere").status
      end
    end
  end
end
