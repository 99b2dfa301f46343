# frozen_string_literal: true

# What garbage collection costs those who wait: the lab's page of 22,500 objects (lab/apps/gc.ru) on
# two workers at half the load they can bear, collected within requests, out of band when a request
# would have to (`--oob-gc`), and out of band every five requests at the latest, as Rhebok does. The
# variants take turns, a fresh server each.
#
#   ruby -Ilib bench/gc.rb [ROUNDS] [SECONDS]
#
# Printed are medians of the rounds. Exit status 1 when out of band more than a tenth of the
# collector's milliseconds within requests is left, or the p99 is no better.

$LOAD_PATH.unshift(File.expand_path("../test", __dir__))
require "etc"
require "helper_client"
require "helper_server"

# One server under load for a while.
class GcBench
  VARIANTS = { "off" => [], "oob" => ["--oob-gc"],
               "oob, 5" => %w[--oob-gc --max-gc-per-request 5] }.freeze
  CONNECTIONS = 12
  APPS = File.join(Helper::ROOT, "lab/apps")

  def self.compare(rounds, seconds)
    rate = new([]).run { |bench| bench.capacity / 2 }
    puts format("%<rate>.0f requests/s are half the load; %<rounds>d rounds of %<seconds>d s",
                rate: rate, rounds: rounds, seconds: seconds)
    figures = Hash.new { |hash, name| hash[name] = [] }
    rounds.times do
      VARIANTS.each do |name, words|
        figures[name] << new(words).run { |bench| bench.measure(rate, seconds) }
      end
    end
    medians = figures.transform_values { |all| median(all) }
    medians.each { |name, figure| report(name, figure) }
    within, p99 = %i[within p99].map { |key| medians["oob"][key] / medians["off"][key] }
    puts format("oob / off: %<within>.3f of the milliseconds within requests, %<p99>.2f of the p99",
                within: within, p99: p99)
    within <= 0.1 && p99 < 1
  end

  def self.median(all)
    all.first.keys.to_h { |key| [key, all.map { |figure| figure[key] }.sort[all.size / 2]] }
  end

  def self.report(name, figure)
    puts format("%<name>-7s %<requests>5d requests, per 1000: %<within>6.1f ms GC within, " \
                "%<between>6.1f ms between; p50 %<p50>.2f p90 %<p90>.2f p99 %<p99>.2f max " \
                "%<max>.1f ms; %<cpu>.2f ms CPU each; %<pss>d MB", figure.merge(name: name))
  end

  def initialize(words)
    app = File.read(File.join(APPS, "gc.ru"))
    files = { "lab.rb" => File.read(File.join(APPS, "lab.rb")) }
    words = ["-e", "production", "-w", "2", *words]
    @server = Helper::Server.new(:oribi, *words, app: app, files: files).ready
    @port = Integer(@server.log[/:(\d+)$/, 1], 10)
    load_for(1, nil)
  end

  def run
    yield self
  ensure
    @server.clean_up
  end

  # Pages a second when nobody ever waits for work.
  def capacity = load_for(4, nil).size / 4.0

  def measure(rate, seconds)
    before = cpu
    all = load_for(seconds, rate)
    times = all.map(&:took).sort
    at = ->(part) { times[(times.size * part).to_i] * 1000 }
    whole = all.group_by(&:worker).values.sum do |some|
      some.map(&:so_far).minmax.reduce { |least, most| most - least }
    end
    within = all.sum(&:within)
    { requests: all.size, within: within / 1e3 / all.size,
      between: (whole - within).clamp(0..) / 1e3 / all.size, p50: at[0.5], p90: at[0.9],
      p99: at[0.99], max: times.last * 1000, cpu: (cpu - before) * 1000 / all.size, pss: pss }
  end

  private

  Page = Struct.new(:took, :within, :so_far, :worker)

  # For so many seconds: as fast as they are answered, or when they are due by a Poisson process
  # of that rate, each counted from when it was due.
  def load_for(seconds, rate)
    random = Random.new(1)
    due = began = Helper.now
    turn = Mutex.new
    Array.new(CONNECTIONS) do
      Thread.new do
        client = Helper::Client.tcp(@port)
        pages = []
        loop do
          at = rate ? turn.synchronize { due -= Math.log(1 - random.rand) / rate } : Helper.now
          break pages if at > began + seconds

          sleep([at - Helper.now, 0].max)
          pages << page(client, at)
        end
      ensure
        client&.close
      end
    end.flat_map(&:value)
  end

  def page(client, due)
    answer = client.get
    raise "not answered: #{answer.status}" unless answer.status == 200

    numbers = %w[x-gc-within x-gc-so-far x-lab-worker].map { |name| Integer(answer[name], 10) }
    Page.new(Helper.now - due, *numbers)
  end

  def cpu
    ticks = @server.tree.sum do |entry|
      File.read("/proc/#{entry.pid}/stat").rpartition(")").last.split.values_at(11, 12).sum(&:to_i)
    end
    ticks.fdiv(Etc.sysconf(Etc::SC_CLK_TCK))
  end

  def pss
    @server.tree.sum do |entry|
      File.read("/proc/#{entry.pid}/smaps_rollup")[/^Pss:\s*(\d+)/, 1].to_i / 1024
    end
  end
end

exit GcBench.compare(Integer(ARGV[0] || "3", 10), Integer(ARGV[1] || "10", 10))
