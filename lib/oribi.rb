# frozen_string_literal: true

require "oribi/version"
require "oribi/errors"
require "oribi/metrics"

# A Rack application server: every request waits in one fair queue, the next idle worker takes it.
module Oribi
end
