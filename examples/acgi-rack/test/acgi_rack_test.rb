# frozen_string_literal: true

%w[lib test].each { |folder| $LOAD_PATH.unshift(File.expand_path("../../../#{folder}", __dir__)) }
require "minitest"
require "helper_acgi"

# The Rack app where there is Ruby alone, and where there is Rack.
class AcgiRackExampleTest < Minitest::Test
  APP = File.read(File.expand_path("../config.ru", __dir__))

  def teardown = @home.clean_up

  def check(**options)
    @home = Helper::Acgi.new({ "config.ru" => APP, "oribi.rb" => "affinity :single\n" })
    @home.serve(**options)
    place = { SCRIPT_NAME: "/app/index.cgi", REQUEST_URI: "/app/index.cgi" }
    2.times do |i|
      answer = @home.get("/", **place, PATH_INFO: "")
      assert_includes answer.body, "answered #{i + 1} times"
      assert_match(/\Aapp;dur=[\d.]+\z/, answer["server-timing"])
    end
    env = @home.get("/", **place, PATH_INFO: "/env", REQUEST_URI: "/app/index.cgi/env").body
    assert_match(%r{^SCRIPT_NAME: /app/index\.cgi/env$}, env)
  end

  def test_with_rack = check

  def test_without = check(env: { "RUBYOPT" => "--disable=gems" })
end
