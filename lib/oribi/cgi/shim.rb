# frozen_string_literal: true

require "fileutils"
require "oribi/binary"
require "oribi/cgi"

module Oribi
  module Cgi
    # `index.cgi`: the shim, with what it is to start written behind it. The format is the shim's
    # (`crates/shim/src/launch.rs`): words, each ended by a NUL, then their length.
    module Shim
      MARK = "ORIBI-CGI"
      TRAILER_END = MARK.bytesize + 7

      module_function

      def put(directory, words)
        path = File.join(directory, "index.cgi")
        if File.exist?(path) && !ours?(path)
          raise Error, "#{path} is there, and is not Oribi's: move it away"
        end

        Cgi.write(path, File.binread(Binary.shim) + trailer(words), 0o755)
      end

      def trailer(words)
        bytes = words.map { |word| "#{word}\0" }.join.b
        "#{bytes}#{MARK}#{bytes.bytesize.to_s.rjust(7, '0')}".b
      end

      def ours?(path)
        size = File.size(path)
        size >= TRAILER_END && File.binread(path, TRAILER_END, size - TRAILER_END).start_with?(MARK)
      end
    end
  end
end
