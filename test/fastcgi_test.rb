# frozen_string_literal: true

require "helper_case"
require "helper_fastcgi"

# The FastCGI door, as a web server sees it.
class FastCgiTest < Helper::Case
  F = Helper::FastCgi
  serve "queue.ru", "-w", "2", "-b", "fastcgi://127.0.0.1:0"

  def door(scheme = "fastcgi") = Integer(server.log[%r{listening on #{scheme}://\S+:(\d+)$}, 1], 10)

  def fastcgi = keep(F.tcp(door))

  def body(reply) = reply.answer.body.split(" ", 2).last

  # Variables in pieces of a size, each a record with padding.
  def in_pieces(params, size, id: 1)
    parts = F.pairs(params).scan(/.{1,#{size}}/mn)
    parts.map.with_index { |part, i| F.record(F::PARAMS, id, part, padding: i % 8) }.join <<
      F.record(F::PARAMS, id)
  end

  def begin_request(id: 1, role: F::RESPONDER, keep: true)
    F.record(F::BEGIN_REQUEST, id, [role, keep ? 1 : 0].pack("nCx5"))
  end

  def test_requests_one_after_another_on_a_connection
    client = fastcgi
    replies = Array.new(3) { |i| client.ask("/a?#{i}") }
    assert_equal((0..2).map { |i| "GET /a?#{i}" }, replies.map { |reply| body(reply).strip })
    assert_equal([0, 0, 0, 0, 0, 0], replies.flat_map { |reply| [reply.status, reply.protocol] })
    # The stream is ended, and the request after it, once.
    assert_equal [F::OUTPUT, F::END_REQUEST], replies.last.kinds.last(2)
    assert_equal 1, replies.last.kinds.count(F::END_REQUEST)
  end

  def test_a_connection_that_is_not_kept_is_closed
    client = fastcgi
    assert_equal "GET /last?", body(client.ask("/last", keep: false)).strip
    assert client.ended?
  end

  def test_variables_cut_anywhere
    params = F.params("/cut", "HTTP_X_LONG" => "x" * 300)
    [1, 7, 128, 1000].each do |size|
      client = fastcgi
      client.write(begin_request, in_pieces(params, size), F.record(F::INPUT, 1))
      assert_equal "GET /cut?", body(client.reply).strip, size
    end
  end

  def test_bytes_one_by_one
    client = fastcgi
    bytes = F.request(F.params("/slowly", method: "POST", body: "abc"), body: "abc")
    bytes.each_char { |byte| client.write(byte) }
    assert_equal "POST /slowly? abc", body(client.reply)
  end

  def test_bodies_of_any_size
    client = fastcgi
    [1, 65_535, 65_536, 300_000, 3_000_000].each do |size|
      text = "b" * size
      assert_equal "POST /big? #{text}".hash, body(client.ask("/big", body: text)).hash, size
    end
    # Chunked at the web server: nobody knew the length when the request began.
    params = F.params("/chunked", method: "POST", "CONTENT_LENGTH" => "")
    client.write(F.request(params, body: "in pieces"))
    assert_equal "POST /chunked? in pieces", body(client.reply)
  end

  def test_a_body_that_is_not_as_long_as_was_said_is_refused
    params = F.params("/short", method: "POST", "CONTENT_LENGTH" => "10")
    [F.request(params, body: "short"), F.request(params, body: "x" * 11)].each do |bytes|
      reply = fastcgi.write(bytes).reply
      assert_equal 400, reply.answer.status
      assert_includes reply.answer.body, "CONTENT_LENGTH"
    end
    assert_empty(lines("called").grep(%r{/short}))
  end

  def test_several_requests_at_once
    client = fastcgi
    gate = gate("gate")
    client.write(F.request(F.params("/gate"), id: 1))
    gate.arrived
    # The other worker answers these while the first is held.
    numbers = [9, 2, 65_535]
    numbers.each { |id| client.write(F.request(F.params("/#{id}"), id: id)) }
    numbers.each { |id| assert_equal "GET /#{id}?", body(client.reply(id)).strip }
    gate.open
    assert_equal "GET /gate?", body(client.reply(1)).strip
  end

  def test_records_of_several_requests_mixed
    client = fastcgi
    one, two = ["/one", "/two"].map { |path| F.params(path, method: "POST") }
    client.write(begin_request(id: 1), begin_request(id: 2))
    client.write(F.stream(F::PARAMS, 2, F.pairs(two)), F.stream(F::PARAMS, 1, F.pairs(one)))
    client.write(F.record(F::INPUT, 1, "a"), F.record(F::INPUT, 2, "b", padding: 255))
    client.write(F.record(F::INPUT, 1, "a"), F.record(F::INPUT, 2), F.record(F::INPUT, 1))
    assert_equal "POST /two? b", body(client.reply(2))
    assert_equal "POST /one? aa", body(client.reply(1))
  end

  def test_an_aborted_request_is_cancelled
    start("queue.ru", "-w", "1", "-b", "fastcgi://127.0.0.1:0", "-b", "tcp://127.0.0.1:0")
    gate = gate("gate")
    held = fastcgi.write(F.request(F.params("/gate")))
    gate.arrived
    client = fastcgi
    client.write(F.request(F.params("/aborted"), id: 3), F.record(F::ABORT_REQUEST, 3))
    reply = client.reply(3)
    assert_equal [0, "", [F::END_REQUEST]], [reply.status, reply.out, reply.kinds]
    # So is one whose connection ends, and one that has not all its variables yet.
    gone = fastcgi.write(F.request(F.params("/gone")))
    client.write(begin_request(id: 4), F.record(F::ABORT_REQUEST, 4))
    assert_equal [F::END_REQUEST], client.reply(4).kinds
    gone.close
    @clients.delete(gone)
    later = fastcgi.write(F.request(F.params("/later")))
    # Everything that came before has been read when this is answered.
    assert_equal 400, connect.ask("GET /x", "Host: a", "Host: b").status
    gate.open
    assert_equal "GET /gate?", body(held.reply).strip
    assert_equal "GET /later?", body(later.reply).strip
    assert_empty(lines("called").grep(%r{/aborted|/gone}))
  end

  def test_values_unknown_types_and_roles
    client = fastcgi
    asked = %w[FCGI_MAX_CONNS FCGI_MAX_REQS FCGI_MPXS_CONNS FCGI_OTHER].to_h { |name| [name, ""] }
    client.write(F.record(F::GET_VALUES, 0, F.pairs(asked)))
    record = client.record
    assert_equal F::GET_VALUES_RESULT, record.kind
    assert_includes record.content, "FCGI_MPXS_CONNS1"
    refute_includes record.content, "FCGI_OTHER"
    client.write(F.record(77, 0, "what"))
    record = client.record
    assert_equal [F::UNKNOWN_TYPE, 77], [record.kind, record.content.unpack1("C")]
    client.write(begin_request(id: 5, role: 2), F.stream(F::PARAMS, 5, ""))
    assert_equal 3, client.reply(5).protocol
    # None of it harms what follows.
    assert_equal "GET /fine?", body(client.ask("/fine")).strip
  end

  def test_too_much_to_do_is_said_in_both_ways
    start("queue.ru", "-w", "1", "--queue-timeout", "0.5", "-b", "fastcgi://127.0.0.1:0")
    gate = gate("gate")
    held = fastcgi.write(F.request(F.params("/gate")))
    gate.arrived
    reply = fastcgi.ask("/waits")
    assert_equal [503, 2], [reply.answer.status, reply.protocol]
    assert_equal "1", reply.answer["retry-after"]
    gate.open
    assert_equal 200, held.reply.answer.status
  end

  def test_a_worker_that_dies_is_a_502_and_a_cut_reply_ends_without_an_end
    assert_equal 502, fastcgi.get("/die").status
    start("reply.ru", "-w", "1", "-b", "fastcgi://127.0.0.1:0")
    gate = gate("gate")
    client = fastcgi.write(F.request(F.params("/length/stream")))
    client.reply_until { |reply| reply.out.include?("first") }
    gate.open
    assert client.ended?, "a reply that is too short looked whole"
  end

  def test_limits
    start("queue.ru", "-w", "1", "--head-limit", "4k", "--body-limit", "1000",
          "--uri-limit", "200", "-b", "fastcgi://127.0.0.1:0")
    assert_equal 431, fastcgi.get("/", "HTTP_X" => "x" * 5000).status
    assert_equal 414, fastcgi.get("/#{'x' * 300}").status
    client = fastcgi
    assert_equal 413, client.ask("/", body: "x" * 2000).answer.status
    assert_equal 200, client.get("/again").status
  end

  def test_a_refusal_reaches_a_web_server_that_still_sends
    start("queue.ru", "-w", "1", "--body-limit", "1000", "-b", "fastcgi://127.0.0.1:0")
    body = "x" * 10_000_000
    reply = fastcgi.ask("/", body: body, keep: false)
    assert_equal 413, reply.answer.status
  end

  def test_broken_peers_are_cut_off_and_harm_nobody
    [
      "GET / HTTP/1.1\r\n\r\n", "\x02" * 64, F.record(F::BEGIN_REQUEST, 1, "short"),
      begin_request << begin_request, "\x01\x01".b
    ].each do |bytes|
      client = fastcgi.write(bytes)
      client.socket.close_write
      assert client.ended?, bytes.inspect
    end
    client = fastcgi
    client.write(begin_request, F.stream(F::PARAMS, 1, "\xff\xff\xff\xff"))
    client.write(F.record(F::INPUT, 1))
    assert_equal 400, client.reply.answer.status
    assert_equal 200, fastcgi.get("/fine").status
  end

  def test_timeouts
    start("queue.ru", "-w", "1", "--head-timeout", "0.6", "--keep-alive-timeout", "0.6",
          "--first-byte-timeout", "0.6", "--body-timeout", "0.6", "-b", "fastcgi://127.0.0.1:0")
    assert fastcgi.ended?, "said nothing"
    assert fastcgi.write(begin_request).ended?, "has begun and not gone on"
    client = fastcgi
    assert_equal 200, client.get("/").status
    assert client.ended?, "asked once and no more"
    params = F.params("/", method: "POST", "CONTENT_LENGTH" => "3")
    client = fastcgi.write(begin_request, F.stream(F::PARAMS, 1, F.pairs(params)))
    assert_equal 408, client.reply.answer.status
  end

  def test_over_a_unix_socket
    path = File.join(Dir.mktmpdir("oribi-door"), "s")
    start("queue.ru", "-w", "1", "-b", "fastcgi+unix://#{path}")
    client = keep(F.unix(path))
    assert_equal "GET /unix?", body(client.ask("/unix")).strip
  ensure
    FileUtils.rm_rf(File.dirname(path))
  end

  def test_a_slow_web_server_gets_all_of_a_large_reply
    start("reply.ru", "-w", "1", "-b", "fastcgi://127.0.0.1:0", "-b", "tcp://127.0.0.1:0")
    client = fastcgi.write(F.request(F.params("/array/big")))
    # The worker is free although nobody has read.
    assert_match(/\A\d+\z/, get("/pid").body)
    assert_equal "#{'x' * 1_000_000}#{'y' * 4_000_000}".hash, client.reply.answer.body.hash
  end

  def test_the_servers_end_waits_for_what_runs
    start("queue.ru", "-w", "1", "-b", "fastcgi://127.0.0.1:0")
    gate = gate("gate")
    idle = fastcgi
    assert_equal 200, idle.get("/").status
    held = fastcgi.write(F.request(F.params("/gate")))
    gate.arrived
    server.signal("TERM")
    assert idle.ended?
    gate.open
    assert_equal 200, held.reply.answer.status
    assert held.ended?
    assert_equal 0, server.wait
  end
end

# As web servers start their FastCGI applications: the socket takes the place of standard input.
class FastCgiSpawnedTest < Helper::Case
  def spawned(input, **env)
    app = Helper::Case.source("queue.ru")
    env = env.transform_keys(&:to_s)
    @server = Helper::Server.new(:oribi, "-w", "1", bind: nil, app: app, env: env, input: input)
    @server.ready
  end

  def test_the_socket_in_place_of_standard_input
    listener = TCPServer.new("127.0.0.1", 0)
    port = listener.local_address.ip_port
    spawned(listener)
    assert_includes server.log, "listening on fastcgi://127.0.0.1:#{port}"
    assert_equal 200, keep(Helper::FastCgi.tcp(port)).get("/").status
  ensure
    listener.close
  end

  def test_only_the_web_servers_that_are_named_may_connect
    listener = TCPServer.new("127.0.0.1", 0)
    port = listener.local_address.ip_port
    spawned(listener, FCGI_WEB_SERVER_ADDRS: "127.0.0.2, 127.0.0.3")
    assert keep(Helper::FastCgi.tcp(port)).ended?
    from = TCPSocket.new("127.0.0.1", port, "127.0.0.3", 0)
    assert_equal 200, keep(Helper::FastCgi.new(from)).get("/").status
  ensure
    listener.close
  end
end
