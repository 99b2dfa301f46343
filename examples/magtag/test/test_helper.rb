# frozen_string_literal: true

require "minitest/autorun"
require "securerandom"
require "tmpdir"

ENV["APP_ENV"] = "test"

# A database of its own, gone when the tests are over.
directory = Dir.mktmpdir("magtag")
ENV["MAGTAG_DB"] = File.join(directory, "magtag.db")
Minitest.after_run { FileUtils.rm_rf(directory) }

require_relative "../magtag"

module MagTag
  # A name that no other test has.
  def self.fresh_name
    "t#{SecureRandom.hex(6)}"
  end
end
