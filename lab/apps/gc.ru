# frozen_string_literal: false

# A page that makes much garbage, in a process that holds as much as an app of a framework does.
#
# Each request makes 22,500 objects (9 for each of LAB_ROWS rows), that is 0.9 MB of slots of 40
# bytes and, on Ruby 3.1, 0.66 MB beside them; the answer has 208 kB. One row in 64 lives on for the
# next 64 requests, so that the old generation has to be collected as well. LAB_LIVE (200,000)
# objects are there from the beginning. What the collector did is in the answer's headers:
#
#   x-gc-within   nanoseconds it took while this page was made
#   x-gc-so-far   nanoseconds it has taken in this worker
#   x-lab-worker  which worker that is
require_relative "lab"

count = Integer(ENV.fetch("LAB_ROWS", 2_500))
LIVE = Array.new(Integer(ENV.fetch("LAB_LIVE", 200_000)) / 3) { |nr| { nr => ["name #{nr}"] } }
kept = Array.new(64)
served = 0

page = lambda do
  rows = Array.new(count) do |nr|
    { "id" => nr, "name" => "name #{nr}", "tags" => [nr.to_s, "x"],
      "text" => "Something longer than a slot is wide, and different in row #{nr}." }
  end
  kept[(served += 1) % kept.size] = Array.new(rows.size / 64) { |nr| rows[nr] }
  rows.map { |row| "<li>#{row['name']}: #{row['text']}</li>" }.join
end

run Lab.around(lambda { |_env|
  before = GC.total_time
  text = page.call
  after = GC.total_time
  status, headers, body = Lab.answer(text, "text/html")
  [status, headers.merge("x-gc-within" => (after - before).to_s, "x-gc-so-far" => after.to_s), body]
})
