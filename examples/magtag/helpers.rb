# frozen_string_literal: true

require "zlib"

module MagTag
  # What the pages need.
  module Helpers
    UNITS = [["d", 86_400], ["h", 3_600], ["min", 60]].freeze
    HUES = 8

    # A link that holds under any prefix the application is mounted at.
    def at(path)
      url(path, false)
    end

    def go(path)
      redirect at(path), 303
    end

    def me
      @me ||= settings.store.user(session["user"])
    end

    def need_login
      go "/login" unless me
    end

    # A hidden field without which a form is refused.
    def token
      value = Rack::Protection::AuthenticityToken.token(session)
      %(<input type="hidden" name="authenticity_token" value="#{value}">)
    end

    # A field as text, whatever somebody sent in its place.
    def field(name)
      value = params[name]
      value.is_a?(String) ? value.scrub : ""
    end

    def log_in(user)
      session.clear
      session["user"] = user["id"]
    end

    # A message for the next page.
    def notice(text)
      session["notice"] = text
    end

    def ago(seconds)
      passed = Time.now.to_i - seconds
      unit, size = UNITS.find { |_, length| passed >= length }
      unit ? "#{passed / size} #{unit}" : "now"
    end

    def clock(seconds)
      Time.at(seconds).utc.strftime("%FT%TZ")
    end

    # Everybody has a colour, always the same.
    def hue(name)
      "hue-#{Zlib.crc32(name.downcase) % HUES}"
    end
  end
end
