# frozen_string_literal: true

require "minitest/autorun"
require "fileutils"
require "open3"
require "tmpdir"

# A visit to examples/magtag, served by the built server: curl is the browser, with a cookie jar.
class MagTagVisitTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  EXAMPLE = File.join(ROOT, "examples/magtag/config.ru")
  BOOT_SECONDS = 20

  def setup
    @place = Dir.mktmpdir("oribi-magtag")
    @socket = File.join(@place, "magtag.sock")
    @prefix = ""
  end

  def teardown
    Process.kill(:KILL, @server) if @server
    FileUtils.rm_rf(@place)
  end

  def test_a_visit
    serve(EXAMPLE)
    walk_around
    assert_equal 0, stop.exitstatus, log
  end

  def test_a_visit_below_a_prefix
    @prefix = "/app"
    config = File.join(@place, "config.ru")
    File.write(config, <<~RUBY)
      require #{File.join(ROOT, "examples/magtag/magtag").inspect}
      use Rack::Lint
      map("/app") { run MagTag::App }
    RUBY
    serve(config)
    walk_around
    assert_equal 0, stop.exitstatus, log
  end

  # Two workers write to one database file, and each has opened it for itself.
  def test_many_visitors_at_once
    serve(EXAMPLE)
    threads = Array.new(4) do |n|
      Thread.new do
        browser = "visitor#{n}"
        sign_up(browser, browser)
        5.times { |post| say(browser, "post #{post} of #{browser}") }
        go(browser, "/home")
      end
    end
    threads.each_with_index do |thread, n|
      page = thread.value
      assert_equal 5, page.scan("of visitor#{n}<").size, page
    end
  end

  private

  def walk_around
    assert_match(%r{^HTTP.* 303.*^Location: #{@prefix}/login\r$}mi, curl("ada", "/home", "-i"))
    sign_up("ada", "ada_l")
    say("ada", "The engine weaves <algebraic> patterns.")
    assert_includes go("ada", "/home"), "weaves &lt;algebraic&gt; patterns"

    sign_up("bob", "bob_b")
    refute_includes go("bob", "/home"), "patterns"
    submit("bob", "/user/ada_l", "/follow/ada_l")
    assert_includes go("bob", "/home"), "patterns"

    submit("bob", "/logout", "/logout")
    assert_match(/^HTTP.* 303/, curl("bob", "/home", "-i"))
    assert_match(%r{^content-type: text/css}i, curl("bob", "/magtag.css", "-i"))
    look_at_facts
  end

  def look_at_facts
    info = go("ada", "/info")
    assert_match(/Oribi/i, info)
    assert_match(/waited in the queue.*?\d\.\d{3} ms/m, info)
    assert_includes go("ada", "/debug"), "REQUEST_METHOD"
  end

  def serve(config)
    environment = { "MAGTAG_DB" => File.join(@place, "magtag.db"), "RACK_ENV" => "development" }
    command = [Gem.ruby, File.join(ROOT, "exe/oribi"), "-w", "2", "-b", "unix://#{@socket}", config]
    @server = spawn(environment, *command, in: File::NULL, %i[out err] => log_path)
    wait_until("the server answers") do
      ended = Process.wait(@server, Process::WNOHANG)
      @server = nil if ended
      flunk "the server ended:\n#{log}" if ended
      File.socket?(@socket) && !curl("nobody", "/info").empty?
    end
  end

  def stop
    Process.kill(:TERM, @server)
    status = nil
    wait_until("the server is gone") { status = Process.wait2(@server, Process::WNOHANG)&.last }
    @server = nil
    status
  end

  def wait_until(what)
    deadline = now + BOOT_SECONDS
    until yield
      flunk "waited #{BOOT_SECONDS} s until #{what}:\n#{log}" if now > deadline
      sleep 0.05
    end
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def log_path
    File.join(@place, "log")
  end

  def log
    File.read(log_path)
  end

  def sign_up(browser, name)
    submit(browser, "/signup", "/signup", "name" => name, "password" => "correct horse")
  end

  def say(browser, text)
    submit(browser, "/home", "/tweet", "text" => text)
  end

  # Opens a page, then sends a form of it with the token that came along.
  def submit(browser, page, action, fields = {})
    token = go(browser, page)[/name="authenticity_token" value="([^"]+)"/, 1]
    form = fields.merge("authenticity_token" => token)
    data = form.flat_map { |name, value| ["--data-urlencode", "#{name}=#{value}"] }
    answer = curl(browser, action, "-i", *data)
    assert_match(/\AHTTP\S+ 303/, answer)
  end

  def go(browser, path)
    curl(browser, path, "--fail")
  end

  def curl(browser, path, *options)
    jar = File.join(@place, "#{browser}.jar")
    out, = Open3.capture2("curl", "--silent", "--max-time", "10", "--unix-socket", @socket,
                          "--cookie", jar, "--cookie-jar", jar, *options,
                          "http://localhost#{@prefix}#{path}")
    out.force_encoding("UTF-8")
  end
end
