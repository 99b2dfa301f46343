# frozen_string_literal: true

require "oribi/rhebok"
begin
  require "rack/handler"
rescue LoadError
  # Rack 3 has none.
end

module Rack
  # `rackup -s Rhebok` with Rack 2.
  module Handler
    ::Oribi::Rhebok.known_as("Rhebok", self)
  end
end

Oribi::Handler.leave_pid_file_alone(Rack::Server) if defined?(Rack::Server)
