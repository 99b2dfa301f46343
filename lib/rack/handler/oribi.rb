# frozen_string_literal: true

require "oribi/handler"

module Rack
  module Handler
    # `rackup -s Oribi` with Rack 2.
    Oribi = ::Oribi::Handler
    register("oribi", "Rack::Handler::Oribi") if respond_to?(:register)
  end
end
