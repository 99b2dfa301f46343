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
  #   mount "/shop", chdir: "/srv/shop", workers: 4
  #   mount "/api", host: "api.example" do
  #     threads 5
  #     after_fork { Api.connect }
  #   end
  #
  # The file is evaluated twice: in a short-lived Ruby for the settings, in each mold for the hooks.
  class Config
    HOOKS = Hooks::NAMES

    class << self
      # Evaluates `file` and prints as JSON what it says, or what is wrong with it. What the file
      # itself prints goes to standard error.
      def dump(file)
        answer = $stdout.dup
        $stdout.reopen($stderr)
        answer.puts JSON.generate(said(file))
      end

      # The hooks of `file` by name, each a list of Procs in the order of the file: those of the
      # whole server, and then those of the mount of this name.
      def hooks(file, mount = nil)
        config = read(file)
        of_mount = config.mounts.find { |one| one.name == mount }
        config.hooks.merge(of_mount ? of_mount.hooks : {}) { |_, all, own| all + own }
      rescue Errno::ENOENT
        raise Error, "the configuration file #{file} is not there any more"
      end

      private

      def said(file)
        config = read(file)
        { "values" => config.server.values, "mounts" => config.mounts.map(&:to_h) }
      rescue Error => error
        { "error" => error.message }
      rescue ScriptError, StandardError => error
        { "error" => "#{file} raised\n#{Report.full(error).chomp}" }
      end
    end

    # What is said of the server, or of one mount.
    class Part
      # Option name => pairs of a value, as text, and its place.
      attr_reader :values
      # Hook name => Procs.
      attr_reader :hooks
      # Where it begins.
      attr_reader :place

      def initialize(place = nil)
        @place = place
        @values = {}
        @hooks = {}
        @hook_places = []
      end

      def hook(name, callable, place)
        (@hooks[name.to_sym] ||= []) << callable
        @hook_places << [name, place]
      end

      # As the server names it.
      def name
        named = @values.dig("name", -1, 0)
        return named if named

        path = @values.fetch("path")[-1][0].sub(%r{/+\z}, "").delete_prefix("/")
        path.empty? ? "/" : path
      end

      def to_h = { "place" => place, "values" => values, "hooks" => @hook_places }
    end

    # What is said of the server.
    attr_reader :server
    # What is said of each mount, in order.
    attr_reader :mounts

    # Methods on the object itself, so that none of Ruby's own is in the way.
    def initialize(options, words)
      @server = @part = Part.new
      @mounts = []
      @options = options
      @words = words
      (names(options) + names(words)).uniq.each do |name|
        define_singleton_method(name) { |*given, &block| set(name, given, block) }
      end
      HOOKS.each do |name|
        define_singleton_method(name) { |callable = nil, &block| hook(name, callable || block) }
      end
    end

    # Hook name => Procs, those of the whole server.
    def hooks = @server.hooks

    # Declares a mount. What is its own can be said by name, in the block, or both.
    def mount(path = nil, **given, &block)
      raise Error, "#{place}: a mount within a mount: end the first one before" if inside?
      unless path.is_a?(String)
        raise Error, "#{place}: mount takes its path first: mount \"/shop\""
      end

      @part = Part.new(place)
      set("path", [path], nil)
      given.each { |name, value| within(name.to_s, value) }
      block&.call
      @mounts << @part
    ensure
      @part = @server
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

    def inside? = !@part.equal?(@server)

    # By any name that an option of a file has.
    def names(options)
      options.select { |option| option["in_file"] }.flat_map { |one| [one["name"], *one["also"]] }
    end

    def find(options, name)
      options.find do |option|
        option["in_file"] && [option["name"], *option["also"]].include?(name)
      end
    end

    # The option that a name means here: `host` and `path` are the listener's outside of mounts.
    def option(name)
      word = find(@words, name)
      option = find(@options, name)
      return option || raise(Error, "#{place}: #{name} is said of a mount") unless inside?
      return word if word
      return option if option["in_mount"]

      raise Error, "#{place}: #{name} is the server's: say it outside of mounts"
    end

    # What is given to `mount` by name.
    def within(name, value)
      if HOOKS.include?(name)
        hook(name, value)
      elsif find(@words, name) || find(@options, name)
        set(name, [value], nil)
      else
        raise Error, unknown(name)
      end
    end

    def set(name, given, block)
      option = option(name)
      if inside? && name == "path" && @part.values["path"]
        raise Error, "#{place}: #{name} is what mount begins with"
      end

      given = given.empty? ? said_without_value(option, block) : given.flatten
      unless given.size == 1 || (option["repeatable"] && given.any?)
        raise Error, "#{place}: #{name} takes one value, #{given.size} given"
      end

      # As if it had not been said: `spawn_interval ENV["INTERVAL"]`.
      given = given.compact.map { |value| [Options.text(value, option), place] }
      return if given.empty?

      values = @part.values
      values[option["name"]] = (option["repeatable"] ? values[option["name"]].to_a : []) + given
    end

    # Rhebok takes some values as the result of a block only, by mistake.
    def said_without_value(option, block)
      value = block&.call
      return [value] unless value.nil?

      option["kind"] == "flag" ? [true] : []
    end

    def hook(name, callable)
      raise Error, "#{place}: #{name} takes a block" unless callable.respond_to?(:call)

      @part.hook(name, callable, place)
    end

    def unknown(name)
      names = @options.flat_map { |option| [option["name"], *option["also"]] }
      return "#{place}: #{name} can be given on the command line only" if names.include?(name)

      names += inside? ? names(@words) : ["mount"]
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
def (Oribi::Config).read(file_to_read)
  own_config = new(Oribi::Options.table, Oribi::Options.mount_words)
  own_config.instance_eval(File.read(file_to_read), File.expand_path(file_to_read))
  own_config.done
end
