# frozen_string_literal: true

require "erubi"
require "rack/session/cookie"
require "sinatra/base"
require_relative "facts"
require_relative "helpers"
require_relative "samples"
require_relative "secret"
require_relative "store"

# A small microblog: who you are, what you say in 140 characters, whom you follow.
module MagTag
  # The pages. Everything that changes something is a POST and carries a token.
  class App < Sinatra::Base
    DATABASE = ENV.fetch("MAGTAG_DB") { File.expand_path("tmp/magtag.db", __dir__) }

    set :root, __dir__
    set :store, Store.new(DATABASE)
    set :facts, Facts.new
    set :stylesheet, File.mtime(File.join(__dir__, "public/magtag.css")).to_i

    set :erb, escape_html: true
    set :absolute_redirects, false
    set :static_cache_control, [:public, { max_age: 3_600 }]

    # Sinatra's own page for exceptions shows the whole env. Ours says sorry; the log has the rest.
    set :show_exceptions, false
    set :raise_errors, false

    # Plain JSON in the cookie, never Marshal: both Rack 2's `coder` and the option that took its
    # place in Rack 3 say so. Not marked secure, because the example is served over plain HTTP too.
    set :sessions, key: "magtag", httponly: true, same_site: :lax, expire_after: 30 * 86_400,
                   coder: Rack::Session::Cookie::Base64::JSON.new, serialize_json: true
    set :session_store, Rack::Session::Cookie
    set :session_secret, Secret.fetch(File.join(File.dirname(DATABASE), "secret"))

    set :protection, use: %i[authenticity_token content_security_policy], reaction: :deny,
                     message: "This form is too old, or not ours. Go back, reload and try again.",
                     default_src: "'none'", style_src: "'self'", img_src: "'self' data:",
                     form_action: "'self'", base_uri: "'none'", frame_ancestors: "'none'"

    helpers Helpers

    before do
      settings.facts.count
      @notice = session.delete("notice") if request.get? && session.key?("notice")
    end

    error(Store::Refused) { |refused| halt 422, erb(:sorry, locals: { text: refused.message }) }
    error { erb :sorry, locals: { text: "Something broke on our side." } }
    not_found { erb :sorry, locals: { text: "There is no such page." } }

    get("/") { go "/home" }

    get "/home" do
      need_login
      home
    end

    post "/tweet" do
      need_login
      settings.store.post(me["id"], field("text"))
      go "/home"
    rescue Store::Refused => e
      status 422
      home(problem: e.message, draft: field("text"))
    end

    get("/login") { me ? go("/home") : entrance(:login) }

    post "/login" do
      user = settings.store.log_in(field("name"), field("password"))
      if user
        log_in(user)
        go "/home"
      end
      status 422
      entrance(:login, problem: "Name and password do not fit together.")
    end

    get "/logout" do
      need_login
      erb :logout
    end

    post "/logout" do
      session.clear
      go "/login"
    end

    get("/signup") { me ? go("/home") : entrance(:signup) }

    post "/signup" do
      log_in(settings.store.sign_up(field("name"), field("password")))
      notice "Welcome. Say something, or follow somebody."
      go "/home"
    rescue Store::Refused => e
      status 422
      entrance(:signup, problem: e.message)
    end

    get "/user/:name" do
      profile(person)
    end

    post "/follow/:name" do
      need_login
      settings.store.follow(me["id"], person["id"])
      go back_to(person)
    end

    post "/unfollow/:name" do
      need_login
      settings.store.unfollow(me["id"], person["id"])
      go back_to(person)
    end

    # Fills an empty MagTag with sample people. Once there is anybody, it is over.
    get "/setup" do
      halt 404 unless settings.store.empty?
      erb :setup, locals: { password: nil }
    end

    post "/setup" do
      halt 404 unless settings.store.empty?
      erb :setup, locals: { password: Samples.load(settings.store) }
    end

    get "/info" do
      erb :facts, locals: { title: "Info", groups: settings.facts.info(env) }
    end

    get "/debug" do
      erb :facts, locals: { title: "Debug", groups: { "The env" => settings.facts.debug(env) } }
    end

    private

    def home(problem: nil, draft: "")
      erb :home, locals: { posts: settings.store.timeline(me["id"]), problem: problem, draft: draft,
                           counts: settings.store.counts(me["id"]),
                           strangers: settings.store.strangers(me["id"]) }
    end

    def entrance(page, problem: nil)
      erb page, locals: { problem: problem, name: field("name"), empty: settings.store.empty? }
    end

    def profile(user)
      erb :user, locals: { user: user, posts: settings.store.posts_of(user["id"]),
                           counts: settings.store.counts(user["id"]),
                           followed: me && settings.store.follows?(me["id"], user["id"]) }
    end

    def person
      @person ||= settings.store.user_named(field("name")) || halt(404)
    end

    # Follow buttons are on two pages; the form says on which it was. Nothing else is believed.
    def back_to(user)
      field("from") == "home" ? "/home" : "/user/#{user["name"]}"
    end
  end
end
