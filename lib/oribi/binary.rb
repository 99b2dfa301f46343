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
    # The gem's place first; a checkout has only the second.
    PLACES = [File.join(LIB, "oribi/bin/oribi"),
              File.join(ENV.fetch("CARGO_TARGET_DIR", File.join(ROOT, "target")),
                        "release/oribi")].freeze
    NATIVE = File.join(LIB, "oribi/native.#{RbConfig::CONFIG['DLEXT']}").freeze
    private_constant :LIB, :ROOT, :PLACES, :NATIVE

    module_function

    # The binary's path, or an error that says how to get one.
    def path
      require_file(NATIVE, "extension")
      named = ENV.fetch("ORIBI_BINARY", nil)
      return require_file(named, "binary") if named

      PLACES.find { |place| File.executable?(place) } || require_file(PLACES.last, "binary")
    end

    # What the binary is told about this Ruby.
    def environment
      { "ORIBI_RUBY" => ENV.fetch("ORIBI_RUBY", RbConfig.ruby), "ORIBI_LIB" => LIB }
    end

    def require_file(path, what)
      return path if File.file?(path)

      remedy = if File.exist?(File.join(ROOT, "Makefile"))
                 "run `make build` in #{ROOT}"
               else
                 "install the gem again: gem install oribi (it needs cargo)"
               end
      raise Error, "the #{what} #{path} is not there: #{remedy}"
    end
  end
end
