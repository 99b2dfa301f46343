# frozen_string_literal: true

# What counting costs an app: processor time of one call, from Ruby.
#
#     ruby -Ilib bench/counters.rb
require "oribi"

CALLS = 2_000_000

def nanoseconds
  began = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  yield CALLS
  (Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - began) / CALLS * 1e9
end

counter = Oribi.counter(:calls_total)
gauge = Oribi.gauge(:level)
histogram = Oribi.histogram(:seconds)
empty = nanoseconds { |calls| calls.times { nil } }

{
  "counter.increment" => nanoseconds { |calls| calls.times { counter.increment } },
  "Oribi.counter(:calls_total).increment" =>
    nanoseconds { |calls| calls.times { Oribi.counter(:calls_total).increment } },
  "counter.get" => nanoseconds { |calls| calls.times { counter.get } },
  "gauge.set(7)" => nanoseconds { |calls| calls.times { gauge.set(7) } },
  "histogram.observe(0.02)" => nanoseconds { |calls| calls.times { histogram.observe(0.02) } }
}.each { |what, cost| puts format("%-40<what>s %5<cost>.0f ns", what: what, cost: cost - empty) }
