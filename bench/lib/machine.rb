# frozen_string_literal: true

require "etc"
require "open3"

module Bench
  # Where the figures come from.
  module Machine
    ROOT = File.expand_path("../..", __dir__)
    VERSIONS = {
      puma: %w[puma --version], unicorn: %w[unicorn --version], nginx: %w[nginx -v],
      wrk: ["sh", "-c", "wrk -v || true"], rustc: %w[rustc --version],
      oribi: [Gem.ruby, "#{ROOT}/exe/oribi", "--version"],
      commit: ["git", "-C", ROOT, "describe", "--always", "--dirty"]
    }.freeze

    module_function

    def facts
      {
        cpu: File.read("/proc/cpuinfo")[/^model name\s*:\s*(.+)/, 1], cores: Etc.nprocessors,
        kernel: Etc.uname[:release], load: File.read("/proc/loadavg").split.first.to_f,
        ruby: RUBY_DESCRIPTION, time: Time.now.utc.strftime("%Y-%m-%d %H:%M UTC"),
        **VERSIONS.transform_values { |command| first_line(command) }
      }
    end

    def lines(facts)
      versions = facts.slice(*VERSIONS.keys).map { |name, text| "#{name}: #{text || "not there"}" }
      lines = ["#{facts[:cores]} cores of #{facts[:cpu]}, Linux #{facts[:kernel]}, #{facts[:ruby]}",
               versions.join("; ")]
      return lines if facts[:load] < 0.5

      lines << "Load average #{facts[:load]}: something else runs here; these figures are noise."
    end

    # How many turns of the loop in apps/work.ru make 5 ms of CPU on this machine. Counted once, so
    # that all servers do the same work.
    def turns
      best = Array.new(7) { seconds_of(200_000) }.min
      (200_000 * 0.005 / best).round
    end

    def seconds_of(turns)
      start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      sum = i = 0
      sum += i ^ (sum & 0xff) while (i += 1) < turns
      Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - start
    end

    def first_line(command)
      out, status = Open3.capture2e(*command)
      out.lines.first&.strip if status.success?
    rescue SystemCallError
      nil
    end
  end
end
