# frozen_string_literal: true

# /N    sleeps N milliseconds: a request that waits for something else
# /     answers at once
# /pid  which worker answered, so that the runner knows when all of them are up
text = { "Content-Type" => "text/plain" }

run lambda { |env|
  path = env["PATH_INFO"]
  sleep(path == "/pid" ? 0.02 : path.delete("/").to_i / 1_000.0) unless path == "/"
  [200, text.dup, [path == "/pid" ? Process.pid.to_s : "ok"]]
}
