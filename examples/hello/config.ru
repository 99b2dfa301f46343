# frozen_string_literal: true

# The smallest application there is: good for a first look and for measuring the server alone.
run(lambda do |_env|
  [200, { "content-type" => "text/plain; charset=utf-8" }, ["Hello from Oribi\n"]]
end)
