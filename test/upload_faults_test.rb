# frozen_string_literal: true

require "helper_uploads"

# Deaths while a worker asks for a spooled body, and after it had it.
class UploadFaultsTest < Helper::Case
  include Helper::Uploads

  BODY = Random.new(7).bytes(3 * 256 * 1024)

  def teardown
    @stopped&.each { |pid| signal("CONT", pid) }
    super
  end

  def signal(name, pid)
    Process.kill(name, pid)
  rescue Errno::ESRCH
    nil
  end

  def stop(entry)
    (@stopped ||= []) << entry.pid
    Process.kill("STOP", entry.pid)
    wait_until("#{entry.pid} stands still") { Helper.process(entry.pid).state == "T" }
  end

  def start_with_one_worker(*arguments)
    start("upload.ru", "-w", "1", *arguments)
    connect.get
    @front = front
    @worker = workers.first
  end

  def sockets(entry) = links(entry).count { |link| link.start_with?("socket:") }

  # A client whose worker has taken its request and waits for the body, while the front stands
  # still.
  def client_with_asking_worker
    before = sockets(@worker)
    stop(@worker)
    client = connect.write(Client.request("POST /digest", body: BODY))
    wait_until("the body is on disk") { on_disk(@front) == BODY.bytesize }
    wait_until_queued
    stop(@front)
    Process.kill("CONT", @worker.pid)
    wait_until("the worker asks") { sockets(@worker) == before + 1 }
    client
  end

  # With nothing to read or write the front's thread wakes up for nothing but the tick that it has
  # while there are requests.
  def wait_until_queued
    asleep = switches
    wait_until("the request is queued") { switches > asleep + 20 }
  end

  def switches
    File.read("/proc/#{@front.pid}/task/#{@front.pid}/status")[/^voluntary.*?(\d+)/, 1].to_i
  end

  def test_the_next_worker_gets_the_body_of_one_that_died_asking
    start_with_one_worker
    client = client_with_asking_worker
    Process.kill("KILL", @worker.pid)
    Process.kill("CONT", @front.pid)
    assert_equal digest(BODY), client.answer.body
    assert_equal ["GET /", "POST /digest"], called
    assert_no_files
  end

  def test_a_worker_whose_front_dies_while_it_asks_lives_on
    start_with_one_worker
    client = client_with_asking_worker
    Process.kill("KILL", @front.pid)
    assert_raises(EOFError, Errno::ECONNRESET) { client.head }
    wait_until("a front is there again") { !@front.same?(server.find("front").first) && front }
    body = wait_until("it serves") { asked_again }
    assert_equal "#{@worker.pid} GET /again", body
    # The app has never seen the upload.
    assert_equal ["GET /", "GET /again"], called
    assert_no_files
  end

  def asked_again
    get("/again").body
  rescue SystemCallError, EOFError
    nil
  end

  def test_a_worker_whose_client_leaves_while_it_asks_lives_on
    start_with_one_worker
    client = client_with_asking_worker
    client.reset
    @clients.delete(client)
    Process.kill("CONT", @front.pid)
    assert_equal "#{@worker.pid} GET /again", get("/again").body
    assert_no_files
  end

  # The first worker has read all of the body when it dies; the place in the file is the file's,
  # not the process's.
  def test_a_body_is_whole_for_the_second_run_of_an_idempotent_request
    start_with_one_worker("--retry-idempotent")
    answer = connect.ask("GET /die-once", body: BODY)
    assert_equal digest(BODY), answer.body
    refute @worker.same?(workers.first)
    assert_no_files
  end

  def test_the_body_of_a_worker_that_died_running_is_gone
    start_with_one_worker
    assert_equal 502, connect.ask("POST /die-once", body: BODY).status
    assert_equal digest(BODY), connect.ask("POST /digest", body: BODY).body
    assert_no_files
  end
end
