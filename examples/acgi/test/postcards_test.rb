# frozen_string_literal: true

%w[lib test].each { |folder| $LOAD_PATH.unshift(File.expand_path("../../../#{folder}", __dir__)) }
require "minitest"
require "helper_acgi"

# A visitor of the postcards, whose server is the one in plain Ruby.
class PostcardsTest < Minitest::Test
  FILES = %w[server.cgi cards.rb page.erb].freeze
  PICTURE = "\x89PNG\r\n\x1A\n".b + ("\0\r\n" * 5000)

  def setup
    folder = File.expand_path("..", __dir__)
    @home = Helper::Acgi.new(FILES.to_h { |name| [name, File.read(File.join(folder, name))] })
    @data = File.join(File.dirname(@home.directory), "data")
    @home.serve(env: { "POSTCARDS_DATA" => @data, "LC_ALL" => "C" })
  end

  def teardown = @home.clean_up

  # As the web server has it for an index.cgi that is its folder's index.
  def ask(path = "", **params)
    answer = @home.get("/cards/", SCRIPT_NAME: "/cards/index.cgi", PATH_INFO: path,
                                  HTTP_COOKIE: @cookie.to_s, **params)
    @cookie = answer["set-cookie"][/\A[^;]+/] if answer["set-cookie"]
    answer
  end

  def send_card(fields, picture = nil)
    token = ask.body[/name="token" value="(\h+)"/, 1]
    parts = { "token" => token, **fields }.map do |name, value|
      "--cut\r\nContent-Disposition: form-data; name=\"#{name}\"\r\n\r\n#{value}\r\n".b
    end
    if picture
      parts << "--cut\r\nContent-Disposition: form-data; name=\"picture\"; filename=\"a.png\"\r\n" \
               "Content-Type: image/png\r\n\r\n".b << picture << "\r\n"
    end
    ask(method: "POST", body: "#{parts.join}--cut--\r\n",
        CONTENT_TYPE: "multipart/form-data; boundary=cut")
  end

  def test_a_card_with_a_picture
    answer = send_card({ "name" => "Zoë", "text" => "<b>Hello</b>" }, PICTURE)
    assert_equal [302, "/cards/index.cgi"], [answer.status, answer["location"]]
    page = ask.body.force_encoding(Encoding::UTF_8)
    assert_includes page, "&lt;b&gt;Hello&lt;/b&gt;"
    assert_includes page, "You have sent 1"
    assert_includes page, 'value="Zoë"'
    picture = ask(page[%r{src="/cards/index\.cgi(/pictures/\h+)"}, 1])
    assert_equal ["image/png", PICTURE], [picture["content-type"], picture.body]
  end

  def test_sessions_are_a_visitors_own
    send_card({ "name" => "Ann", "text" => "Hi" })
    mine = @cookie
    @cookie = nil
    page = ask.body
    assert_includes page, "You have sent none yet"
    refute_equal mine, @cookie
    modes = [@data, File.join(@data, "sessions")].map { |path| File.stat(path).mode & 0o777 }
    assert_equal [0o700] * 2, modes
  end

  def test_what_is_refused
    assert_equal 400, send_card({ "name" => "Ann", "text" => "" }).status
    assert_equal 400, send_card({ "name" => "Ann", "text" => "Hi" }, "#!/bin/sh\n").status
    assert_equal 403, send_card({ "name" => "Ann", "text" => "Hi", "token" => "0" }).status
    assert_equal 404, ask("/pictures/0123456789abcdef").status
    assert_equal 404, ask("/../cards.rb").status
  end
end
