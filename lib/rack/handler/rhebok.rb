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
    Rhebok = ::Oribi::Rhebok unless const_defined?(:Rhebok, false)
    if respond_to?(:register)
      # Rack 2 wants the name.
      register("rhebok", name == "Rack::Handler" ? "Rack::Handler::Rhebok" : Rhebok)
    end
  end
end

Oribi::Handler.leave_pid_file_alone(Rack::Server) if defined?(Rack::Server)
