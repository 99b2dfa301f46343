# frozen_string_literal: true

require "oribi/handler"
begin
  require "rack/handler"
rescue LoadError
  # Rack 3 has none; this file is then of use to those who name the handler themselves.
end

module Rack
  module Handler
    # `rackup -s Oribi` with Rack 2.
    Oribi = ::Oribi::Handler
    register("oribi", "Rack::Handler::Oribi") if respond_to?(:register)
  end
end
