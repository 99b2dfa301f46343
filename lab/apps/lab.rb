# frozen_string_literal: true

# What the lab asks of an application beside what it measures.
module Lab
  TEXT = "text/plain"
  JSON = "application/json"

  module_function

  # The application, and before it
  #   /pid  the worker's pid, 20 ms later, so that others are asked meanwhile and all show up
  #   /gc   collections of this worker so far, and the milliseconds they took
  def around(app)
    lambda do |env|
      case env["PATH_INFO"]
      when "/pid" then pid
      when "/gc" then garbage
      else app.call(env)
      end
    end
  end

  # A complete answer: every one names its length and its worker.
  def answer(text, type = TEXT, status: 200)
    [status, { "content-type" => type, "content-length" => text.bytesize.to_s,
               "x-lab-worker" => Process.pid.to_s }, [text]]
  end

  def pid
    sleep 0.02
    answer(Process.pid.to_s)
  end

  def garbage
    answer(%({"pid":#{Process.pid},"count":#{GC.count},"ms":#{GC.stat(:time)}}), JSON)
  end
end
