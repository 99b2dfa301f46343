# frozen_string_literal: false

# 13 bytes, and nothing else: what is left is the server.
run lambda { |_env|
  [200, { "Content-Type" => "text/plain", "Content-Length" => "13" }, ["Hello, World!"]]
}
