# frozen_string_literal: true

module Oribi
  # Something the person who started the server can mend; the message says how.
  class Error < StandardError; end

  # An exception of the app, for people: its own lines without ours.
  module Report
    OURS = File.expand_path("..", __dir__)
    private_constant :OURS

    module_function

    # Class, message and place on one line.
    def line(error)
      message = error.message.to_s.lines.first.to_s.chomp
      place = own_backtrace(error).first.to_s[/\A(.+?:\d+)/, 1]
      "#{error.class}: #{message}#{" (#{place})" if place}"
    end

    # Message and backtrace, as Ruby would print them.
    def full(error)
      error.set_backtrace(own_backtrace(error))
      error.full_message(highlight: $stderr.tty?, order: :top)
    end

    def own_backtrace(error)
      trace = error.backtrace || []
      own = trace.reject { |frame| frame.start_with?(OURS, "-e:") }
      own.empty? ? trace : own
    end
  end
end
