# frozen_string_literal: true

require "json"
require "open3"
require "tempfile"
require_relative "build"

# What is put on a server. A load answers with a Hash: requests, failures, rps, and what else the
# generator knows.
module Bench
  # wrk: plain closed-loop throughput over TCP.
  class Wrk
    def initialize(connections, close: false)
      @connections = connections
      @close = close
    end

    def command(target, seconds)
      ["wrk", "-t1", "-c#{@connections}", "-d#{[seconds.round, 1].max}s", "--timeout", "10s",
       *(["-H", "Connection: close"] if @close), target.sub("tcp://", "http://")]
    end

    def run(target, seconds)
      out, status = Open3.capture2e(*command(target, seconds))
      raise "wrk: #{out}" unless status.success?

      self.class.parse(out)
    end

    # wrk shortens its times, but it prints requests and seconds in full.
    def self.parse(out)
      requests, seconds = out.match(/(\d+) requests in ([\d.]+)s/).captures
      bad = out[/Non-2xx or 3xx responses: (\d+)/, 1].to_i
      errors = out[/Socket errors: (.*)/, 1].to_s.scan(/\d+/).sum(&:to_i)
      good = requests.to_i - bad
      { requests: good, failures: bad + errors, seconds: seconds.to_f,
        rps: good / seconds.to_f }
    end
  end

  # oribi-load, the bench's own client.
  class Client
    def initialize(mode, warm: false, **options)
      @mode = mode
      @warm = warm
      @options = options
    end

    # Whether the first moments are run once in vain.
    def warm?
      @warm
    end

    def run(target, seconds)
      flags = @options.flat_map do |name, value|
        flag = "--#{name.to_s.tr("_", "-")}"
        value == true ? [flag] : [flag, value.to_s]
      end
      out, err, status = Open3.capture3(Build.binary("oribi-load"), @mode.to_s, "--to", target,
                                        "--seconds", seconds.to_s, *flags)
      raise "oribi-load: #{err}" unless status.success?

      flatten(JSON.parse(out, symbolize_names: true))
    end

    private

    def flatten(result)
      parts = result.values_at(:fast, :slow).compact
      return result if parts.empty?

      result.merge(requests: parts.sum { |part| part[:requests] },
                   failures: parts.sum { |part| part[:failures] },
                   latency_us: result[:fast][:latency_us])
    end
  end

  # The same, with every latency kept for pooling over the rounds.
  class Sampled < Client
    def run(target, seconds)
      Tempfile.create("oribi-bench-samples") do |file|
        @options[:samples] = file.path
        super.merge(samples: File.binread(file.path).unpack("L<*"))
      end
    end
  end
end
