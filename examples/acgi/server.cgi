#!/usr/bin/env ruby
# frozen_string_literal: true

# Postcards: a page with a form, sessions and uploaded pictures, as a CGI script that stays in
# memory. What stands outside of the block runs once.
$LOAD_PATH.unshift(__dir__) # acgi.rb lies here in a folder made by `oribi cgi bundle`.
require "acgi"
require "cgi"
require "cgi/session"
require "erb"
require "securerandom"
require_relative "cards"

# Web servers have no language of their own.
Encoding.default_external = Encoding::UTF_8
PAGE = ERB.new(File.read(File.join(__dir__, "page.erb")), trim_mode: "-")
CARDS = Cards.new(Cards.place)

# One request.
class Visit
  def initialize(cgi)
    @cgi = cgi
    # CGI's own way to keep sessions: a file for each, where nobody else can read.
    @session = CGI::Session.new(cgi, "tmpdir" => CARDS.sessions, "prefix" => "visit-",
                                     "session_key" => "postcards")
    @session["token"] ||= SecureRandom.hex(16)
  end

  def answer
    case [@cgi.request_method, @cgi.path_info.to_s]
    in ["GET" | "HEAD", "" | "/"] then page
    in ["GET" | "HEAD", %r{\A/pictures/\h{16}\z}] then picture(@cgi.path_info[-16..])
    in ["POST", "" | "/"] then send_card
    else page("There is nothing at that place.", "NOT_FOUND")
    end
  ensure
    @session.close
  end

  private

  def page(note = nil, status = "OK")
    count = @session["count"].to_i
    name = @session["name"]
    cards = CARDS.latest
    @cgi.out("type" => "text/html", "charset" => "utf-8", "status" => status,
             "Cache-Control" => "no-store", "X-Content-Type-Options" => "nosniff") do
      PAGE.result_with_hash(home: home, token: @session["token"], note: note, cards: cards,
                            name: name, count: count)
    end
  end

  def picture(id)
    type, bytes = CARDS.picture(id)
    return page("There is no such picture.", "NOT_FOUND") unless bytes

    @cgi.out("type" => type, "X-Content-Type-Options" => "nosniff",
             "Cache-Control" => "private, max-age=86400") { bytes }
  end

  def send_card
    unless text("token") == @session["token"]
      return page("That form was too old: please send it again.", "FORBIDDEN")
    end

    CARDS.add(name: text("name"), text: text("text"), picture: @cgi.params["picture"]&.first)
    @session["name"] = text("name")
    @session["count"] = (@session["count"].to_i + 1).to_s
    # A reload of what follows sends nothing again.
    @cgi.out("status" => "REDIRECT", "Location" => home) { "" }
  rescue Cards::Refused => error
    page(error.message, "BAD_REQUEST")
  end

  def home = "#{@cgi.script_name}#{'/' unless @cgi.script_name.to_s.end_with?('.cgi')}"

  # A field of the form, whichever way the browser has sent it.
  def text(name)
    value = @cgi.params[name]&.first
    value = value.read if value.respond_to?(:read)
    value.to_s.dup.force_encoding(Encoding::UTF_8).scrub.strip
  end
end

ACGI.each_cgi { |cgi| Visit.new(cgi).answer }
