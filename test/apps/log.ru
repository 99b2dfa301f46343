# frozen_string_literal: true

# What logs are made of.
require "uri"

use Rack::Lint
run(lambda do |env|
  case env["PATH_INFO"]
  when "/hold" then File.read(File.join(__dir__, "gate"))
  when "/boom" then raise ArgumentError, "boom\n\x1e{\"forged\":1}\nthird \xFFline"
  when "/warn" then warn "one line\n\tindented\nanother line"
  when "/large" then warn "x" * 300_000
  when "/child" then system("echo from a child >&2")
  end
  [200, { "content-type" => "text/plain" }, [env["HTTP_X_REQUEST_ID"].to_s]]
end)
