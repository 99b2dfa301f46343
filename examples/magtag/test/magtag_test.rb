# frozen_string_literal: true

require_relative "test_helper"
require "rack/builder"
require "rack/lint"
require "rack/test"

# A browser as far as these tests need one, on the application behind Rack::Lint.
module Visiting
  include Rack::Test::Methods

  PASSWORD = "correct horse"
  PREFIX = ""

  def app
    @app ||= begin
      prefix = self.class::PREFIX
      mounted = Rack::Builder.new { map(prefix.empty? ? "/" : prefix) { run MagTag::App } }
      Rack::Lint.new(mounted.to_app)
    end
  end

  def visit(path)
    get(self.class::PREFIX + path)
  end

  # Fills in the form of the page that is open, token and all.
  def submit(path, fields = {})
    token = last_response.body[/name="authenticity_token" value="([^"]+)"/, 1]
    post(self.class::PREFIX + path, { "authenticity_token" => token }.merge(fields))
  end

  def sign_up(name = MagTag.fresh_name, password: PASSWORD)
    clear_cookies
    visit "/signup"
    submit "/signup", "name" => name, "password" => password
    name
  end

  def say(text)
    visit "/home"
    submit "/tweet", "text" => text
  end

  def assert_sent_to(path)
    assert_equal 303, last_response.status, last_response.body
    assert_equal self.class::PREFIX + path, last_response.headers["Location"]
  end

  def assert_page(text, status = 200)
    assert_equal status, last_response.status
    assert_includes last_response.body, text
  end
end

class MagTagTest < Minitest::Test
  include Visiting

  def test_without_a_login_the_way_leads_to_the_door
    ["/home", "/logout"].each do |path|
      visit path
      assert_sent_to "/login"
    end
    visit "/"
    assert_sent_to "/home"
    visit "/login"
    submit "/tweet", "text" => "hello"
    assert_sent_to "/login"
  end

  def test_sign_up_log_out_log_in
    name = sign_up
    assert_sent_to "/home"
    visit "/home"
    assert_page "Welcome."
    visit "/home"
    refute_includes last_response.body, "Welcome."
    visit "/login"
    assert_sent_to "/home"
    visit "/logout"
    submit "/logout"
    assert_sent_to "/login"
    visit "/home"
    assert_sent_to "/login"
    visit "/login"
    submit "/login", "name" => name, "password" => "wrong"
    assert_page "do not fit", 422
    assert_page %(value="#{name}"), 422
    submit "/login", "name" => name, "password" => PASSWORD
    assert_sent_to "/home"
  end

  def test_signing_up_is_refused_with_a_reason
    taken = sign_up
    sign_up(taken.upcase)
    assert_page "called #{taken.upcase} already", 422
    sign_up("x")
    assert_page "2 to 20", 422
    sign_up(password: "short")
    assert_page "at least 8", 422
  end

  def test_posts_come_back_escaped
    name = sign_up
    say "<script>alert('&')</script>"
    assert_sent_to "/home"
    visit "/home"
    assert_page "&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;"
    clear_cookies
    visit "/user/#{name}"
    assert_page "&lt;script&gt;"
    refute_includes last_response.body, "<script"
  end

  def test_too_long_a_post_is_kept_to_be_shortened
    sign_up
    say "#{"x" * 140}<"
    assert_page "141 characters", 422
    assert_page "#{"x" * 140}&lt;</textarea>", 422
    submit "/tweet", "text" => "   "
    assert_page "nothing in it", 422
  end

  def test_the_timeline_follows
    bob = sign_up
    say "from bob"
    sign_up
    visit "/home"
    refute_includes last_response.body, "from bob"
    visit "/user/#{bob}"
    submit "/follow/#{bob}"
    assert_sent_to "/user/#{bob}"
    visit "/home"
    assert_page "from bob"
    visit "/user/#{bob}"
    submit "/unfollow/#{bob}"
    visit "/home"
    refute_includes last_response.body, "from bob"
    submit "/follow/#{bob}", "from" => "home"
    assert_sent_to "/home"
  end

  def test_nobody_follows_themselves_or_nobody
    name = sign_up
    visit "/home"
    submit "/follow/#{name}"
    assert_equal 422, last_response.status
    visit "/home"
    submit "/follow/nobody_here"
    assert_equal 404, last_response.status
  end

  def test_forms_without_their_token_are_refused
    sign_up
    %w[/tweet /logout /login /signup /follow/x /setup].each do |path|
      post path, "text" => "forged", "name" => "x", "password" => PASSWORD
      assert_equal 403, last_response.status, path
    end
    visit "/home"
    refute_includes last_response.body, "forged"
  end

  def test_odd_requests_find_a_page_not_an_exception
    sign_up
    visit "/home"
    submit "/tweet", "text" => %w[a b]
    assert_equal 422, last_response.status
    visit "/home"
    submit "/tweet", "text" => { "a" => "b" }
    assert_equal 422, last_response.status
    visit "/nothing"
    assert_page "no such page", 404
    visit "/user/%3Cb%3E"
    assert_equal 404, last_response.status
  end

  def test_a_forged_session_is_no_session
    set_cookie "magtag=eyJ1c2VyIjoxfQ==--0000"
    visit "/home"
    assert_sent_to "/login"
  end

  def test_the_stylesheet_and_head
    visit "/magtag.css"
    assert_equal 200, last_response.status
    assert_match %r{\Atext/css}, last_response.headers["Content-Type"]
    head "/login"
    assert_equal 200, last_response.status
    assert_empty last_response.body
  end

  def test_pages_load_nothing_from_elsewhere
    sign_up
    visit "/home"
    assert_match(/default-src 'none'/, last_response.headers["Content-Security-Policy"])
    refute_match %r{(src|href)="(https?:)?//}, last_response.body
  end

  def test_info_shows_the_queue_time_when_the_server_tells
    visit "/info"
    assert_page RUBY_VERSION
    assert_page "(not told)"
    get "/info", {}, { "oribi.queue_time" => 0.00125 }
    assert_page "1.250 ms"
  end

  def test_debug_shows_the_env_but_no_secret
    sign_up
    get "/debug", {}, { "HTTP_AUTHORIZATION" => "Basic c2VjcmV0", "HTTP_X_PLAIN" => "seen \xFF".b }
    assert_page "HTTP_X_PLAIN"
    assert_page "seen \uFFFD"
    refute_includes last_response.body, "c2VjcmV0"
    refute_includes last_response.body, rack_mock_session.cookie_jar["magtag"]
    refute_includes last_response.body, MagTag::App.session_secret
  end

  def test_setup_is_for_an_empty_place_only
    store = MagTag::Store.new(File.join(Dir.mktmpdir("magtag-setup"), "magtag.db"))
    before = MagTag::App.store
    MagTag::App.set :store, store
    visit "/login"
    assert_page "/setup"
    visit "/setup"
    submit "/setup"
    password = last_response.body[/class="secret">([^<]+)/, 1]
    visit "/setup"
    assert_equal 404, last_response.status
    visit "/login"
    submit "/login", "name" => "viola", "password" => password
    visit "/home"
    assert_page "Rehearsal at six!"
  ensure
    MagTag::App.set :store, before
    FileUtils.rm_rf(File.dirname(store.path))
  end
end

# The same application, mounted somewhere below.
class MagTagUnderAPrefixTest < Minitest::Test
  include Visiting

  PREFIX = "/app"

  def test_every_link_and_form_stays_below_the_prefix
    name = sign_up
    assert_sent_to "/home"
    say "hello"
    sign_up
    ["/home", "/user/#{name}", "/logout", "/info", "/debug", "/nothing"].each do |path|
      visit path
      targets = last_response.body.scan(/(?:href|src|action)="([^"]+)"/).flatten
      refute_empty targets
      assert_empty(targets.reject { |target| target.start_with?("/app/") }, path)
    end
  end

  def test_the_door_and_the_stylesheet_are_below_it_too
    visit "/home"
    assert_sent_to "/login"
    visit "/magtag.css"
    assert_equal 200, last_response.status
  end
end
