# frozen_string_literal: true

require "oribi/errors"

module Oribi
  # `env["oribi.timeout"]`: how long the request may still run. One for each seat, for the request
  # it serves at the moment; any thread may call it. Without a request it does nothing.
  class Timeout
    # The seat, and the thread that serves it.
    attr_reader :seat, :thread

    def initialize(seat)
      @seat = seat
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

  # Says where requests are that have run for `request_timeout_soft`, when the supervisor asks with
  # SIGURG, which does nothing to a process that does not listen.
  class Alarm
    def initialize(number, hooks)
      @number = number
      @hooks = hooks
      @timeouts = []
    end

    # A seat's thread is to be asked too.
    def watch(timeout) = @timeouts << timeout

    # A trap may neither lock nor wait, so a thread does what is to be done.
    def listen
      trap("URG") { Thread.new { ring } }
    end

    private

    def ring
      @timeouts.each do |timeout|
        env = timeout.seat.alarmed or next
        seconds = timeout.seat.age
        trace = timeout.thread.backtrace
        # It may have ended in between; then that was another one's.
        tell(env, seconds, trace, timeout.thread) if timeout.seat.env.equal?(env)
      end
    end

    def tell(env, seconds, trace, thread)
      Report.slow(@number, env, seconds, trace)
      @hooks.run("on_request_timeout", env, thread) { |error| Report.request(@number, env, error) }
    rescue Exception => error # rubocop:disable Lint/RescueException
      Report.request(@number, env, error)
    end
  end
end
