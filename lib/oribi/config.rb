# frozen_string_literal: true

require "json"
require "oribi/errors"

module Oribi
  # The Ruby configuration file: one method for each option of the server's table.
  #
  #   workers 4
  #   bind "unix:///run/app.sock"
  #   retry_idempotent
  class Config < BasicObject
    # Evaluates `file` and prints what it says as JSON: option name => values as strings. What the
    # file itself prints goes to standard error.
    def self.dump(file)
      answer = $stdout.dup
      $stdout.reopen($stderr)
      options = ::JSON.parse(::ENV.fetch("ORIBI_OPTIONS"))
      answer.puts ::JSON.generate(read(file, options))
    rescue ::Oribi::Error => error
      abort "oribi: #{error.message}"
    rescue ::ScriptError, ::StandardError => error
      abort "oribi: #{file} raised\n#{Report.full(error)}"
    end

    def self.read(file, options)
      values = {}
      new(values, options).instance_eval(::File.read(file), ::File.expand_path(file))
      values
    end

    def initialize(values, options)
      @values = values
      @options = options.to_h { |option| [option.fetch("name"), option] }
    end

    # One method for each option, and an error with the nearest name for anything else.
    def method_missing(name, *arguments)
      option = @options[name.to_s]
      ::Kernel.raise ::Oribi::Error, unknown(name) unless option && option["in_file"]

      given = arguments.empty? && option["kind"] == "flag" ? [true] : arguments.flatten
      single = given.size == 1
      unless single || (option["repeatable"] && !given.empty?)
        ::Kernel.raise ::Oribi::Error, "#{place}: #{name} takes one value, #{given.size} given"
      end

      kept = option["repeatable"] ? @values.fetch(name.to_s, []) : []
      @values[name.to_s] = kept + given.map(&:to_s)
    end

    def respond_to_missing?(name, *) = @options.key?(name.to_s)

    # Settings may depend on the machine.
    def require(...) = ::Kernel.require(...)

    def puts(...) = ::Kernel.puts(...)

    private

    def unknown(name)
      if @options.key?(name.to_s)
        return "#{place}: #{name} can be given on the command line only"
      end

      near = nearest(name.to_s)
      "#{place}: no option #{name}#{", do you mean #{near}?" if near}"
    end

    def nearest(name)
      names = @options.values.select { |option| option["in_file"] }.map { |option| option["name"] }
      ::Kernel.require "did_you_mean"
      ::DidYouMean::SpellChecker.new(dictionary: names).correct(name).first
    rescue ::LoadError
      nil
    end

    # The line of the file that is being evaluated.
    def place
      frame = ::Kernel.caller_locations.find { |location| location.path != __FILE__ }
      "#{frame.path}:#{frame.lineno}"
    end
  end
end
