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
        return $stderr.write(record(error, error.backtrace, named(env))) if @mark

        message = "#{error.message.tr("\n", ' ')}\n" if error.is_a?(BadReply)
        message ||= error.full_message(highlight: false)
        $stderr.write(line_of(number, env) << message.b)
      end

      # The same for the log of a web server: one line, and where it was. It comes before the reply,
      # so nothing that an exception says of itself may prevent it.
      def beside_reply(env, error)
        said = brief(error) rescue error.class.name.b # rubocop:disable Style/RescueModifier
        "oribi: ".b << named(env).values_at("method", "path").join(" ") << ": " << said << "\n"
      end

      # A request that has run for long, and where its thread is: the app's part of the backtrace.
      def slow(number, env, seconds, backtrace)
        message = format("has run for %.1f s (request_timeout_soft)", seconds)
        trace = app_part(Array(backtrace))
        if @mark
          fields = { "message" => message, **named(env), "seconds" => seconds.round(3) }
          return $stderr.write(json(fields, trace))
        end
        lines = trace.map { |frame| "\tfrom #{frame}\n".b }
        $stderr.write(line_of(number, env) << message << "\n" << lines.join)
      end

      private

      # The request in a record. As bytes: path and message need not be of one encoding.
      def named(env)
        names = %w[REQUEST_METHOD SCRIPT_NAME PATH_INFO]
        method, *path = env.values_at(*names).map { |value| value.to_s.b }
        { "method" => method, "path" => path.join, "request_id" => env["HTTP_X_REQUEST_ID"] }
      end

      def line_of(number, env)
        "oribi: worker #{number}: ".b << named(env).values_at("method", "path").join(" ") << ": "
      end

      # What is below our call of the app is the same for all requests.
      def app_part(trace)
        below = trace.rindex { |frame| frame.start_with?(OURS) }
        trace.take(below || trace.size).reject { |frame| frame.start_with?(OURS) }
      end

      def record(error, backtrace, fields = {})
        cause = error.cause
        json({ "message" => summary(error), "exception" => error.class.name, **fields,
               "cause" => cause && summary(cause) }, backtrace)
      end

      def json(fields, backtrace)
        fields = fields.compact.transform_values { |one| one.is_a?(Float) ? one : utf8(one) }
        fields = @who.merge(fields, "backtrace" => Array(backtrace).map { |line| utf8(line) })
        "#{@mark}#{JSON.generate(fields)}\n"
      end

      # As bytes: class, message and place need not be of one encoding.
      def brief(error)
        return error.message.b.tr("\n", " ") if error.is_a?(BadReply)

        place = Report.own_backtrace(error).first.to_s.b[/\A.+?:\d+/n]
        summary(error).lines.first.chomp << (place ? " (#{place})" : "")
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
