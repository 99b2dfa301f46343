# frozen_string_literal: true

require "rbconfig"
require "oribi/errors"

module Oribi
  # Where the server's binary is and with what it is started.
  module Binary
    # What `ps` shows for the supervisor.
    TITLE = "oribi: supervisor"
    LIB = File.expand_path("..", __dir__)
    ROOT = File.expand_path("..", LIB)
    CHECKOUT = File.exist?(File.join(ROOT, "Makefile"))
    # Where `make` leaves the binary in a checkout, and where RubyGems and Bundler have it put.
    PLACES = [File.join(ENV.fetch("CARGO_TARGET_DIR", File.join(ROOT, "target")), "release"),
              File.join(LIB, "oribi/bin")].last(CHECKOUT ? 2 : 1).freeze
    NATIVE = File.join(LIB, "oribi/native.#{RbConfig::CONFIG['DLEXT']}").freeze
    private_constant :LIB, :ROOT, :CHECKOUT, :PLACES, :NATIVE

    module_function

    # The binary's path, or an error that says how to get one.
    def path
      require_file(NATIVE, "extension")
      require_file(ENV["ORIBI_BINARY"] || newest("oribi"), "binary")
    end

    # The CGI program's path.
    def shim = require_file(newest("oribi-shim"), "CGI shim")

    # That of the places where it may be.
    def newest(name)
      places = PLACES.map { |place| File.join(place, name) }
      places.select { |place| File.file?(place) }.max_by { |place| File.mtime(place) } ||
        places.first
    end

    # What the binary is told about this Ruby.
    def environment
      { "ORIBI_RUBY" => ENV.fetch("ORIBI_RUBY", RbConfig.ruby), "ORIBI_LIB" => LIB }
    end

    def require_file(path, what)
      return path if File.file?(path)

      remedy = if CHECKOUT
                 "run `make build` in #{ROOT}"
               else
                 "install the gem again: gem install oribi (it needs cargo)"
               end
      raise Error, "the #{what} #{path} is not there: #{remedy}"
    end
  end
end
