# frozen_string_literal: true

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
      name = "hello, #{workers} worker#{"s" if workers > 1}, #{connections} connections"
      stack = Stack.new(kind: :oribi, app: "#{APPS}/hello.ru", workers: workers)
      @measure.with(stack) do |running|
        table = processes(running, Wrk.new(connections))
        puts "  #{name}"
        table.each { |line| puts "    #{text(line)}" }
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
      calls = calls(running, load, pids)
      pids.map do |pid|
        used = after[pid].to_h { |key, value| [key, (value - before[pid][key]) / requests] }
        used[:cpu_us] = used.delete(:cpu) * 1_000_000
        { process: role(pid), **used, calls: calls[pid] }
      end
    end

    def role(pid)
      title = ProcTree.title(pid)
      title[ROLE, :role] || title
    end

    # System calls of each process per request, in a run of their own because counting costs a
    # little; empty if this machine does not let us count.
    def calls(running, load, pids)
      counted = %W[perf stat --per-thread --field-separator ; -e raw_syscalls:sys_enter
                   -p #{pids.join(",")} --]
      out, err, status = Open3.capture3(*counted, *load.command(running.target, SECONDS))
      return {} unless status.success? && err.include?(";raw_syscalls")

      requests = Wrk.parse(out)[:requests].to_f
      # One line for each thread, named COMMAND-TID; a thread without a call was "not counted".
      threads = err.scan(/-(\d+);(\d+|<not counted>);.*raw_syscalls/)
      threads = threads.to_h { |tid, calls| [tid.to_i, calls.to_i / requests] }
      pids.to_h { |pid| [pid, ProcTree.threads(pid).sum { |tid| threads.fetch(tid, 0.0) }] }
    rescue SystemCallError
      {}
    end

    def text(line)
      calls = line[:calls] ? format("%.3f system calls", line[:calls]) : "system calls not measured"
      format("%-12<process>s %6.2<cpu_us>f us CPU  %.4<voluntary>f wake-ups  " \
             "%.4<involuntary>f preempted  ", line) + calls
    end
  end
end
