# frozen_string_literal: true

# The app of the stress test. It writes down what it does before and after it does it, so that what
# a killed worker had begun is known: records of three 64-bit numbers (twice the request's number,
# plus one at its end; a time on the monotonic clock; nanoseconds spent in the queue).

module Record
  class << self
    def note(number, queued = 0)
      now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      # One write, appended: it is in the file or it is not, whenever the worker is killed.
      file.syswrite([number, now, queued].pack("Q<3"))
    end

    private

    def file
      return @file if @pid == Process.pid

      @file = File.open(File.join(ENV.fetch("STRESS_RECORDS"), Process.pid.to_s), "ab")
      @pid = Process.pid
      @file
    end
  end
end

# A body that is written as it is made. Its end is noted as soon as there is nothing more to come,
# for the reply may be whole, and its worker dead, before `close`.
class Parts
  def initialize(number, part, count)
    @number = number
    @part = part
    @count = count
  end

  def each
    @count.times { yield @part }
  ensure
    Record.note((@number * 2) + 1)
  end
end

app = lambda do |env|
  kind, number, micros, length = env["PATH_INFO"].split("/").drop(1)
  number = number.to_i
  Record.note(number * 2, (env["oribi.queue_time"] * 1e9).round)
  sleep(micros.to_i / 1e6) if micros != "0"
  part = "#{number} ".ljust(length.to_i, "x")
  # The body it got must be the one that was sent, and whole.
  status = kind == "post" && env["rack.input"].read != part ? 599 : 200
  headers = { "content-type" => "text/plain" }
  next [status, headers, Parts.new(number, part, 3)] if kind == "stream"

  body = [kind == "post" ? "#{number} " : part]
  Record.note((number * 2) + 1)
  [status, headers, body]
end

use Rack::Lint if ENV["STRESS_LINT"] == "1"
run app
