# frozen_string_literal: true

require "helper_case"
require "oribi/version"

# The env, complete and exact.
class EnvTest < Helper::Case
  serve "rack.ru", "-w", "2"

  BINARY = "ASCII-8BIT"

  # What the server was given, and the key the test could not know.
  def env(answer)
    found = unpack(answer)
    assert_equal "Float", found.fetch("oribi.queue_time").first
    assert_operator Float(found.delete("oribi.queue_time").last), :>=, 0
    found
  end

  # What every env holds; Strings are binary.
  def always(client)
    address = client.socket.local_address
    { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/env", "QUERY_STRING" => "",
      "REQUEST_URI" => "/env", "SERVER_NAME" => "test", "SERVER_PORT" => "80",
      "SERVER_PROTOCOL" => "HTTP/1.1", "HTTP_VERSION" => "HTTP/1.1", "HTTP_HOST" => "test",
      "SERVER_SOFTWARE" => "oribi/#{Oribi::VERSION}", "REMOTE_ADDR" => address.ip_address,
      "REMOTE_PORT" => address.ip_port.to_s, "rack.url_scheme" => "http" }
  end

  def others(multithread: false, multiprocess: true)
    version = Helper.rack < 3 ? { "rack.version" => ["Array", "[1, 3]"] } : {}
    version.merge("rack.errors" => ["IO", "#<IO:<STDERR>>"],
                  "rack.multithread" => boolean(multithread),
                  "rack.multiprocess" => boolean(multiprocess),
                  "rack.run_once" => boolean(false), "rack.hijack?" => boolean(true),
                  "rack.hijack" => ["Oribi::Hijack", "#<Oribi::Hijack>"],
                  "rack.response_finished" => ["Array", "[]"], "rack.after_reply" => %w[Array []],
                  "oribi.timeout" => ["Oribi::Timeout", "#<Oribi::Timeout>"])
  end

  def boolean(value) = [value.class.name, value.inspect]

  def assert_env(client, answer, changed = {}, dropped: [], **processes)
    found = env(answer)
    input = found.delete("rack.input")
    refute_nil input
    expected = always(client).merge(changed).transform_values { |value| [value.b, BINARY] }
    dropped.each { |key| expected.delete(key) }
    assert_equal expected.merge(others(**processes)).sort.to_h, found.sort.to_h
  end

  def test_the_whole_env_of_a_plain_get
    client = connect
    assert_env(client, client.get("/env"))
  end

  def test_the_whole_env_of_a_post
    client = connect
    answer = client.ask("POST /env/a?b=c&d", "Content-Type: text/x-test", "User-Agent: me",
                        "X-Other: 1", body: "body")
    assert_env(client, answer,
               { "REQUEST_METHOD" => "POST", "PATH_INFO" => "/env/a", "QUERY_STRING" => "b=c&d",
                 "REQUEST_URI" => "/env/a?b=c&d", "CONTENT_TYPE" => "text/x-test",
                 "CONTENT_LENGTH" => "4", "HTTP_USER_AGENT" => "me", "HTTP_X_OTHER" => "1" })
  end

  def test_a_chunked_body_has_a_length_and_no_encoding
    client = connect
    client.write(Client.request("PUT /env", "Transfer-Encoding: chunked"), "3\r\nabc\r\n0\r\n\r\n")
    assert_env(client, client.answer, { "REQUEST_METHOD" => "PUT", "CONTENT_LENGTH" => "3" })
  end

  def test_http_1_0_without_host_names_the_listener
    client = connect
    client.write("GET /env HTTP/1.0\r\n\r\n")
    assert_env(client, client.answer,
               { "SERVER_PROTOCOL" => "HTTP/1.0", "HTTP_VERSION" => "HTTP/1.0",
                 "SERVER_NAME" => "127.0.0.1", "SERVER_PORT" => port.to_s }, dropped: ["HTTP_HOST"])
  end

  def test_server_name_and_port_are_what_the_client_asked_for
    { "example.org" => %w[example.org 80], "example.org:8080" => %w[example.org 8080],
      "[::1]" => %w[[::1] 80], "[2001:db8::1]:9292" => %w[[2001:db8::1] 9292],
      "EXAMPLE.org:1" => %w[EXAMPLE.org 1] }.each do |host, (name, number)|
      client = connect
      assert_env(client, client.get("/env", "Host: #{host}"),
                 { "HTTP_HOST" => host, "SERVER_NAME" => name, "SERVER_PORT" => number })
    end
  end

  def test_paths_and_queries_arrive_raw
    { "/env/a%2Fb%20c" => ["/env/a%2Fb%20c", ""], "/env//x/../y/." => ["/env//x/../y/.", ""],
      "/env/+;=:@!$&'()*,~" => ["/env/+;=:@!$&'()*,~", ""], "/env/?" => ["/env/", ""],
      "/env/?a=%20+&b[]=1&b[]=2&&c" => ["/env/", "a=%20+&b[]=1&b[]=2&&c"],
      "/env/?a=?b=/" => ["/env/", "a=?b=/"] }.each do |target, (path, query)|
      client = connect
      assert_env(client, client.get(target),
                 { "PATH_INFO" => path, "QUERY_STRING" => query, "REQUEST_URI" => target })
    end
  end

  def test_an_absolute_target
    client = connect
    assert_env(client, client.get("http://other:81/env?q"),
               { "SERVER_NAME" => "other", "SERVER_PORT" => "81", "QUERY_STRING" => "q",
                 "HTTP_HOST" => "other:81", "REQUEST_URI" => "http://other:81/env?q" })
  end

  def test_options_for_the_server_as_a_whole
    client = connect
    path = rack < 3.1 ? "" : "*"
    assert_env(client, client.ask("OPTIONS *"),
               { "REQUEST_METHOD" => "OPTIONS", "PATH_INFO" => path, "REQUEST_URI" => "*" })
  end

  def test_headers_that_come_twice_are_joined
    client = connect
    answer = client.get("/env", "X-A: 1", "Accept: text/a", "Cookie: a=1", "x-a: 2", "X-B: 3",
                        "Accept: text/b", "cookie: b=2; c=3", "X-A:")
    assert_env(client, answer,
               { "HTTP_X_A" => "1, 2, ", "HTTP_ACCEPT" => "text/a, text/b", "HTTP_X_B" => "3",
                 "HTTP_COOKIE" => "a=1; b=2; c=3" })
  end

  def test_names_that_could_pass_for_others_are_dropped
    client = connect
    answer = client.get("/env", "X_Forwarded_For: 1.2.3.4", "Proxy: http://evil",
                        "Content_Length: 9", "X-Fine: 1", "Proxy-Connection: keep-alive",
                        "Version: HTTP/9")
    assert_env(client, answer,
               { "HTTP_X_FINE" => "1", "HTTP_PROXY_CONNECTION" => "keep-alive" })
  end

  def test_no_header_sets_a_variable_of_the_servers
    names = %w[Request-Method Script-Name Path-Info Query-String Server-Name Remote-Addr Remote-User
               Auth-Type Https Gateway-Interface rack.input rack.url_scheme HTTP-Host Content-Type-]
    client = connect
    found = env(client.get("/env", *names.map { |name| "#{name}: evil" }))
    evil = found.filter_map { |key, (value, _)| key if value == "evil" }
    assert(evil.all? { |key| key.start_with?("HTTP_") }, evil.inspect)
    # The one with an underscore is dropped.
    assert_equal names.size - 1, evil.size
    assert_equal "test", found["HTTP_HOST"].first
  end

  def test_values_are_bytes_without_the_space_around
    client = connect
    answer = client.get("/env", "X-Bytes: \xC3\xA4\xFF".b, "X-Space: \t a  b \t", "X-Empty: ",
                        "X-#{'Long-' * 50}: 1")
    assert_env(client, answer,
               { "HTTP_X_BYTES" => "\xC3\xA4\xFF", "HTTP_X_SPACE" => "a  b", "HTTP_X_EMPTY" => "",
                 "HTTP_X_#{'LONG_' * 50}" => "1" })
  end

  def test_keys_are_frozen
    assert_equal [true], unpack(get("/keys")).map(&:first).uniq
  end

  def test_an_app_that_spoils_its_env_spoils_no_other
    client = connect
    10.times do
      assert_equal 200, client.get("/spoil").status
      assert_env(client, client.get("/env"))
    end
  end

  def test_concurrency_is_what_the_command_line_says
    { %w[-w 1 -t 1] => [false, false], %w[-w 2 -t 1] => [false, true],
      %w[-w 1 -t 3] => [true, false] }.each do |arguments, (threads, processes)|
      start("rack.ru", *arguments)
      client = connect
      assert_env(client, client.get("/env"), multithread: threads, multiprocess: processes)
      @server.clean_up
    end
    @server = nil
  end

  def test_ipv6_and_unix_clients
    directory = Dir.mktmpdir("oribi-rack")
    path = File.join(directory, "a.sock")
    start("rack.ru", "-w", "2", "-b", "unix://#{path}", bind: "tcp://[::1]:0")
    client = keep(Client.tcp(port, "::1"))
    assert_env(client, client.get("/env"), { "REMOTE_ADDR" => "::1" })
    client.write("GET /env HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    found = env(client.answer)
    assert_equal [["::1", BINARY], [port.to_s, BINARY]],
                 found.values_at("SERVER_NAME", "SERVER_PORT")

    client = keep(Client.unix(path))
    client.write("GET /env HTTP/1.0\r\n\r\n")
    names = %w[SERVER_NAME SERVER_PORT REMOTE_ADDR REMOTE_PORT]
    assert_equal ["localhost", "80", "", ""], env(client.answer).values_at(*names).map(&:first)
  ensure
    FileUtils.remove_entry(directory)
  end
end

# rack.input and rack.errors, and the time in the queue.
class InputTest < Helper::Case
  serve "rack.ru", "-w", "1"

  BODY = "first\nsecond \xFF\nlast".b

  def ask(path, body) = unpack(connect.ask("POST #{path}", body: body))

  def test_read
    assert_equal [BODY, "", nil], ask("/read", BODY)
    assert_equal ["", "fir", BODY[3..], nil], ask("/length", BODY)
    assert_equal [true, "fir", BODY[3..], nil, ""], ask("/buffer", BODY)
  end

  def test_lines
    lines = ["first\n", "second \xFF\n".b, "last"]
    assert_equal lines + [nil], ask("/gets", BODY)
    assert_equal lines, ask("/each", BODY)
  end

  def test_rewind
    assert_equal ["fi", nil, BODY, nil, "first\n"], ask("/rewind", BODY)
  end

  def test_everything_read_is_binary
    assert_equal %w[ASCII-8BIT ASCII-8BIT UTF-8 ASCII-8BIT], ask("/encodings", BODY)
  end

  def test_no_body
    # Twice: the input of requests without a body is one object.
    2.times do
      assert_equal ["", "", nil], ask("/read", nil)
      assert_equal ["", nil, nil, nil], ask("/length", nil)
      assert_equal [false, "", "", nil, ""], ask("/buffer", nil)
      assert_equal [nil] * 4, ask("/gets", nil)
      assert_equal [], ask("/each", nil)
      assert_equal [nil, nil, "", nil, nil], ask("/rewind", nil)
      assert_equal ["", "", nil], ask("/read", "")
    end
  end

  def test_a_body_in_chunks_of_the_segment
    body = Random.new(1).bytes(200_000)
    assert_equal [body, "", nil], ask("/read", body)
    assert_equal [body[0, 2], nil, body, nil, body.lines.first], ask("/rewind", body)
  end

  def test_errors_reach_the_log
    assert_equal "logged", get("/errors").body
    wait_for_log(/^a line for the log$/)
  end

  def test_queue_time_grows_while_the_worker_is_busy
    door = gate("gate")
    assert_operator Float(get("/gate?idle").body), :<, 1
    ask_for("/gate?hold")
    door.arrived
    behind = ask_for("/gate?behind")
    # A moment that the request is known to wait: at least this long, whenever it began.
    Helper.wait_until("the request is read") { unread(behind).zero? }
    began = Helper.now
    Helper.wait_until("a fifth of a second passes") { Helper.now - began > 0.2 }
    door.open
    assert_operator Float(behind.answer.body), :>=, 0.2
  end

  # Bytes of ours that the front has not read.
  def unread(client)
    local, remote = [client.socket.local_address, client.socket.remote_address].map(&:ip_port)
    pattern = /:#{format('%04X', remote)} [0-9A-F]+:#{format('%04X', local)} \d\d \w+:(\w+)/
    File.read("/proc/net/tcp")[pattern, 1].to_i(16)
  end
end
