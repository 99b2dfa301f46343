# frozen_string_literal: false

# About 20,000 objects for each request (LAB_OBJECTS), most of which die with it. A part lives on
# for the next 64 requests, so that the old generation has to be collected as well.
require_relative "lab"

objects = Integer(ENV.fetch("LAB_OBJECTS", 20_000))
kept = Array.new(64)
served = 0

run Lab.around(lambda { |_env|
  rows = Array.new(objects / 4) { |nr| { "id" => nr, "name" => "name #{nr}", "tags" => [nr, "x"] } }
  kept[(served += 1) % kept.size] = rows.first(rows.size / 16)
  Lab.answer(rows.sum { |row| row["name"].bytesize }.to_s)
})
