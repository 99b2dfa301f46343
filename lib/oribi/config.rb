# frozen_string_literal: true

require "json"
require "oribi/errors"
require "oribi/hooks"
require "oribi/options"

module Oribi
  # The Ruby configuration file: one method for each option of the server's table, one for each
  # hook. Rhebok's names work too.
  #
  #   workers 4
  #   bind "unix:///run/app.sock"
  #   retry_idempotent
  #   after_fork { |worker| DB.connect }
  #
  # The file is evaluated twice: in a short-lived Ruby for the settings, in each mold for the hooks.
  class Config
    HOOKS = Hooks::NAMES

    class << self
      # Evaluates `file` and prints what it says as JSON: option name => values, each with its
      # place. What the file itself prints goes to standard error.
      def dump(file)
        answer = $stdout.dup
        $stdout.reopen($stderr)
        answer.puts JSON.generate(read(file, Options.table).values)
      rescue Error => error
        abort "oribi: #{error.message}"
      rescue ScriptError, StandardError => error
        abort "oribi: #{file} raised\n#{Report.full(error)}"
      end

      # The hooks of `file` by name, each a list of Procs in the order of the file.
      def hooks(file)
        read(file, Options.table).hooks
      rescue Errno::ENOENT
        raise Error, "the configuration file #{file} is not there any more"
      end
    end

    # Option name => pairs of a value, as text, and its place.
    attr_reader :values
    # Hook name => Procs.
    attr_reader :hooks

    # Methods on the object itself, so that none of Ruby's own is in the way.
    def initialize(options)
      @values = {}
      @hooks = {}
      @options = options
      options.select { |option| option["in_file"] }.each do |option|
        [option["name"], *option["also"]].each do |name|
          define_singleton_method(name) { |*given, &block| set(option, name, given, block) }
        end
      end
      HOOKS.each do |name|
        define_singleton_method(name) { |callable = nil, &block| hook(name, callable || block) }
      end
    end

    # Hooks run when the file is done, and may well be wrong in ways of their own.
    def done
      @done = true
      self
    end

    # Anything else is a mistake, with the nearest name.
    def method_missing(name, *)
      return super if @done

      raise Error, unknown(name.to_s)
    end

    def respond_to_missing?(*) = false

    private

    def set(option, name, given, block)
      given = given.empty? ? said_without_value(option, block) : given.flatten
      unless given.size == 1 || (option["repeatable"] && given.any?)
        raise Error, "#{place}: #{name} takes one value, #{given.size} given"
      end

      # As if it had not been said: `spawn_interval ENV["INTERVAL"]`.
      given = given.compact.map { |value| [Options.text(value, option), place] }
      return if given.empty?

      @values[option["name"]] = (option["repeatable"] ? @values[option["name"]].to_a : []) + given
    end

    # Rhebok takes some values as the result of a block only, by mistake.
    def said_without_value(option, block)
      value = block&.call
      return [value] unless value.nil?

      option["kind"] == "flag" ? [true] : []
    end

    def hook(name, callable)
      raise Error, "#{place}: #{name} takes a block" unless callable.respond_to?(:call)

      (@hooks[name.to_sym] ||= []) << callable
    end

    def unknown(name)
      names = @options.flat_map { |option| [option["name"], *option["also"]] }
      return "#{place}: #{name} can be given on the command line only" if names.include?(name)

      near = Options.nearest(name, names + HOOKS)
      "#{place}: no option #{name}#{", do you mean #{near}?" if near}"
    end

    # The line of the file that is being evaluated.
    def place
      frame = caller_locations.find { |location| location.path != __FILE__ }
      "#{frame.path}:#{frame.lineno}"
    end
  end
end

# Outside of our modules, so that the file's constants are the application's, and with names that
# are no options, for the file sees them.
def (Oribi::Config).read(file_to_read, known_options)
  own_config = new(known_options)
  own_config.instance_eval(File.read(file_to_read), File.expand_path(file_to_read))
  own_config.done
end
