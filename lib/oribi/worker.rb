# frozen_string_literal: true

require "oribi/errors"
require "oribi/input"
require "oribi/spooled_input"
require "oribi/version"
require "stringio"
require "oribi/native"
require "oribi/callables"
require "oribi/collector"
require "oribi/hooks"
require "oribi/rack_errors"
require "oribi/reply"
require "oribi/timeout"
require "oribi/warm_up"

module Oribi
  # One worker process: its threads take requests from the queue, call the app, reply.
  class Worker
    # `settings` is the Hash of the mold's `init` message, `seat` the first of the worker's seats in
    # the segment.
    def initialize(app, nr:, seat:, settings:, hooks: Hooks.new)
      @app = app
      @nr = nr
      @settings = settings
      @hooks = hooks
      @warm_up = settings["warm_up"]
      @fresh = settings["isolation"] == "fresh"
      @early_hints = settings.fetch("early_hints", false)
      @rack = rack_release
      threads = settings.fetch("threads", 1)
      multiprocess = settings.fetch("workers", 1) > 1
      @template = template_env(multithread: threads > 1, multiprocess: multiprocess)
      generation = settings.fetch("generation")
      @myself = Hooks::Worker.new(nr, generation, Process.pid).freeze
      @seats = Native.seats(seat, threads, generation)
      hard, @soft = settings.values_at("request_timeout", "request_timeout_soft")
      @seats.each { |one| one.timeouts(hard, @soft) }
      @alarm = Alarm.new(nr, @seats, hooks)
    end

    # Takes no more requests. Safe in a trap.
    def retire = @seats.each(&:retire)

    def leaving? = @seats.all?(&:retired?)

    # Does, of what comes before the first request, what leaves nothing behind: for a mold.
    def rehearse = take_place(@seats.first, [], [])

    # What comes before the first request. Raises Unfit when there should be none.
    def prepare
      @hooks.run("after_fork", @myself) do |error|
        Report.write(error)
        raise Unfit, "after_fork: #{Report.line(error)}"
      end
      warm_up unless @fresh || leaving?
    end

    # The request that is put to the app before those of clients, if there is one.
    def warm_up
      return unless @warm_up

      timeout = Timeout.new(@seats.first, @alarm)
      WarmUp.check(@app, { **@template, "oribi.timeout" => timeout }, @warm_up)
    end

    # Serves until the worker is to leave.
    def run
      @collector = Collector.new(@settings) if @settings["oob_gc"]
      Native.rack_release(*@rack)
      @alarm.listen if @soft&.positive?
      first, *others = @seats
      threads = others.map { |seat| Thread.new { serve(seat) } }
      serve(first)
      threads.each(&:join)
      @alarm.stop
      @hooks.run("before_worker_exit", @myself) { |error| Report.write(error) }
      raise @ending if @ending
    end

    private

    # Which of Rack's rules hold: major and minor.
    def rack_release
      release = defined?(Rack.release) ? Rack.release : "3.0"
      release.split(".").first(2).map { |number| Integer(number, 10) }
    end

    # What every request's env starts as. Values that a request rarely changes are here, so that
    # they need not be made anew; frozen, so that no app can change them for the next request.
    def template_env(multithread:, multiprocess:)
      # The path of `OPTIONS *`, the one request that brings none: until Rack 3.1 it had to be
      # empty, from 3.2 on it must not be.
      path = (@rack <=> [3, 1]).negative? ? "" : "*"
      binary = { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path,
                 "QUERY_STRING" => "", "SERVER_PROTOCOL" => "HTTP/1.1",
                 "HTTP_VERSION" => "HTTP/1.1", "SERVER_SOFTWARE" => "oribi/#{VERSION}",
                 "rack.url_scheme" => "http" }
      env = binary.transform_values { |value| value.b.freeze }
      env["rack.version"] = [1, 3].freeze if @rack.first < 3
      env.merge("rack.input" => NullInput, "rack.errors" => $stderr,
                "rack.multithread" => multithread, "rack.multiprocess" => multiprocess,
                "rack.run_once" => false, "rack.hijack?" => true)
    end

    # A seat's own part of the env: what it holds belongs to the request that the seat serves. The
    # two lists are made once, since hardly any request uses them, and emptied when one has.
    def take_place(seat, finished, after)
      own = { "rack.response_finished" => finished, "rack.after_reply" => after,
              "oribi.timeout" => @alarm.timeout_of(seat) }
      # What a client gets through a gateway, that one decides: no connection and no hints to give.
      seat.gateway_template = @template.merge(own, "rack.hijack?" => false,
                                                   "rack.errors" => RackErrors.new(seat))
      own["rack.hijack"] = Hijack.new(seat)
      own["rack.early_hints"] = EarlyHints.new(seat) if @early_hints
      seat.template = @template.merge(own)
    end

    def serve(seat)
      take_place(seat, finished = [], after = [])
      hooked = @hooks.any?("after_request_complete")
      until @ending || (env = seat.take).nil?
        status = headers = error = nil
        begin
          status, headers, body = @app.call(env)
          answer(seat, env, status, headers, body)
        rescue Exception => error # rubocop:disable Lint/RescueException
          failed(seat, env, error)
        end
        unless finished.empty? && after.empty? && !hooked
          replied(env, finished, env, status, headers, error)
          replied(env, after)
          completed(env) if hooked
        end
        @collector&.after_request(seat)
      end
    rescue SystemExit, SignalException => error
      # From a thread of the app's own, which reaches whatever the main thread does.
      @ending ||= error
    ensure
      # An app may end its thread without an exception: nobody waits for the rest of that reply,
      # and no worker goes on with a thread less.
      @seats.each(&:retire)
      seat.cut
    end

    def answer(seat, env, status, headers, body)
      case seat.reply(status, headers, body)
      when true then nil
      when false then Reply.send_body(seat, env, body)
      else Reply.send_special(seat, env, status, headers, body)
      end
    ensure
      body.close if body.respond_to?(:close)
      seat.conclude unless body.instance_of?(Array)
    end

    # The worker lives on, except when the app asked the process to end: it then leaves once its
    # other threads have answered what they have.
    def failed(seat, env, error)
      @ending ||= error if error.is_a?(SystemExit) || error.is_a?(SignalException)
      # One line for the web server's log, where it has one; ours gets all of it.
      seat.errors(Report.beside_reply(env, error), true) if seat.gateway?
      if seat.reply_started?
        seat.cut
      else
        seat.reply(500, { "content-type" => "text/plain" }, ["Internal Server Error\n"])
      end
      report(env, error)
    end

    # Calls what the app wants to be called once the reply is out. rack.response_finished: the last
    # one first.
    def replied(env, callables, *arguments)
      list = arguments.empty? ? callables.dup : callables.reverse
      callables.clear
      list.each do |callable|
        callable.call(*arguments)
      rescue Exception => error # rubocop:disable Lint/RescueException
        @ending ||= error if error.is_a?(SystemExit) || error.is_a?(SignalException)
        report(env, error)
      end
    end

    def completed(env)
      @hooks.run("after_request_complete", env, @myself) do |error|
        @ending ||= error if error.is_a?(SystemExit) || error.is_a?(SignalException)
        report(env, error)
      end
    end

    def report(env, error) = Report.request(@nr, env, error)
  end
end
