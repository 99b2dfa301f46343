# frozen_string_literal: true

require "socket"

module Oribi
  # `rack.hijack`: gives the client's connection to the app. One for each seat, for the request it
  # serves at the moment.
  class Hijack
    def initialize(seat)
      @seat = seat
    end

    # The app's end of a pair; the front has the other and carries bytes between it and the client.
    # Raises IOError when the response has begun, or is over.
    def call
      env = @seat.env
      return env["rack.hijack_io"] if @seat.hijacked?

      mine, theirs = UNIXSocket.pair
      @seat.hijack(theirs.fileno)
      env["rack.hijack_io"] = mine
    rescue IOError
      mine&.close
      raise
    ensure
      theirs&.close
    end

    def inspect = "#<Oribi::Hijack>"
  end

  # `rack.early_hints`: sends `103 Early Hints` before the response. One for each seat.
  class EarlyHints
    def initialize(seat)
      @seat = seat
      @thread = Thread.current
    end

    # Late hints are nobody's: they are dropped.
    def call(headers)
      @seat.interim(103, Reply.hash_of(headers)) if @thread.equal?(Thread.current)
      nil
    end

    def inspect = "#<Oribi::EarlyHints>"
  end
end
