# frozen_string_literal: false

# The 13 bytes of hello.ru, for scenarios that ask /pid or /gc too. It costs one comparison more.
require_relative "lab"

rest = Lab.around(->(_env) { Lab.answer("not found", status: 404) })

run lambda { |env|
  next rest.call(env) unless env["PATH_INFO"] == "/"

  [200, { "content-type" => "text/plain", "content-length" => "13" }, ["Hello, World!"]]
}
