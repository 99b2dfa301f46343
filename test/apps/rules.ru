# frozen_string_literal: true

# Notes every request that reaches the app.

use Rack::Lint
use Rack::Head
run(lambda do |env|
  env["rack.input"].read
  File.write("seen", "#{env['REQUEST_METHOD']} #{env['REQUEST_URI']}\n", mode: "a")
  body = "#{env['REQUEST_METHOD']} #{env['PATH_INFO']}"
  # A length, so that HTTP/1.0 can keep the connection.
  [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
end)
