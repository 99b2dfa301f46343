# frozen_string_literal: true

require "digest"
require "helper_acgi"
require "helper_case"

# What a script does, whoever runs it. `ask` gives its output as a Helper::FastCgi::Reply.
module ScriptTests
  def out(target, **options) = answer(target, **options).body

  def answer(target, **options) = ask(target, **options).answer

  def form(target, fields)
    out(target, body: URI.encode_www_form(fields),
                CONTENT_TYPE: "application/x-www-form-urlencoded")
  end

  def unpack(text) = Marshal.load(text) # rubocop:disable Security/MarshalLoad

  def test_cgi_finds_its_parameters
    expected = { "a" => ["1"], "b" => ["two words", "ü"] }
    assert_equal expected.inspect.b, unpack(out("/params?a=1&b=two+words&b=%C3%BC")).inspect.b
    assert_equal expected.inspect.b,
                 unpack(form("/params", [%w[a 1], ["b", "two words"], %w[b ü]])).inspect.b
  end

  def test_heads
    answer = answer("/out")
    assert_equal [200, "<p>", "text/html"], [answer.status, answer.body, answer["content-type"]]
    assert_equal ["a=1; path=", "b=1; path="], answer["set-cookie"]
    answer = answer("/head")
    assert_equal [404, "no", "1"], [answer.status, answer.body, answer["x-one"]]
    assert_equal 204, answer("/empty").status
  end

  def test_env_is_the_requests
    env = unpack(out("/env?leave=1", HTTP_X_MINE: "yes", HTTP_PROXY: "http://proxy.example/"))
    assert_equal ["yes", "behind", "the script's", "leave=1", "/env", "CGI/1.1"],
                 env.values_at("HTTP_X_MINE", "LEFT", "OWN", "QUERY_STRING", "PATH_INFO",
                               "GATEWAY_INTERFACE")
    assert env["PATH"]
    env = unpack(out("/env"))
    assert_equal [nil, nil, "the script's", ""],
                 env.values_at("HTTP_X_MINE", "LEFT", "OWN", "QUERY_STRING")
  end

  def test_the_script_has_its_name
    env = unpack(out("/app/env", REQUEST_URI: "/app/env", SCRIPT_NAME: "/app/index.cgi",
                                 PATH_INFO: "/env", SCRIPT_FILENAME: "/www/app/index.cgi"))
    assert_equal ["/app/index.cgi", "/env"], env.values_at("SCRIPT_NAME", "PATH_INFO")
  end

  # Less than any pipe holds, more, and more than memory is for.
  def test_bodies_of_any_size
    [0, 1, 4096, 4097, 70_000, 3_000_000].each do |size|
      body = Random.bytes(size)
      assert_equal Digest::SHA256.hexdigest(body), out("/digest", method: "GET", body: body), size
    end
  end

  def test_what_is_not_read_is_nobody_elses
    assert_equal "mine\n", out("/pull", method: "GET", body: "mine\nleft\nover\n")
    assert_equal "", out("/pull")
    assert_equal "next\n", out("/pull", method: "GET", body: "next\n")
  end

  def test_processes_have_the_streams
    body = Random.bytes(1_000_000)
    reply = ask("/cat", method: "GET", body: body)
    assert_equal Digest::SHA256.hexdigest(body), Digest::SHA256.hexdigest(reply.answer.body)
    assert_includes errors(reply), "noise\n"
  end

  def test_long_output
    assert_equal Array.new(5000) { |i| i.to_s.rjust(1000) }.join.hash, out("/big?n=5000").hash
  end

  # More than a pipe holds, before the first byte of output.
  def test_many_errors
    reply = ask("/loud?n=2000")
    assert_equal "quiet", reply.answer.body
    assert_includes errors(reply), Array.new(2000) { |i| "#{i.to_s.rjust(999)}\n" }.join
  end

  def test_exit_status
    reply = ask("/exit?n=3")
    assert_equal ["bye", 3], [reply.answer.body, status(reply)]
    assert_equal 0, status(ask("/exit?n=0"))
    reply = ask("/abort")
    assert_includes errors(reply), "enough"
    assert_equal 1, status(reply)
  end

  def test_standard_streams_that_are_closed_come_back
    2.times { assert_equal "closed", out("/close") }
    assert_equal "underneath", out("/swap")
    assert_includes errors(ask("/abort")), "enough"
  end

  def test_a_copy_of_the_script
    assert_equal "childparent", out("/fork").scan(/parent|child/).sort.join
  end
end

# And what it does when it stays in memory.
module PersistentTests
  def test_globals_last
    first, pid, loaded = out("/count").split.map(&:to_i)
    assert_equal [first + 1, pid, loaded], out("/count").split.map(&:to_i)
    refute_equal pid, loaded, "loaded in a mold"
  end

  def test_an_exception_is_a_500
    reply = ask("/raise")
    assert_equal [500, "Internal Server Error\n"], reply.answer.to_a.values_at(1, 3)
    assert_includes errors(reply), "out of order (RuntimeError)"
    refute_includes errors(reply), "acgi/run.rb"
    assert_equal 1, status(reply)
    assert_equal 200, answer("/count").status
  end

  def test_output_comes_as_it_is_written
    fifo = self.class.home.fifo("steps")
    client = self.class.home.connect
    client.write(Helper::FastCgi.request(Helper::FastCgi.params("/steps?fifo=#{fifo}")))
    assert_equal "first\n", client.reply_until { |reply| reply.out.include?("first") }.answer.body
    self.class.home.reached(fifo).close
    assert_equal "first\nsecond\n", client.reply.answer.body
  ensure
    client&.close
  end

  def test_what_runs_in_the_background_holds_nobody_up
    began = Helper.now
    assert_equal "at once", out("/background")
    assert_operator Helper.now - began, :<, 4
    assert_equal "quiet", out("/loud?n=0")
  end
end

# By the server in plain Ruby.
class AcgiPlainTest < Minitest::Test
  extend Helper::SharesHome
  include ScriptTests
  include PersistentTests

  def self.home
    @home ||= Helper::Acgi.new.tap do |home|
      home.write("oribi.rb", "affinity :single\n")
      home.serve
    end
  end

  def ask(...) = self.class.home.ask(...)

  def errors(reply) = reply.errors

  def status(reply) = reply.status

  def test_the_webserver_judges_what_is_no_cgi
    reply = ask("/nothing")
    assert_equal ["", 0], [reply.out, reply.status]
    assert_equal "Hello, World\n\nHow are you?", ask("/prose").out
  end

  def test_a_late_exception_is_told
    reply = ask("/late")
    assert_operator reply.out.bytesize, :>=, 200_000
    assert_includes reply.errors, "too late"
    assert_equal 1, reply.status
  end
end

# By Oribi, as a Rack app behind its FastCGI door.
class AcgiNativeTest < Minitest::Test
  extend Helper::SharesHome
  include ScriptTests
  include PersistentTests

  def self.home
    @home ||= Helper::Acgi.new(files).tap do |home|
      home.write("oribi.rb", <<~RUBY)
        workers 1
        request_timeout_soft 0.5
        on_request_timeout { |_, thread| thread.raise("enough of it") }
      RUBY
      home.serve(command: Helper::Acgi::NATIVE)
    end
  end

  def self.files = { "server.cgi" => File.read(Helper::Acgi::SCRIPT) }

  def ask(...) = self.class.home.ask(...)

  def errors(reply) = reply.errors

  def status(reply) = reply.status

  def test_what_is_no_cgi_is_a_500
    reply = ask("/nothing")
    assert_equal [500, 1], [reply.answer.status, reply.status]
    assert_includes reply.errors, "ended with status 0 before it wrote a whole header"
    assert_includes ask("/prose").errors, 'the script wrote "Hello, World" where a header should be'
    assert_equal 302, answer("/location").status
  end

  def test_a_timeout_finds_the_script
    reply = ask("/slow")
    assert_equal 500, reply.answer.status
    # The backtrace is in one of the two logs.
    told = reply.errors + self.class.home.log
    assert_match(/has run for .*\n(?:.*\n)*?.*(?:server|script)\.cgi:\d+:in/, told)
    assert_includes reply.errors, "no more patience"
    assert_includes reply.errors, "enough of it"
    assert_equal "quiet", out("/loud?n=0")
  end
end

# Where scripts are not to run.
class AcgiThreadsTest < Minitest::Test
  def test_threads_are_refused_while_it_loads
    home = Helper::Acgi.new({ "config.ru" => "require 'acgi'\nrun ACGI.rack_app('script.cgi')\n",
                              "script.cgi" => File.read(Helper::Acgi::SCRIPT),
                              "oribi.rb" => "threads 2\n" })
    home.launch(command: Helper::Acgi::NATIVE)
    refute_equal 0, home.wait
    assert_includes home.log, "script.cgi needs threads 1, and more workers instead"
  ensure
    home&.clean_up
  end
end

# By Oribi behind Rack's judge.
class AcgiLintTest < AcgiNativeTest
  RACKUP = <<~RUBY
    require "acgi"
    require "rack/lint"
    require "uri"
    use Rack::Lint
    run ACGI.rack_app("script.cgi")
  RUBY

  def self.files = { "config.ru" => RACKUP, "script.cgi" => File.read(Helper::Acgi::SCRIPT) }
end

# Hit directly by a web server.
class AcgiDirectTest < Minitest::Test
  extend Helper::SharesHome
  include ScriptTests

  def self.home
    @home ||= Helper::Acgi.new
  end

  def ask(target, body: nil, **params)
    params = { method: body ? "POST" : "GET" }.merge(params)
    env = Helper::FastCgi.params(target, body: body, **params).except("HTTP_PROXY")
    out, errors, status = self.class.home.run(env: env, input: body.to_s)
    out = out.sub("\n\n", "\r\n\r\n") unless out.include?("\r\n\r\n")
    Helper::FastCgi::Reply.new(out, errors, status, 0, [])
  end

  def errors(reply) = reply.errors

  def status(reply) = reply.status

  # A web server may turn a query into arguments.
  def test_a_query_is_no_command
    env = Helper::FastCgi.params("/count?stop")
    assert_includes self.class.home.run("stop", env: env).first, "1 "
  end

  def test_from_the_command_line
    out, = self.class.home.run("a=1", env: { "PATH_INFO" => "/params" })
    assert_includes out, "Content-Type: text/plain"
    out, errors, status = self.class.home.run("halt")
    assert_equal ["", 1], [out, status]
    assert_equal "server.cgi: no command halt: there are status, pid, start, stop, restart, " \
                 "--server\n", errors
  end
end
