# frozen_string_literal: true

# /N  sleeps N milliseconds: a request that waits for something else
# /   answers at once
require_relative "lab"

run Lab.around(lambda { |env|
  milliseconds = env["PATH_INFO"].delete("/").to_f
  sleep(milliseconds / 1_000) if milliseconds.positive?
  Lab.answer("ok")
})
