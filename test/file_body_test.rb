# frozen_string_literal: true

require "helper_case"

# Bodies with `to_path`: the front sends the file, and no worker waits for its client.
class FileBodyTest < Helper::Case
  serve "files.ru", "-w", "1"

  TEXT = (1..40_000).map { |i| "#{i}\n" }.join.b.freeze

  def setup
    get("/pid")
    %w[iterated closed].each { |name| FileUtils.rm_f(path(name)) }
    File.binwrite(path("text"), TEXT)
    File.write(path("empty"), "")
  end

  def path(name) = File.join(server.directory, name)

  def front = server.one("front")

  def open_files
    Dir.children("/proc/#{front.pid}/fd").map do |fd|
      File.readlink("/proc/#{front.pid}/fd/#{fd}")
    rescue Errno::ENOENT
      nil
    end
  end

  # What the only worker wrote behind the reply, it has written when it answers another request.
  def assert_sent_as_file(name)
    get("/pid")
    assert_empty lines("iterated")
    assert_equal [name], lines("closed")
  end

  def test_a_file_is_sent_and_the_body_closed
    client = connect
    answer = client.get("/path/text")
    assert_equal [200, TEXT, TEXT.bytesize.to_s],
                 [answer.status, answer.body, answer["content-length"]]
    assert_sent_as_file("text")
    assert_equal TEXT, client.get("/length/#{TEXT.bytesize}/text").body
    assert_equal "", client.get("/path/empty").body
    assert_match(/\A\d+\z/, client.get("/pid").body)
  end

  def test_rack_files
    answer = get("/text")
    assert_equal TEXT, answer.body
    part = get("/text", "Range: bytes=10-19")
    assert_equal [206, TEXT[10..19]], [part.status, part.body]
    assert_equal 404, get("/none").status
  end

  def test_what_is_no_file_of_that_length_is_iterated
    File.mkfifo(path("pipe"))
    %w[none pipe /dev /dev/zero].each do |name|
      assert_equal "iterated\n", get("/path/#{name}").body, name
    end
    assert_equal 4, lines("iterated").size
    assert_equal "iterated\n", get("/length/9/text").body
  end

  def test_bodiless_answers
    client = connect
    answer = client.ask("HEAD /path/text")
    assert_equal TEXT.bytesize.to_s, answer["content-length"]
    [204, 304].each { |status| assert_equal status, client.get("/status/#{status}/text").status }
    assert_equal TEXT, client.get("/path/text").body
  end

  def test_a_bad_head_is_500_and_the_next_file_is_sent
    client = connect
    assert_equal 500, client.get("/header/text").status
    assert_equal TEXT, client.get("/path/text").body
    wait_until("no file is left open") { open_files.grep(/text\z/).empty? }
  end

  def test_a_file_outlives_its_name_and_holds_no_worker
    big = Random.bytes(1 << 20) * 24
    File.binwrite(path("big"), big)
    client = ask_for("/path/big")
    assert_equal big.bytesize.to_s, client.head["content-length"]
    FileUtils.rm(path("big"))
    assert_match(/\A\d+\z/, get("/pid").body)
    assert_operator open_files.grep(/big \(deleted\)\z/).size, :==, 1
    assert big == client.take(big.bytesize), "the file as it was"
    wait_until("the file is closed") { open_files.grep(/big/).empty? }
  end

  def test_a_file_that_shrinks_cuts_the_connection
    File.binwrite(path("big"), "x" * (24 << 20))
    client = ask_for("/path/big")
    client.head
    File.truncate(path("big"), 100)
    assert_raises(EOFError) { client.take(24 << 20) }
    wait_for_log(/a file the app replies with could not be sent: it ends \d+ bytes too early/)
    assert_match(/\A\d+\z/, get("/pid").body)
  end

  def test_clients_that_leave_close_their_files
    File.binwrite(path("big"), "x" * (24 << 20))
    3.times { ask_for("/path/big").tap(&:head).reset }
    wait_until("the files are closed") { open_files.grep(/big/).empty? }
  end
end
