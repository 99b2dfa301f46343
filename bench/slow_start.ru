# frozen_string_literal: true

# Thirteen bytes, by an application that takes a second to load.
sleep 1

run ->(_env) { [200, { "content-type" => "text/plain", "content-length" => "13" }, ["Hello, World!"]] }
