# frozen_string_literal: true

require "helper_case"

# The rules of HTTP/1.1, one request of test/corpus for each; docs/http.md is their table. A file's
# name begins with the status of the answer and ends with `closes` where the connection does.
class HttpRulesTest < Helper::Case
  serve "rules.ru", "-w", "1"

  CORPUS = File.join(Helper::ROOT, "test/corpus")
  BEHIND = "GET /behind/%s HTTP/1.1\r\nHost: behind\r\n\r\n"

  def self.each_request(kind)
    Dir[File.join(CORPUS, kind, "*.http")].each do |file|
      name = File.basename(file, ".http")
      yield name, File.binread(file), Integer(name[/\A\d+/], 10)
    end
  end

  each_request("valid") do |name, bytes, status|
    define_method(:"test_valid_#{name}") do
      client = connect.write(bytes, format(BEHIND, name))
      answer = client.answer(bodiless: bytes.start_with?("HEAD"))
      assert_equal status, answer.status, answer.body
      if name.end_with?("-closes")
        assert client.ended?
        refute_seen name
      else
        assert_equal "GET /behind/#{name}", client.answer.body
        assert client.quiet?
      end
    end
  end

  each_request("invalid") do |name, bytes, status|
    # What follows it is on its way already, and comes when the refusal is there.
    [false, true].each do |later|
      define_method(:"test_invalid_#{name}#{"_later" if later}") do
        client = connect.write(bytes)
        client.write(format(BEHIND, name)) unless later
        before = lines("seen")
        answer = client.answer
        assert_equal status, answer.status
        assert_equal "close", answer["connection"]
        client.write(format(BEHIND, name)) if later
        assert_cut client
        assert_equal before, lines("seen")
        refute_seen name
      end
    end
  end

  # The connection ends without another answer; a reset is an end too.
  def assert_cut(client)
    assert_empty client.rest
  rescue Errno::ECONNRESET, Errno::EPIPE
    nil
  end

  # The app has one worker, so what had been let in before this request has been seen.
  def refute_seen(name)
    assert_equal "GET /marker", get("/marker").body
    refute_includes lines("seen"), "GET /behind/#{name}"
  end

  def test_refusals_name_the_fault
    { "GET / HTTP/1.1\r\n\r\n" => /Host is missing/,
      "GET /#a HTTP/1.1\r\nHost: a\r\n\r\n" => /fragment/,
      "GET / HTTP/1.1\r\nHost: a\n\r\n" => /LF alone/,
      "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n" => /begins with a blank/,
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n" =>
        /more than one Content-Length/ }.each do |bytes, pattern|
      answer = connect.write(bytes).answer
      assert_match pattern, answer.body
      assert_equal "text/plain", answer["content-type"]
    end
  end

  # docs/http.md names every request of the corpus, and only tests that there are.
  def test_the_table_is_true
    named = File.read(File.join(Helper::ROOT, "docs/http.md")).scan(/`([^`\s]+(?:: \w+)?)`/).flatten
    globs, others = named.partition { |name| name.match?(/\A[245]\d\d-/) }
    files = Dir[File.join(CORPUS, "*/*.http")].map { |file| File.basename(file, ".http") }
    matches = ->(glob, file) { File.fnmatch(glob, file) }
    assert_empty(globs.reject { |glob| files.any? { |file| matches.call(glob, file) } })
    assert_empty(files.reject { |file| globs.any? { |glob| matches.call(glob, file) } })
    tests = others.filter_map { |name| name.match(/\A(\S+\.(?:rb|rs)): (\w+)\z/)&.captures }
    refute_empty tests
    assert_empty(tests.reject { |file, test| test?(file, test) })
  end

  def test?(file, name)
    path = File.join(Helper::ROOT, file.include?("/") ? file : "test/#{file}")
    File.exist?(path) && File.read(path).match?(/^\s*(?:def|fn) #{name}\b/)
  end

  # However its bytes come, a request is judged alike, and those before it are answered.
  def test_a_refusal_behind_other_requests
    bad = File.binread(File.join(CORPUS, "invalid/400-two-equal-lengths.http"))
    good = File.binread(File.join(CORPUS, "valid/200-chunk-trailers.http"))
    [1, 7, 10_000].each do |size|
      client = connect
      (good + good + bad).scan(/.{1,#{size}}/mn) do |piece|
        client.write(piece)
      rescue Errno::EPIPE, Errno::ECONNRESET
        break
      end
      assert_equal [200, 200, 400], Array.new(3) { client.answer.status }
      assert_cut client
    end
  end

  def test_pipelining_behind_posts
    client = connect
    requests = %w[a b c].map do |name|
      Helper::Client.request("POST /#{name}", body: "GET /inside HTTP/1.1\r\n\r\n")
    end
    chunked = Helper::Client.request("POST /d", "Transfer-Encoding: chunked")
    client.write(*requests, chunked, "3\r\nGET\r\n0\r\n\r\n", format(BEHIND, "posts"))
    answers = Array.new(5) { client.answer.body }
    assert_equal ["POST /a", "POST /b", "POST /c", "POST /d", "GET /behind/posts"], answers
    assert client.quiet?
  end
end
