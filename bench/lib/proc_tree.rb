# frozen_string_literal: true

# What the kernel knows about a server: all processes that stem from the ones we started.
module Bench
  module ProcTree
    TICKS = Integer(`getconf CLK_TCK`)

    Stat = Struct.new(:pid, :parent, :state, :ticks)

    module_function

    # The given processes and everything below them. A worker whose mold is gone hangs below
    # whoever adopted it, which in every server measured here is still one of ours.
    def of(roots)
      all = stats
      children = all.values.group_by(&:parent)
      found = []
      waiting = roots.filter_map { |pid| all[pid] }
      while (stat = waiting.pop)
        found << stat
        waiting.concat(children.fetch(stat.pid, []))
      end
      found
    end

    # Seconds of CPU of the whole tree; children that were reaped count with their parent.
    def cpu(roots)
      of(roots).sum(&:ticks) / TICKS.to_f
    end

    # Megabytes of memory; a page that several processes share counts in parts (PSS).
    def pss(roots)
      of(roots).sum { |stat| pss_of(stat.pid) } / 1024.0
    end

    # What one process has used so far. The threads are added up, because the kernel counts
    # context switches for each.
    def usage(pid)
      switches = Dir["/proc/#{pid}/task/*/status"].map { |file| File.read(file) }
      {
        cpu: stats.fetch(pid).ticks / TICKS.to_f,
        voluntary: switches.sum { |text| text[/^voluntary_ctxt_switches:\s+(\d+)/, 1].to_i },
        involuntary: switches.sum { |text| text[/^nonvoluntary_ctxt_switches:\s+(\d+)/, 1].to_i }
      }
    end

    def threads(pid)
      Dir.children("/proc/#{pid}/task").map(&:to_i)
    rescue SystemCallError
      []
    end

    # The title a process gave itself, as `ps` shows it.
    def title(pid)
      File.binread("/proc/#{pid}/cmdline").tr("\0", " ").strip
    rescue SystemCallError
      ""
    end

    def alive?(pid)
      stat = read_stat("/proc/#{pid}/stat")
      !stat.nil? && stat.state != "Z"
    end

    def stats
      found = Dir.glob("/proc/[0-9]*/stat").filter_map { |file| read_stat(file) }
      found.to_h { |stat| [stat.pid, stat] }
    end

    def read_stat(file)
      # The name in parentheses may hold anything, a closing parenthesis too.
      pid, _, rest = File.read(file).partition(" (")
      fields = rest.rpartition(") ").last.split
      Stat.new(pid.to_i, fields[1].to_i, fields[0], fields[11, 4].sum(&:to_i))
    rescue SystemCallError
      nil # it ended between the listing and the reading
    end

    def pss_of(pid)
      File.read("/proc/#{pid}/smaps_rollup")[/^Pss:\s+(\d+)/, 1].to_i
    rescue SystemCallError
      0
    end
  end
end
