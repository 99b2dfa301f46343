require "open3"

module Bench
  # Where the microseconds of an Oribi hello go: for each process its CPU, its wake-ups and its
  # system calls, per request of the whole server.
  class Budget
    ROLE = /\Aoribi: (?<role>[a-z]+(?: \d+)?)/
    CELLS = [[1, 16], [1, 128], [2, 128]].freeze
    SECONDS = 2

    def initialize(measure)
      @measure = measure
    end

    def run
      puts "", "Budget of oribi hello, per request"
      CELLS.map { |workers, connections| cell(workers, connections) }
    end

    private

    def cell(workers, connections)
      name = "hello, #{workers} worker#{'s' if workers > 1}, #{connections} connections"
      stack = Stack.new(kind: :oribi, app: "#{APPS}/hello.ru", workers: workers)
      @measure.with(stack) do |running|
        table = processes(running, Wrk.new(connections))
        puts "  #{name}", table.map { |line| "    #{text(line)}" }
        { name: name, processes: table }
      end
    rescue StandardError => e
      puts "  #{name}: not measured: #{e.message}"
      { name: name, error: e.message }
    end

    def processes(running, load)
      load.run(running.target, 1)
      pids = running.processes
      before = pids.to_h { |pid| [pid, ProcTree.usage(pid)] }
      requests = load.run(running.target, SECONDS)[:requests].to_f
      after = pids.to_h { |pid| [pid, ProcTree.usage(pid)] }
      pids.map do |pid|
        used = after[pid].to_h { |key, value| [key, (value - before[pid][key]) / requests] }
        used[:cpu_us] = used.delete(:cpu) * 1_000_000
        { process: role(pid), **used, calls: calls(running, load, pid) }
      end
    end

    def role(pid)
      title = ProcTree.title(pid)
      title[ROLE, :role] || title
    end

    # System calls in a run of their own, because counting them costs a little; nil if this machine
    # does not let us count.
    def calls(running, load, pid)
      counted = %W[perf stat -x, -e raw_syscalls:sys_enter -p #{pid} --]
      out, err, status = Open3.capture3(*counted, *load.command(running.target, 1))
      found = err[/^(\d+),.*raw_syscalls/, 1]
      return nil unless status.success? && found

      found.to_i / Wrk.parse(out)[:requests].to_f
    rescue SystemCallError
      nil
    end

    def text(line)
      calls = line[:calls] ? format("%.3f system calls", line[:calls]) : "system calls not measured"
      format("%-12<process>s %6.2<cpu_us>f us CPU  %.4<voluntary>f wake-ups  " \
             "%.4<involuntary>f preempted  ", line) + calls
    end
  end
end
