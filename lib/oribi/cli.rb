# frozen_string_literal: true

require "oribi/binary"

module Oribi
  # The command `oribi`: becomes the binary, which reads the command line.
  module CLI
    module_function

    def start(arguments)
      exec(Binary.environment, [Binary.path, Binary::TITLE], *arguments)
    rescue Error, SystemCallError => error
      abort "oribi: #{error.message}"
    end
  end
end
