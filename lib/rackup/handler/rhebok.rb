# frozen_string_literal: true

require "oribi/rhebok"
require "rackup/handler"

Oribi::Rhebok.known_as("Rhebok", Rackup::Handler)
Oribi::Handler.leave_pid_file_alone(Rackup::Server) if defined?(Rackup::Server)
