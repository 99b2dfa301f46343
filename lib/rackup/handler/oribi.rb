# frozen_string_literal: true

require "oribi/handler"
require "rackup/handler"

module Rackup
  # `rackup -s Oribi` with Rack 3.
  module Handler
    Oribi = ::Oribi::Handler unless const_defined?(:Oribi, false)
    register("oribi", ::Oribi::Handler) if respond_to?(:register)
  end
end

Oribi::Handler.leave_pid_file_alone(Rackup::Server) if defined?(Rackup::Server)
