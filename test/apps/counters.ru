# frozen_string_literal: true

require "oribi"
require "uri"

LOADED = Oribi.counter(:loaded_total)
LOADED.increment
HITS = Oribi.counter(:hits_total)

use Rack::Lint unless $PROGRAM_NAME.end_with?("rackup")
run(lambda do |env|
  words = env["PATH_INFO"].split("/").drop(1)
  answer =
    case words
    in ["count", times] then Integer(times).times { HITS.increment }
    in ["bulk", by] then HITS.increment(Integer(by))
    in ["gauge", "set", value] then Oribi.gauge(:level).set(Integer(value))
    in ["gauge", way] then Oribi.gauge(:level).public_send(way, 2)
    in ["observe", value]
      Oribi.histogram("seconds", buckets: [0.1, 1]).observe(Float(value))
    in ["endless"]
      # One byte for each that is counted, written after it.
      File.open(File.join(__dir__, "tally"), "w") do |tally|
        loop do
          HITS.increment
          tally.syswrite(".")
        end
      end
    in ["fill"] then 1100.times { |number| Oribi.counter("filler_#{number}").increment }
    in ["get"]
      seconds = Oribi.histogram(:seconds)
      [LOADED.get, HITS.get, Oribi.gauge(:level).get, seconds.count, seconds.sum].join(" ")
    end
  [200, { "content-type" => "text/plain" }, ["#{Process.pid} #{answer}"]]
end)
