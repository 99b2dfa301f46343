# frozen_string_literal: true

require "etc"
require "json"
require "fileutils"
require "securerandom"
require "tmpdir"
%w[numbers proc_tree build servers load measure rows budget report machine].each do |part|
  require_relative part
end

module Bench
  # Runs the rows: round after round, in each round every contender once, so that what disturbs
  # the machine for a while disturbs all of them.
  class Runner
    def initialize(options)
      @options = options
      @scratch = Dir.mktmpdir("oribi-bench-")
      env = { "BENCH_TURNS" => Machine.turns.to_s, "MAGTAG_DB" => "#{@scratch}/magtag.db",
              "MAGTAG_SECRET" => SecureRandom.hex(64) }
      @measure = Measure.new(quick: options[:quick], env: env)
      @report = Report.new($stdout)
    end

    def run(rows)
      machine = Machine.facts
      puts Machine.lines(machine)
      results = rows.map { |row| run_row(row) }
      budget = Budget.new(@measure).run if @options[:budget]
      @report.summary(results) if results.any?
      save(machine, results, budget)
    ensure
      FileUtils.remove_entry(@scratch)
    end

    private

    def run_row(row)
      rounds = Array.new(@options[:rounds]) do |nr|
        row.contenders.to_h do |name, contender|
          progress "#{row.name}, round #{nr + 1} of #{@options[:rounds]}: #{name}"
          [name, @measure.cell(row, contender)]
        end
      end
      progress nil
      verdicts = row.checks.map { |check| verdict(check, rounds) }
      # What fails in our own cells is a miss of its own, whatever the speed.
      verdicts << failures(row, rounds)
      @report.row(row, rounds, verdicts)
      { name: row.name, title: row.title, seconds: @measure.seconds(row),
        rounds: rounds.map { |cells| cells.transform_values { |cell| cell.except(:samples) } },
        checks: verdicts }
    end

    def verdict(check, rounds)
      value = figure(check, rounds)
      met = !value.nil? && check.meets?(value, check.limit)
      found = { label: check.label, measured: value, verdict: met ? "ok" : "missed",
                target: "#{check.at_most? ? "at most" : "at least"} #{check.limit}" }
      return found unless check.goal

      reached = !value.nil? && check.meets?(value, check.goal)
      found.merge(goal: check.goal, goal_reached: reached)
    end

    def figure(check, rounds)
      sound = rounds.map { |cells| cells.transform_values { |cell| Measure.sound(cell) } }
      return check.figure.call(sound) if check.over == :pool

      values = sound.map { |cells| check.figure.call(cells) }
      return Numbers.median(values.compact) if check.over == :median

      # The worst round; one that could not be measured is worse than any.
      return nil unless values.all?

      check.at_most? ? values.max : values.min
    end

    def failures(row, rounds)
      ours = row.contenders.select { |_, contender| contender.stack.kind == :oribi }.keys
      cells = rounds.flat_map { |round| round.values_at(*ours) }
      failed = cells.sum { |cell| cell[:failures].to_i + [*cell[:error], *cell[:unclean]].size }
      { label: "oribi: failed requests, starts and ends", measured: failed.to_f,
        target: "at most 0", verdict: failed.zero? ? "ok" : "missed" }
    end

    def progress(text)
      return unless $stderr.tty?

      $stderr.print("\r\e[K", text)
    end

    def save(machine, results, budget)
      directory = "#{Build::BENCH}/results"
      FileUtils.mkdir_p(directory)
      file = "#{directory}/#{@options[:name]}.json"
      all = { machine: machine, options: @options, rows: results, budget: budget }
      File.write(file, "#{JSON.pretty_generate(all)}\n")
      puts "", "Everything measured: bench/results/#{File.basename(file)}"
    end
  end
end
