# frozen_string_literal: true

require "json"
require "oribi/errors"

module Oribi
  # The Ruby configuration file: one method for each option of the server's table.
  #
  #   workers 4
  #   bind "unix:///run/app.sock"
  #   retry_idempotent
  class Config
    # Evaluates `file` and prints what it says as JSON: option name => values as strings. What the
    # file itself prints goes to standard error.
    def self.dump(file)
      answer = $stdout.dup
      $stdout.reopen($stderr)
      answer.puts JSON.generate(read(file, JSON.parse(ENV.fetch("ORIBI_OPTIONS"))))
    rescue Error => error
      abort "oribi: #{error.message}"
    rescue ScriptError, StandardError => error
      abort "oribi: #{file} raised\n#{Report.full(error)}"
    end

    def self.read(file, options)
      values = {}
      new(values, options).instance_eval(File.read(file), File.expand_path(file))
      values
    end

    # One method for each option; on the object itself, so that none of Ruby's own is in the way.
    def initialize(values, options)
      @values = values
      @options = options
      options.select { |option| option["in_file"] }.each do |option|
        define_singleton_method(option["name"]) { |*given| set(option, given) }
      end
    end

    # Anything else is a mistake, with the nearest name.
    def method_missing(name, *)
      raise Error, unknown(name.to_s)
    end

    def respond_to_missing?(*) = false

    private

    def set(option, given)
      name = option["name"]
      given = given.empty? && option["kind"] == "flag" ? [true] : given.flatten
      unless given.size == 1 || (option["repeatable"] && given.any?)
        raise Error, "#{place}: #{name} takes one value, #{given.size} given"
      end

      kept = option["repeatable"] ? @values.fetch(name, []) : []
      @values[name] = kept + given.map(&:to_s)
    end

    def unknown(name)
      names = @options.map { |option| option["name"] }
      return "#{place}: #{name} can be given on the command line only" if names.include?(name)

      near = nearest(name, names)
      "#{place}: no option #{name}#{", do you mean #{near}?" if near}"
    end

    def nearest(name, names)
      require "did_you_mean"
      DidYouMean::SpellChecker.new(dictionary: names).correct(name).first
    rescue LoadError
      nil
    end

    # The line of the file that is being evaluated.
    def place
      frame = caller_locations.find { |location| location.path != __FILE__ }
      "#{frame.path}:#{frame.lineno}"
    end
  end
end
