# frozen_string_literal: true

# The same file for both engines and all levels of isolation.

# mruby has `foolsgold` in the binary (gem.rs), CRuby here.
$LOAD_PATH.unshift(File.join(__dir__, "lib")) if RUBY_ENGINE == "ruby"
require "foolsgold"

use Rack::Lint if RUBY_ENGINE == "ruby"
use FoolsGold::Middleware::Request

run lambda { |env|
  context = env[FoolsGold::CONTEXT]
  total = context.metrics.total_requests
  total.inc
  # What an interpreter remembers: nothing where each request has one of its own.
  # rubocop:disable Style/GlobalVars
  $interpreter ||= context.trace_id
  $served = ($served || 0) + 1
  lines = [
    "engine #{RUBY_ENGINE} #{RUBY_VERSION}",
    "trace_id #{context.trace_id}",
    "total_requests #{total.get}",
    "interpreter #{$interpreter}",
    "served #{$served}"
  ]
  # rubocop:enable Style/GlobalVars
  [200, { "content-type" => "text/plain" }, [lines.join("\n"), "\n"]]
}
