# frozen_string_literal: true

require "helper_cgi_web"

# The example of a script, with its sessions and uploads, behind real web servers.
class CgiScriptsTest < Minitest::Test
  include Helper

  FOLDER = File.join(ROOT, "examples/acgi")
  FILES = %w[server.cgi cards.rb page.erb].to_h do |name|
    [name, File.read(File.join(FOLDER, name))]
  end
  # Where the web server's user may write, and what goes with the folder.
  DATA = "ENV[\"POSTCARDS_DATA\"] = File.join(__dir__, \"../../tmp/postcards\")\n"
  PICTURE = "\x89PNG\r\n\x1A\n".b + Random.bytes(300_000)

  [:lighttpd, :apache, *(:nginx if CgiWeb.fcgiwrap?)].product(%i[install bundle]) do |kind, how|
    define_method("test_#{how}_behind_#{kind}") { behind(kind, how) }
  end

  def teardown = @web&.stop

  private

  def behind(kind, how)
    script = FILES["server.cgi"].sub(/^require "acgi"$/) { "#{DATA}#{$&}" }
    @web = CgiWeb.new(kind, how, files: { **FILES, "server.cgi" => script })
    check_card
    check_direct if how == :bundle && kind != :nginx
  end

  def ask(request)
    request["Cookie"] = @cookie if @cookie
    answer = @web.ask(request)
    @cookie = answer["set-cookie"][/\A[^;]+/] if answer["set-cookie"]
    answer
  end

  def get(target) = ask(Net::HTTP::Get.new(target))

  def check_card
    page = get("/app/")
    assert_equal "200", page.code, @web.log
    answer = send_card(page.body[/name="token" value="(\h+)"/, 1])
    assert_equal ["302", "/app/index.cgi"], [answer.code, URI(answer["location"]).path], answer.body
    page = get("/app/").body
    assert_includes page, "You have sent 1"
    assert_includes page, "Greetings &amp; so on"
    answer = get(page[/<img src="([^"]+)"/, 1])
    assert_equal ["image/png", PICTURE], [answer["content-type"], answer.body]
    assert_equal "404", get("/app/nowhere").code
  end

  def send_card(token)
    request = Net::HTTP::Post.new("/app/index.cgi")
    fields = [["token", token], %w[name Ann], ["text", "Greetings & so on"],
              ["picture", StringIO.new(PICTURE), { filename: "a.png" }]]
    request.set_form(fields, "multipart/form-data")
    ask(request)
  end

  # The same script by itself, for each request anew.
  def check_direct
    page = get("/app/server.cgi").body
    assert_includes page, "You have sent 1"
    refute_equal page[/process (\d+)/, 1], get("/app/server.cgi").body[/process (\d+)/, 1]
  end
end
