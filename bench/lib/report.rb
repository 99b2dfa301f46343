# frozen_string_literal: true

module Bench
  # What people see: a block for each row, and all verdicts once more at the end.
  class Report
    def initialize(out)
      @out = out
    end

    def row(row, rounds, verdicts)
      @out.puts "", "#{row.name}: #{row.title}"
      row.contenders.each_key { |name| contender(name, rounds.map { |round| round[name] }) }
      verdicts.each { |verdict| @out.puts "  #{verdict_line(verdict)}" }
    end

    def summary(results)
      @out.puts "", "All rows"
      width = results.map { |result| result[:name].size }.max
      results.each do |result|
        result[:checks].each do |verdict|
          @out.puts "  #{result[:name].ljust(width)}  #{verdict_line(verdict)}"
        end
      end
    end

    private

    def contender(name, cells)
      sound = cells.select { |cell| Measure.sound(cell) }
      parts = FIGURES.filter_map do |pattern, pick|
        value = Numbers.median(sound.filter_map { |cell| pick.call(cell) })
        format(pattern, value) if value
      end
      counted = cells.filter_map { |cell| cell[:failures] }
      parts << "failures #{counted.sum}" if counted.any?
      parts << "#{cells.size - sound.size} of #{cells.size} rounds void" if sound.size < cells.size
      @out.puts "  #{name.to_s.ljust(8)} #{parts.join("  ")}"
      cells.flat_map { |cell| [cell[:error], *cell[:unclean]].compact }.uniq.each do |error|
        @out.puts error.gsub(/^/, " " * 11)
      end
    end

    FIGURES = {
      "%9.0f/s" => ->(c) { c[:rps] || c.dig(:fast, :rps) },
      "%7.2f us CPU" => ->(c) { c[:cpu_us] },
      "%7.0f/CPU-s" => ->(c) { c[:per_cpu] },
      "served %.4f" => ->(c) { c[:served] },
      "p50 %.2f" => ->(c) { c.dig(:latency_us, :p50)&.fdiv(1_000) },
      "p90 %.2f" => ->(c) { c.dig(:latency_us, :p90)&.fdiv(1_000) },
      "p95 %.2f" => ->(c) { c.dig(:latency_us, :p95)&.fdiv(1_000) },
      "p99 %.2f" => ->(c) { c.dig(:latency_us, :p99)&.fdiv(1_000) },
      "max %.1f ms" => ->(c) { c.dig(:latency_us, :max)&.fdiv(1_000) },
      "%.1f MB" => ->(c) { c[:pss_mb] },
      "%.0f ms to the first answer" => ->(c) { c[:start_ms] }
    }.freeze

    def verdict_line(verdict)
      measured = verdict[:measured] ? format("%.3f", verdict[:measured]) : "no figure"
      if verdict[:goal]
        goal = "; goal #{verdict[:goal]} #{verdict[:goal_reached] ? "reached" : "open"}"
      end
      "#{verdict[:verdict].ljust(6)}  #{verdict[:label]}: #{measured} (#{verdict[:target]}#{goal})"
    end
  end
end
