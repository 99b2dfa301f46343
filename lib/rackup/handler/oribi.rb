# frozen_string_literal: true

require "oribi/handler"
require "rackup/handler"

module Rackup
  module Handler
    # `rackup -s Oribi` with Rack 3.
    Oribi = ::Oribi::Handler
    register :oribi, Oribi if respond_to?(:register)
  end
end
