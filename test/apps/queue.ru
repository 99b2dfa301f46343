# frozen_string_literal: true

# Who is called, and when: every call is noted before it does anything.

use Rack::Lint
run(lambda do |env|
  body = env["rack.input"].read
  call = "#{env['REQUEST_METHOD']} #{env['PATH_INFO']}?#{env['QUERY_STRING']}"
  File.write("called", "#{call} #{Process.pid}\n", mode: "a")
  # A gate of the test's: /gate waits at the fifo of that name, and another one at another.
  File.read(env["PATH_INFO"][1..]) if env["PATH_INFO"].include?("gate")
  Process.kill("KILL", Process.pid) if env["PATH_INFO"] == "/die"
  [200, { "content-type" => "text/plain" }, ["#{Process.pid} #{call} #{body}".strip]]
end)
