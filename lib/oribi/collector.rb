# frozen_string_literal: true

require "oribi/heap"
require "oribi/native"

module Oribi
  # Collects a worker's garbage between two requests, where no client waits for it: after a reply
  # has gone out, shortly before Ruby would collect within a request. Ruby's own collector stays
  # on, so a request that needs more than any before it collects as it always would.
  class Collector
    # Room for less than so many requests: one more might have to collect.
    DUE = 1.5
    # Room for less than so many: worth it while nobody waits.
    SPARE = 2.5

    # `settings` is the Hash of the mold's `init` message.
    def initialize(settings)
      @workers = settings.fetch("workers", 1)
      @most = settings.fetch("max_gc_per_request", 0)
      @least = settings.fetch("min_gc_per_request", 0)
      @cap = settings.fetch("oob_gc_cap")
      @random = Random.new
      @heap = Heap.new
      begin_anew
    end

    # To be called when a reply is out and everything that belongs to it is done. Returns when the
    # seat may take the next request.
    def after_request(seat)
      @served += 1
      urgency = how_urgent
      return unless urgency && seat.step_aside(urgency, @workers)

      begin
        @heap.collect
        begin_anew
      ensure
        seat.come_back
      end
    end

    private

    # nil: not at all.
    def how_urgent
      looked = @heap.learn
      return Native::Seat::FORCED if @limit.positive? && @served >= @limit
      return Native::Seat::DUE if @limit.positive? && @served >= @first

      return unless looked

      room = @heap.room
      return if room > SPARE || !@heap.worthwhile?
      return Native::Seat::SPARE if room > DUE

      @heap.uncollected > @cap ? Native::Seat::FORCED : Native::Seat::DUE
    end

    # After how many requests at the latest, and from which on if nobody minds.
    def begin_anew
      @served = 0
      random = @least.positive? && @least < @most
      @limit = random ? @random.rand(@least..@most) : @most
      @first = random ? @least : (@most + 1) / 2
    end
  end
end
