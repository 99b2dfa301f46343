# frozen_string_literal: true

require "json"

module Oribi
  # Something the person who started the server can mend; the message says how.
  class Error < StandardError; end

  # A new worker could not get ready; the message says at what.
  class Unfit < Error; end

  # An exception of the app, for people and for logs: its own lines without ours.
  module Report
    OURS = File.expand_path("..", __dir__)
    private_constant :OURS

    @who = {}

    class << self
      # What tells the supervisor's log that a line is a record; none: it wants text.
      attr_writer :mark

      # Fields of all records from now on, added to those of before: who writes them.
      def record_as(fields)
        @who = @who.merge(fields)
      end

      # An exception that ends a process or a boot.
      def write(error)
        $stderr.write(@mark ? record(error, own_backtrace(error)) : full(error))
      end

      # An exception that a request has ended with. In one write, and thus in one piece.
      def request(number, env, error)
        # As bytes: path and message need not be of one encoding.
        names = %w[REQUEST_METHOD SCRIPT_NAME PATH_INFO]
        method, *path = env.values_at(*names).map { |value| value.to_s.b }
        if @mark
          fields = { "method" => method, "path" => path.join,
                     "request_id" => env["HTTP_X_REQUEST_ID"] }
          return $stderr.write(record(error, error.backtrace, fields))
        end
        message = "#{error.message.tr("\n", ' ')}\n" if error.is_a?(BadReply)
        message ||= error.full_message(highlight: false)
        $stderr.write("oribi: worker #{number}: #{method} #{path.join}: ".b << message.b)
      end

      private

      def record(error, backtrace, fields = {})
        cause = error.cause
        fields = { "message" => summary(error), "exception" => error.class.name, **fields,
                   "cause" => cause && summary(cause) }.compact
        fields = @who.merge(fields.transform_values { |value| utf8(value) },
                            "backtrace" => Array(backtrace).map { |line| utf8(line) })
        "#{@mark}#{JSON.generate(fields)}\n"
      end

      def summary(error) = "#{error.class}: ".b << error.message.to_s.b

      def utf8(text) = text.to_s.dup.force_encoding(Encoding::UTF_8).scrub
    end

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
