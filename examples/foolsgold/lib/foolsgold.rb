# frozen_string_literal: true

require "oribi"
require "securerandom"

# What gem.rs is for mruby, for CRuby: the same names, and the same counter in shared memory.
module FoolsGold
  VERSION = "0.0.1"
  # Where a request's context is in its env.
  CONTEXT = "FOOLSGOLD_REQUEST_CONTEXT"

  # A number that all processes and both engines share.
  class Counter
    def initialize(name)
      @counter = Oribi.counter(name)
    end

    def get = @counter.get

    def inc(by = 1) = @counter.increment(by)
  end

  # What is counted.
  class Metrics
    attr_reader :total_requests

    def initialize
      @total_requests = Counter.new(:foolsgold_total_requests)
    end
  end

  METRICS = Metrics.new

  # What a request brings along.
  class RequestContext
    attr_reader :trace_id

    def initialize
      @trace_id = SecureRandom.uuid
    end

    def metrics = METRICS
  end

  module Middleware
    # Gives each request its context.
    class Request
      def initialize(app)
        @app = app
      end

      def call(env)
        env[CONTEXT] = RequestContext.new
        @app.call(env)
      end
    end
  end
end
