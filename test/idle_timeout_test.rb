# frozen_string_literal: true

require "helper_case"
require "helper_on_demand"

# A server that ends when nobody asks it for anything, and clients that do not notice.
class IdleTimeoutTest < Helper::Case
  def test_it_ends_when_nothing_is_asked_and_not_before
    start("http.ru", "-w", "1", "--idle-timeout", "0.5")
    began = Helper.now
    while Helper.now - began < 1.2
      get
      sleep 0.1
    end
    last = Helper.now
    assert_equal 0, server.wait
    assert_operator Helper.now - last, :>=, 0.35
    assert_match(/no request for 0.5 s \(idle_timeout\): ending/, server.log)
    refute_match(/the front .* ended/, server.log)
    assert_empty server.left_over
  end

  def test_a_request_that_runs_holds_it
    @server = Helper::Server.new(:oribi, "-w", "1", "--idle-timeout", "0.2").ready
    server.hold
    sleep 0.7
    refute_match(/idle_timeout/, server.log)
    assert_match(%r{/hold}, server.release)
    assert_equal 0, server.wait
  end

  def test_so_it_is_under_rackup
    @server = Helper::Server.new(:rackup, "--workers=1", "--idle-timeout=0.3").ready
    assert_equal 0, server.wait
  end

  # A connection that has sent half a request when the time is over gets its answer.
  def test_a_request_that_comes_just_then_is_answered
    start("http.ru", "-w", "1", "--idle-timeout", "0.4")
    request = Helper::Client.request("GET /")
    client = connect.write(request[0, 10])
    wait_for_log(/idle_timeout/)
    client.write(request[10..])
    assert_equal 200, client.answer.status
    assert_equal 0, server.wait
  end

  # systemd starts the next one when somebody comes.
  def test_sockets_of_others_are_left_to_them
    listener = TCPServer.new("127.0.0.1", 0)
    given = { before: ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"],
              env: { "LISTEN_FDS" => "1" }, fds: [listener], bind: nil }
    served = Array.new(2) do
      client = keep(Helper::Client.tcp(listener.addr[1])).write(Helper::Client.request("GET /"))
      @server = Helper::Server.new(:oribi, "-w", "1", "--idle-timeout", "0.3", **given)
      status = client.answer.status
      ended = server.wait
      server.clean_up
      @server = nil
      [status, ended]
    end
    assert_equal [[200, 0]] * 2, served
  ensure
    listener&.close
  end

  # Who holds the lock is about to connect: the socket file stays until then, or until the holder
  # has been waited for long enough.
  def test_a_client_that_connects_just_then_is_served
    place = Helper::OnDemand.new("--idle-timeout", "0.3", "--bind", "tcp://127.0.0.1:0")
    place.get
    place.locked(File::LOCK_SH) do
      wait_until("it is idle") { place.log.include?("(idle_timeout): ending") }
      sleep 0.1
      client = keep(Helper::Client.unix(place.path("socket")))
      assert_equal 200, client.get("/", "Connection: close").status
      assert_path_exists place.path("socket")
      assert_empty place.failed
    end
    refute_path_exists place.path("socket")
  ensure
    place&.clean_up
  end

  # Each client starts a server if there is none; servers end all the time.
  def test_no_client_is_lost_between_servers
    place = Helper::OnDemand.new("--idle-timeout", "0.1")
    clients = Array.new(4) do |index|
      Thread.new do
        chance = Random.new(index)
        Array.new(12) { sleep(0.05 + (chance.rand * 0.15)) && place.get }
      end
    end
    answers = clients.flat_map(&:value)
    assert_equal [200], answers.map(&:status).uniq
    assert_operator place.started, :>, 3
    assert_empty place.failed
  ensure
    place&.clean_up
  end
end
