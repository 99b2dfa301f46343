# frozen_string_literal: true

require "digest"
require "helper_bare"

# A root directory of one's own is root's to make.
return unless Helper::Bare.possible?

# The folder that is uploaded to a host which has only Ruby and CGI, on such a host.
class AcgiBareTest < Minitest::Test
  include Helper

  def self.bare = @bare ||= Bare.new.tap { |bare| Minitest.after_run { bare.clean_up } }

  def setup
    @bare = self.class.bare
  end

  def teardown = @bare.leave

  # Uploads what `oribi cgi bundle` makes of an app of one file.
  def upload(name, text)
    Dir.mktmpdir do |folder|
      Dir.mkdir(app = File.join(folder, "app"))
      File.write(File.join(app, name), text)
      into = File.join(folder, "bundle")
      words = [RbConfig.ruby, File.join(ROOT, "exe/oribi"), "cgi", "bundle", app, "--into", into]
      out, status = Open3.capture2e(*words)
      assert status.success?, out
      Dir.children(into).each do |one|
        file = File.join(into, one)
        @bare.write(one, File.binread(file), File.stat(file).mode & 0o777)
      end
    end
  end

  # What the web server does for each request.
  def hit(target, body: "", **params)
    path, query = target.split("?", 2)
    env = { "GATEWAY_INTERFACE" => "CGI/1.1", "SERVER_PROTOCOL" => "HTTP/1.1",
            "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "/www/index.cgi", "PATH_INFO" => path,
            "QUERY_STRING" => query.to_s, "REQUEST_URI" => "/www/index.cgi#{target}",
            "SCRIPT_FILENAME" => "/www/index.cgi", "SERVER_NAME" => "bare.example",
            "SERVER_PORT" => "80", "CONTENT_LENGTH" => body.bytesize.to_s }
    @bare.run("/www/index.cgi", env: env.merge(params.transform_keys(&:to_s)), input: body)
  end

  def page(...)
    out, errors, status = hit(...)
    assert_equal ["", 0], [errors, status], out
    out.split("\r\n\r\n", 2).last
  end

  def command(name) = @bare.run("/usr/bin/ruby", "server.cgi", name)

  def test_a_script
    script = File.read(File.join(ROOT, "test/apps/acgi/server.cgi"))
    upload("server.cgi", "$LOAD_PATH.unshift(__dir__)\n#{script}")
    # All of the first come, and one server is started for them.
    pages = Array.new(12) { Thread.new { page("/count") } }.map(&:value)
    assert_equal 1, pages.map { |text| text.split.last }.uniq.size, pages.inspect
    body = Random.bytes(500_000)
    assert_equal Digest::SHA256.hexdigest(body), page("/digest", body: body)
    assert_equal "12".rjust(1000), page("/big?n=2000")[12_000, 1000]
    out, _, status = hit("/exit?n=3")
    assert_equal ["bye", 3], [out[-3..], status]
    out, errors, = hit("/raise")
    assert_match(/\AStatus: 500 /, out)
    assert_includes errors, "out of order (RuntimeError)"
    assert_match(/\Aalive \(\d+\)\n\z/, command("status").first)
    inside = @bare.processes
    roles = inside.map { |one| one.title[/\Aacgi: (\w+)/, 1] }
    assert_equal({ "server" => 1, "mold" => 1, "worker" => 4 }, roles.tally)
    assert_equal [Bare::USER], inside.map { |one| File.stat("/proc/#{one.pid}").uid }.uniq
    assert_equal ["", "", 0], command("stop")
    Helper.wait_until("nothing of it is left") { @bare.processes.all? { |one| one.state == "Z" } }
  end

  def test_a_rack_app
    upload("config.ru", File.read(File.join(ROOT, "examples/acgi-rack/config.ru")))
    assert_match(/has answered 1 times/, page("/"))
    assert_match(%r{^SCRIPT_NAME: /www/index\.cgi/env$}, page("/env"))
  end

  def test_a_script_that_does_not_load
    upload("server.cgi", "require_relative 'acgi'\nrequire 'no/such'\n")
    out, errors, status = hit("/")
    assert_match(/\AStatus: 500 /, out)
    assert_match(/server\.cgi does not load: cannot load such file -- no\/such/, errors)
    refute_equal 0, status
  end

  # Without the shim it is plain CGI.
  def test_hit_directly
    upload("server.cgi", "require_relative 'acgi'\n" \
                         "ACGI.each_cgi { |cgi| cgi.out { 'plain' } }\n")
    env = { "GATEWAY_INTERFACE" => "CGI/1.1", "REQUEST_METHOD" => "GET" }
    out, errors, status = @bare.run("/usr/bin/ruby", "server.cgi", env: env)
    assert_equal ["plain", "", 0], [out.split("\r\n\r\n").last, errors, status]
  end
end
