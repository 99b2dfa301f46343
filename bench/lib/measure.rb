# frozen_string_literal: true

require "json"
require "open3"

module Bench
  # Measures one cell: one contender in one round, on a fresh server.
  class Measure
    def initialize(quick:, env:)
      @quick = quick
      @env = env
    end

    # A cell whose server did not start or whose requests failed carries `:error` or failures;
    # what is left in it is shown, but `sound` keeps it out of every comparison.
    def cell(row, contender)
      case contender.kind
      when :loop then call_loop(contender.stack.app)
      when :start then start(contender)
      else load(row, contender)
      end
    rescue StandardError => e
      { error: e.message }
    end

    def self.sound(cell)
      cell if cell && !cell[:error] && cell[:failures].to_i.zero?
    end

    # A running server for the block, ended whatever happens in it. The block's Hash comes back,
    # with `:unclean` if the server did not end as it should.
    def with(stack, **options)
      running = Running.new(stack, env: @env)
      begin
        running.start(**options)
        cell = yield running
      ensure
        complaints = running.stop
      end
      complaints.empty? ? cell : cell.merge(unclean: complaints)
    end

    def seconds(row)
      return row.seconds unless @quick

      row.seconds > 5 ? row.seconds / 4.0 : 1
    end

    private

    def load(row, contender)
      with(contender.stack, answer: row.options[:pids] ? "/pid" : "/") do |running|
        running.all_workers_up if row.options[:pids]
        load = contender.load
        load.run(running.target, @quick ? 0.5 : 1) if load.is_a?(Wrk) || load.warm?
        before = running.cpu
        result = load.run(running.target, seconds(row))
        result = with_cpu(result, running.cpu - before)
        result[:pss_mb] = ProcTree.pss(running.roots) if row.options[:memory]
        result
      end
    end

    def with_cpu(result, cpu)
      requests = result[:requests]
      return result.merge(cpu: cpu) if requests.zero? || cpu.zero?

      result.merge(cpu: cpu, cpu_us: cpu * 1_000_000 / requests, per_cpu: requests / cpu)
    end

    def call_loop(app)
      calls = app.end_with?("sinatra.ru") ? 3_000 : 50_000
      calls /= 2 if @quick
      command = [Gem.ruby, "#{Build::BENCH}/ceilings/call_loop.rb", app, calls.to_s]
      out, err, status = Open3.capture3({ "RACK_ENV" => "production" }, *command)
      raise "call_loop: #{err}" unless status.success?

      { cpu_us: JSON.parse(out).fetch("all") }
    end

    def start(contender)
      with(contender.stack) { |running| { start_ms: running.booted * 1_000 } }
    end
  end
end
