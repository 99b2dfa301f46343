# frozen_string_literal: true

# Persistent CGI in plain Ruby (3.1 or newer), without a gem, an extension or a module of the web
# server. A script says
#
#   require "acgi"
#   ACGI.each_cgi { |cgi| cgi.out { "Hello" } }
#
# and stays in memory behind `index.cgi`, which the web server runs; hit directly it is an ordinary
# CGI script. `ruby acgi.rb --server DIR` is the server of such a script, or of a config.ru.
#
# docs/cgi.md is the manual.

# A script may name this file by another path than its server did.
return if defined?(ACGI::FILE)

require "fcntl"
require "fileutils"
require "rbconfig"
require "socket"
require "stringio"
require "tempfile"
require "time"
require "uri"

# See the head of this file.
module ACGI
  # A mistake of the one who installs or writes; its message is one line with the remedy.
  class Error < StandardError; end

  # An exception in full, with as much of the backtrace as is the app's.
  def self.describe(error)
    trace = error.backtrace.to_a
    ours = trace.index { |frame| frame.start_with?(FILE, "#{FILE.delete_suffix('.rb')}/") }
    error.set_backtrace(trace.first(ours)) if ours&.positive?
    error.full_message(highlight: false, order: :top)
  end
end

require_relative "acgi/spool"
require_relative "acgi/streams"
require_relative "acgi/script"
require_relative "acgi/run"
require_relative "acgi/head"
require_relative "acgi/variables"
require_relative "acgi/rack_app"
require_relative "acgi/place"
require_relative "acgi/command"
require_relative "acgi/settings"
require_relative "acgi/records"
require_relative "acgi/connection"
require_relative "acgi/paths"
require_relative "acgi/rack_env"
require_relative "acgi/rack_reply"
require_relative "acgi/builder"
require_relative "acgi/app"
require_relative "acgi/signals"
require_relative "acgi/worker"
require_relative "acgi/mold"
require_relative "acgi/watch"
require_relative "acgi/server"

# Where all of this is, to be started again.
ACGI::FILE = File.realpath(__FILE__)
ACGI::Command.main(ARGV) if $PROGRAM_NAME == __FILE__
