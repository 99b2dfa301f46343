# frozen_string_literal: true

# What `make stack-stuck` asks: /app/slow takes a second, all else nothing.
run(lambda do |env|
  sleep 1 if env["PATH_INFO"] == "/slow"
  [200, { "content-type" => "text/plain" }, ["done\n"]]
end)
