# frozen_string_literal: true

require "oribi/handler"
require "rackup/handler"

Oribi::Handler.known_as("Oribi", Rackup::Handler)
Oribi::Handler.leave_pid_file_alone(Rackup::Server) if defined?(Rackup::Server)
