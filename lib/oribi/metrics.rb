# frozen_string_literal: true

# What an app counts. A value is one across all workers, generations and mounts of a server, and
# lasts as long as it; without a server (a console, a test) it is the process's own.
module Oribi
  class << self
    # A number that only goes up: `increment(by = 1)`, `get`. Names are of a to z, 0 to 9, _ and :.
    def counter(name) = Metrics.counter(name)

    # A whole number that goes up and down: `set`, `increment(by = 1)`, `decrement(by = 1)`, `get`.
    def gauge(name) = Metrics.gauge(name)

    # Numbers sorted into buckets, seconds for instance: `observe(value)`, `count`, `sum`. The upper
    # bounds are those of the first call that names the metric.
    def histogram(name, buckets: Metrics::SECONDS) = Metrics.histogram(name, buckets)
  end

  # The metrics that this process has asked for, by name: finding one again is looking into a Hash.
  module Metrics
    # Upper bounds that suit the times of requests.
    SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10].freeze
    # Names that are remembered, lest an app that makes them up fills the memory.
    MOST = 2048

    @counters = {}
    @gauges = {}
    @histograms = {}

    class << self
      def counter(name)
        @counters[name] || remember(@counters, name) { |text| Native.counter(text) }
      end

      def gauge(name)
        @gauges[name] || remember(@gauges, name) { |text| Native.gauge(text) }
      end

      def histogram(name, bounds)
        @histograms[name] || remember(@histograms, name) do |text|
          Native.histogram(text, bounds.map { |bound| Float(bound) }.pack("d*"))
        end
      end

      private

      # What cannot be counted is said once and then counts nowhere: no request fails for it.
      def remember(known, name)
        # The extension's classes build on it.
        require "stringio"
        require "oribi/native"
        metric, line = yield name.to_s
        warn "oribi: #{line}" if line
        known[name] = metric if known.size < MOST
        metric
      end
    end
  end
end
