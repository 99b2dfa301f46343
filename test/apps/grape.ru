# frozen_string_literal: true

# A JSON interface with Grape.
require "grape"

# Two resources and what can be wrong with them.
class Interface < Grape::API
  format :json

  get(:hello) { { hello: params[:name] || "world" } }

  params { requires :number, type: Integer }
  post(:double) { { double: params[:number] * 2 } }

  rescue_from(ZeroDivisionError) { |error| error!({ error: error.message }, 422) }
  get(:fault) { 1 / 0 }
end

use Rack::Lint
run Interface
