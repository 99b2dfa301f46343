# frozen_string_literal: true

require "oribi/binary"

module Oribi
  # The command `oribi`: becomes the binary, which reads the command line. `oribi lab` becomes
  # another one; two commands of `oribi cgi` are done here.
  module CLI
    module_function

    def start(arguments)
      return lab(arguments.drop(1)) if arguments.first == "lab"
      return if arguments.first == "cgi" && cgi(arguments.drop(1))

      exec(Binary.environment, [Binary.path, Binary::TITLE], *arguments)
    rescue Error, SystemCallError => error
      abort "oribi: #{error.message}"
    end

    def cgi(arguments)
      require "oribi/cgi"
      Cgi.start(arguments.first, arguments.drop(1))
    end

    def lab(arguments)
      require "oribi/lab"
      Lab.start(arguments)
    end
  end
end
