# frozen_string_literal: true

# /magtag.css  MagTag's style sheet (6 KB), out of the application's memory
# /            13 bytes
require_relative "lab"

css = File.binread(File.expand_path("../../examples/magtag/public/magtag.css", __dir__))
answers = { "/magtag.css" => ["text/css", css], "/" => ["text/plain", "Hello, World!"] }

run Lab.around(lambda { |env|
  type, text = answers[env["PATH_INFO"]]
  text ? Lab.answer(text, type) : Lab.answer("not found", status: 404)
})
