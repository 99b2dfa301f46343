# frozen_string_literal: true

# examples/rails behind Lint; what is hijacked Lint of Rack 2 does not understand.
require File.join(ENV.fetch("RAILS_EXAMPLE"), "config/environment")

checked = Rack::Lint.new(Rails.application)
run ->(env) { (env["PATH_INFO"] == "/cable" ? Rails.application : checked).call(env) }
