# frozen_string_literal: true

require "etc"
require "helper_cgi_web"

# `index.cgi` behind real web servers, in front of Oribi and of acgi.rb.
class CgiWebServersTest < Minitest::Test
  include Helper

  # What is asked for, and the SCRIPT_NAME, PATH_INFO and QUERY_STRING of the app.
  PATHS = {
    "/app/" => ["/app", "/", ""],
    "/app/?a=b&c=%2F" => ["/app", "/", "a=b&c=%2F"],
    "/app/index.cgi" => ["/app/index.cgi", "", ""],
    "/app/index.cgi?--server" => ["/app/index.cgi", "", "--server"],
    "/app/index.cgi/x/y?q=1" => ["/app/index.cgi", "/x/y", "q=1"],
    "/app/x/y?q=1" => ["/app", "/x/y", "q=1"],
    "/app/x%20y" => ["/app", "/x%20y", ""]
  }.freeze

  # Not every release has what runs CGI for nginx.
  SERVERS = [:lighttpd, :apache, *(:nginx if CgiWeb.fcgiwrap?)].freeze

  SERVERS.product(%i[install bundle]).each do |kind, how|
    define_method("test_#{how}_behind_#{kind}") { behind(kind, how) }
  end

  def teardown = @web&.stop

  private

  def behind(kind, how)
    @web = CgiWeb.new(kind, how)
    check_first_hits
    check_paths
    check_bodies
    check_sources
    check_errors
    check_end
    check_death
  end

  def uid = Etc.getpwnam(WebServer.user).uid.to_s

  def check_first_hits
    all = Array.new(10) { Thread.new { @web.get("/app/").code } }
    codes = all.each { |thread| thread.report_on_exception = false }.map(&:value)
    assert_equal ["200"] * 10, codes, @web.log
    assert_equal 1, Dir[File.join(File.dirname(@web.path("")), "../run/acgi-*/socket")].size
  end

  def check_paths
    PATHS.each do |target, expected|
      answer = @web.get(target)
      assert_equal [*expected, "GET", "0", "0", uid], answer.body.split("|", -1), target
    end
    teapot = @web.get("/app/teapot")
    assert_equal %w[418 text/plain], [teapot.code, teapot["content-type"]]
    assert_equal 4_000_000, @web.get("/app/big").body.bytesize
  end

  def check_bodies
    ["", "abc", Random.bytes(100_000), Random.bytes(5_000_000)].each do |body|
      expected = ["POST", body.bytesize.to_s, body.sum.to_s, uid]
      assert_equal expected, @web.post("/app/index.cgi", body).body.split("|", -1).drop(3)
    end
  end

  # The program is nobody's to read.
  def check_sources
    %w[config.ru oribi.rb].each do |name|
      refute_includes @web.get("/app/#{name}").body, File.read(@web.path(name)), name
    end
  end

  def check_errors
    assert_equal "200", @web.get("/app/careful").code
    wait_until("the log has it: #{@web.log}") { @web.log.include?("careful, said the app") }
  end

  # One server ends, the next is started, and nobody who asks meanwhile notices.
  def check_end
    before = @web.server
    done = false
    codes = Array.new(3) do
      Thread.new { [].tap { |mine| mine << @web.get("/app/").code until done } }
    end
    Process.kill("TERM", before)
    wait_until("there is another server") { @web.server != before && @web.get("/app/") }
    done = true
    assert_equal ["200"], codes.flat_map(&:value).uniq, @web.log
  ensure
    done = true
  end

  # The server dies with a request in hand: that one gets a 500, the next a new server.
  def check_death
    held = Thread.new { @web.get("/app/hold") }
    wait_until("the app has the request") do
      File.open(@web.path("fifo"), File::WRONLY | File::NONBLOCK)
    rescue Errno::ENXIO
      nil
    end
    @web.kill_servers
    assert_equal "500", held.value.code
    pattern = /oribi: index.cgi: the application's server died while it had this request/
    wait_until("the log has it: #{@web.log}") { @web.log.match?(pattern) }
    assert_equal "200", @web.get("/app/").code, @web.log
  end
end
