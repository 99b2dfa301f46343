# frozen_string_literal: true

require "oribi/rhebok"
require "rackup/handler"

module Rackup
  # `rackup -s Rhebok` with Rack 3.
  module Handler
    Rhebok = ::Oribi::Rhebok unless const_defined?(:Rhebok, false)
    register("rhebok", ::Oribi::Rhebok) if respond_to?(:register)
  end
end

Oribi::Handler.leave_pid_file_alone(Rackup::Server) if defined?(Rackup::Server)
