# frozen_string_literal: true

require "oribi/handler"
begin
  require "rack/handler"
rescue LoadError
  # Rack 3 has none; this file is then of use to those who name the handler themselves.
end

module Rack
  # `rackup -s Oribi` with Rack 2. With Rack 3 this is another name of `Rackup::Handler`.
  module Handler
    ::Oribi::Handler.known_as("Oribi", self)
  end
end

Oribi::Handler.leave_pid_file_alone(Rack::Server) if defined?(Rack::Server)
