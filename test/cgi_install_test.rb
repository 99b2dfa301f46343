# frozen_string_literal: true

require "helper_shim"
require "oribi/cgi/bundle"
require "oribi/cgi/install"
require "rbconfig"

# `oribi cgi install` and `oribi cgi bundle`.
class CgiInstallTest < Minitest::Test
  include Helper

  APP = "run ->(_env) { [200, { 'content-type' => 'text/plain' }, [Process.pid.to_s]] }\n"

  def setup
    @folder = File.realpath(Dir.mktmpdir("oribi-install"))
    @app = File.join(@folder, "app")
    @run = File.join(@folder, "run")
    [@app, @run].each { |path| Dir.mkdir(path, 0o700) }
    write("config.ru", APP)
  end

  def teardown
    servers.each do |pid|
      Process.kill("TERM", pid)
      wait_until("server #{pid} ends") { Process.wait(pid, Process::WNOHANG) }
    end
    FileUtils.remove_entry(@folder)
  end

  def write(name, text) = File.write(File.join(@app, name), text)

  def servers = Dir[File.join(@run, "acgi-*/server.lock")].map { |file| File.read(file).to_i }

  def cgi(*words)
    env = { "ORIBI_RUNTIME_DIR" => @run }
    exe = File.join(ROOT, "exe/oribi")
    out, err, status = Open3.capture3(env, RbConfig.ruby, exe, "cgi", *words, chdir: @folder)
    [out, err, status.exitstatus]
  end

  def hit(directory, **more)
    env = { "ORIBI_RUNTIME_DIR" => @run, "ORIBI_BINARY" => Oribi::Binary.path,
            "ORIBI_LIB" => nil, "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "/index.cgi",
            "REQUEST_URI" => "/", "SERVER_NAME" => "test", "SERVER_PORT" => "80",
            "SERVER_PROTOCOL" => "HTTP/1.1" }
    program = File.join(directory, "index.cgi")
    env = env.merge(more.transform_keys(&:to_s))
    out, err, = Open3.capture3(env, program, unsetenv_others: true)
    assert_empty err
    out
  end

  def test_install
    out, err, status = cgi("install", "app")
    assert_equal ["", 0], [err, status]
    index = File.join(@app, "index.cgi")
    assert_match(/\A#{index} is there, for config.ru.\n/, out)
    %w[Apache lighttpd nginx index-file.names *.ru].each { |word| assert_includes out, word }
    assert_equal "100755", File.stat(index).mode.to_s(8)
    assert_equal %w[config.ru index.cgi], Dir.children(@app).sort
    # Once more, over the one that is there.
    assert_equal 0, cgi("install", @app).last
    # A web server's environment knows neither this Ruby nor its gems.
    assert_match(/\r\n\r\n\d+\z/, hit(@app))
    assert_match(/\Aalive \(\d+\)\n\z/, cgi("status", @app).first)
  end

  def test_install_for_apache
    out, = cgi("install", "--htaccess", @app)
    assert_match(/The \.htaccess beside it/, out)
    text = File.read(File.join(@app, ".htaccess"))
    ["DirectoryIndex index.cgi", "Require all denied", "RewriteRule"].each do |words|
      assert_includes text, words
    end
    assert_equal 0, cgi("install", "--htaccess", @app).last
    write(".htaccess", "Require all granted\n")
    FileUtils.rm(File.join(@app, "index.cgi"))
    _, err, status = cgi("install", "--htaccess", @app)
    assert_match(/\Aoribi: .*\.htaccess is there: move it away/, err)
    assert_equal 1, status
    refute_path_exists File.join(@app, "index.cgi")
  end

  def test_what_cannot_be_installed
    refused = lambda do |pattern, *words|
      out, err, status = cgi(*words)
      assert_match(/\Aoribi: #{pattern}.*\n\z/, err)
      assert_equal ["", 1], [out, status]
    end
    refused.call("name the one directory", "install")
    refused.call("name the one directory", "install", "app", "run")
    refused.call("there is no directory nowhere", "install", "nowhere")
    refused.call("#{@run} has neither server.cgi nor config.ru: put", "install", "run")
    refused.call("invalid option: --fast; see `oribi cgi install --help`", "install", "--fast")
    write("index.cgi", "#!/bin/sh\n")
    refused.call("#{@app}/index.cgi is there, and is not Oribi's: move it away", "install", "app")
    assert_equal "#!/bin/sh\n", File.read(File.join(@app, "index.cgi"))
    refused.call("the bundle cannot be the app's own directory", "bundle", "app", "--into", "app")
    FileUtils.touch(File.join(@run, "something"))
    refused.call("#{@run} is there already: remove it", "bundle", "--into", "run", "app")
  end

  def test_bundle
    write("server.cgi", "#!/usr/bin/env ruby\n")
    FileUtils.mkdir_p([File.join(@app, "lib"), File.join(@app, ".git")])
    write("lib/a.rb", "A = 1\n")
    out, err, status = cgi("bundle", "app", "--ruby", RbConfig.ruby)
    assert_equal ["", 0], [err, status]
    bundle = File.join(@folder, "app-cgi")
    assert_match(/\A#{bundle} is ready to be uploaded: .htaccess, acgi.rb, /, out)
    assert_equal %w[.htaccess acgi.rb config.ru index.cgi lib server.cgi], Dir.children(bundle).sort
    assert_equal "A = 1\n", File.read(File.join(bundle, "lib/a.rb"))
    modes = %w[index.cgi server.cgi].map { |name| File.stat(File.join(bundle, name)).mode & 0o777 }
    assert_equal [0o755, 0o755], modes
    acgi = File.read(File.join(bundle, "acgi.rb"))
    refute_includes acgi, "require_relative"
    assert_equal 1, acgi.scan("frozen_string_literal: true").size
  end

  def test_a_bundle_serves_by_itself
    # The new folder may lie in the app's.
    cgi("bundle", "--into", "app/upload/site", "--ruby", RbConfig.ruby, "app")
    site = File.join(@app, "upload/site")
    assert_match(/\r\n\r\n\d+\z/, hit(site, PATH: "/nowhere"))
    assert_match(/\Aacgi: serves #{site} /, File.read(Dir[File.join(@run, "acgi-*/log")].first))
  end

  def test_help
    %w[install bundle].each do |command|
      out, err, status = cgi(command, "--help")
      assert_match(/\AUsage: oribi cgi #{command} .*^Examples:\n  oribi cgi #{command} /m, out)
      assert_equal ["", 0], [err, status]
      assert_match(/^  #{command} +\w+/, cgi("--help").first)
    end
    out, status = Open3.capture2e(Oribi::Binary.path, "cgi", "install", @app)
    assert_match(/\Aoribi: `oribi cgi install` is the gem's/, out)
    assert_equal 1, status.exitstatus
  end
end
