# frozen_string_literal: false

# The same 13 bytes through Sinatra, as an application would set it up for production.
require "sinatra/base"

class BenchSinatra < Sinatra::Base
  set :environment, :production
  disable :logging
  get("/") { "Hello, World!" }
end

run BenchSinatra
