# frozen_string_literal: false

require "sinatra/base"
require_relative "lab"

# The 13 bytes of hello.ru through Sinatra, as an application would set it up for production.
class LabSinatra < Sinatra::Base
  set :environment, :production
  disable :logging
  get("/") { "Hello, World!" }
end

run Lab.around(LabSinatra)
