# The same names as in CRuby.

module Oribi
  @metrics = {}

  class << self
    def counter(name) = @metrics[[:counter, name]] ||= __counter(name)
    def gauge(name) = @metrics[[:gauge, name]] ||= __gauge(name)

    def histogram(name, buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10])
      @metrics[[:histogram, name]] ||= __histogram(name, buckets)
    end
  end
end
