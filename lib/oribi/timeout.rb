# frozen_string_literal: true

require "oribi/errors"

module Oribi
  # `env["oribi.timeout"]`: how long the request may still run. One for each seat, for the request
  # it serves at the moment; any thread may call it. Without a request it does nothing.
  class Timeout
    # The seat, and the thread that serves it.
    attr_reader :seat, :thread

    def initialize(seat, alarm)
      @seat = seat
      @alarm = alarm
      @thread = Thread.current
    end

    # Seconds until the client gets a 504 and the worker is killed; nil: never.
    def remaining = @seat.remaining

    # So many seconds more, for the backtrace in the log too; what has no limit keeps none.
    # Returns what remains.
    def extend(seconds)
      @seat.prolong(positive(seconds))
      remaining
    end

    # From now on so many seconds, and the backtrace in the log after `soft` seconds, in place of
    # all that was. nil: never.
    def set(seconds, soft: nil)
      @alarm.listen if soft
      @seat.limit(seconds && positive(seconds), soft && positive(soft))
      remaining
    end

    # The request may run for ever, and is not logged for it.
    def cancel = set(nil)

    def inspect = "#<Oribi::Timeout>"

    private

    def positive(seconds)
      number = Float(seconds)
      return number if number.positive?

      raise ArgumentError, "#{seconds} is no number of seconds above 0"
    end
  end

  # Says where requests are that have run for `request_timeout_soft`, when the supervisor asks. It
  # does not ask by a signal, which would interrupt the system call that a request waits in, so a
  # thread of its own waits for it.
  class Alarm
    def initialize(number, seats, hooks)
      @number = number
      @first = seats.first
      @hooks = hooks
      @timeouts = []
    end

    # The `Timeout` of one seat, for its own thread to call.
    def timeout_of(seat)
      Timeout.new(seat, self).tap { |timeout| @timeouts << timeout }
    end

    # Waits for alarms from now on, if it does not yet.
    def listen
      @listener = Thread.new { loop { wait_and_look } } unless @listener&.alive?
    end

    def stop = @listener&.kill

    private

    # One that comes while it looks is not waited for.
    def wait_and_look
      seen = @first.alarms
      look
      @first.wait_for_alarm(seen)
    end

    def look
      @timeouts.each do |timeout|
        env = timeout.seat.alarmed or next
        seconds = timeout.seat.age
        # A CGI script runs in a thread of its own.
        thread = timeout.thread.thread_variable_get(:oribi_works) || timeout.thread
        trace = thread.backtrace
        # It may have ended in between; then that was another one's.
        tell(env, seconds, trace, thread) if trace && timeout.seat.env.equal?(env)
      end
    end

    def tell(env, seconds, trace, thread)
      Report.slow(@number, env, seconds, trace)
      @hooks.run("on_request_timeout", env, thread) { |error| Report.request(@number, env, error) }
    end
  end
end
