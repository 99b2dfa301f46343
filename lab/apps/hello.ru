# frozen_string_literal: false

# 13 bytes, and nothing else: what is left is the server.
run lambda { |_env|
  [200, { "content-type" => "text/plain", "content-length" => "13" }, ["Hello, World!"]]
}
