# frozen_string_literal: true

require "oribi/file_body"
require "oribi/input"
require "oribi/spooled_input"
require "oribi/version"
require "stringio"
require "oribi/native"

module Oribi
  # One worker process: its threads take requests from the queue, call the app, reply.
  class Worker
    # Takes over the calling process until it is to leave. `settings` is the Hash of the mold's
    # `init` message, `seat` the first of the worker's seats in the segment.
    def self.run(app, nr:, seat:, settings:)
      new(app, nr: nr, seat: seat, settings: settings).run
    end

    def initialize(app, nr:, seat:, settings:)
      @app = app
      @nr = nr
      @generation = settings.fetch("generation")
      @mount = settings.fetch("mount", "/")
      threads = settings.fetch("threads", 1)
      multiprocess = settings.fetch("workers", 1) > 1
      template = template_env(multithread: threads > 1, multiprocess: multiprocess)
      @seats = Native.seats(seat, threads, @generation, template)
    end

    def run
      Process.setproctitle("oribi: worker #{@nr} gen #{@generation} #{@mount}")
      %w[TERM QUIT].each { |signal| trap(signal) { @seats.each(&:retire) } }
      first, *others = @seats
      threads = others.map { |seat| Thread.new { serve(seat) } }
      serve(first)
      threads.each(&:join)
    end

    private

    # What every request's env starts as. Values that a request rarely changes are here, so that
    # they need not be made anew; frozen, so that no app can change them for the next request.
    def template_env(multithread:, multiprocess:)
      binary = { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/",
                 "QUERY_STRING" => "", "SERVER_PROTOCOL" => "HTTP/1.1",
                 "HTTP_VERSION" => "HTTP/1.1", "SERVER_SOFTWARE" => "oribi/#{VERSION}",
                 "rack.url_scheme" => "http" }
      binary.transform_values { |value| value.b.freeze }.merge(
        "rack.version" => [1, 3].freeze, "rack.input" => NullInput, "rack.errors" => $stderr,
        "rack.multithread" => multithread, "rack.multiprocess" => multiprocess,
        "rack.run_once" => false, "rack.hijack?" => false
      )
    end

    def serve(seat)
      while (env = seat.take)
        begin
          status, headers, body = @app.call(env)
          answer(seat, status, headers, body)
        rescue Exception => error # rubocop:disable Lint/RescueException
          failed(seat, env, error)
        end
      end
    ensure
      # An app may end its thread without an exception: nobody waits for the rest of that reply,
      # and no worker goes on with a thread less.
      @seats.each(&:retire)
      seat.cut
    end

    def answer(seat, status, headers, body)
      headers = headers.to_h unless headers.is_a?(Hash) || headers.nil?
      return if FileBody.reply(seat, status.to_i, headers, body)
      return if seat.reply(status.to_i, headers, body)

      body.each { |part| break unless seat.write(part) }
      seat.finish
    ensure
      body.close if body.respond_to?(:close)
    end

    # The worker lives on, except when the app asked the process to end.
    def failed(seat, env, error)
      if seat.reply_started?
        seat.cut
      else
        seat.reply(500, { "content-type" => "text/plain" }, ["Internal Server Error\n"])
      end
      report(env, error)
      raise error if error.is_a?(SystemExit) || error.is_a?(SignalException)
    end

    def report(env, error)
      # As bytes: path and message need not be of one encoding.
      names = %w[REQUEST_METHOD SCRIPT_NAME PATH_INFO]
      method, *path = env.values_at(*names).map { |value| value.to_s.b }
      message = error.full_message(highlight: false).b
      $stderr.write("oribi: worker #{@nr}: #{method} #{path.join}: ".b << message)
    end
  end
end
