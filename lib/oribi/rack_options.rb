# frozen_string_literal: true

require "oribi/config"
require "oribi/options"

module Oribi
  # The options a handler is given, as a command line of the server. They are ours and Rhebok's, in
  # any spelling (`workers`, `Workers`, `MaxWorkers`, `Chunked_Transfer`), among those that concern
  # Rack or another server.
  class RackOptions
    # Of Rack's own, Rails' and WEBrick's options those that are handed to every server. Both Rack's
    # `config` and its `daemonize` are not ours.
    OTHERS = %w[app builder config daemonize debug heapfile include pid profile_file profile_mode
                quiet require server warn
                binding caching dev_caching log_stdout restart restart_cmd
                user_supplied_options using Verbose
                BindAddress DoNotListen DoNotReverseLookup Logger ServerType Silent].freeze

    # Of the configuration file, as it was named.
    attr_reader :config
    # The Procs among the options: hook name => list.
    attr_reader :hooks

    def initialize(options)
      @given = {}
      @hooks = {}
      options.each do |name, value|
        name = name.to_s
        keep(name, value) unless value.nil? || OTHERS.include?(name)
      end
      @config = @given["configfile"]
    end

    # How to print the settings instead of serving, if that is wanted: `-O Explain`,
    # `-O Explain=json`.
    def explain
      @given.key?("explain") && (@given["explain"].to_s == "json" ? "json" : "explain")
    end

    # The words; the configuration file's path is relative to `directory`.
    def line(directory = Dir.pwd)
      words = settable.flat_map do |option|
        # Rack gives every server WEBrick's AccessLog, a list of lists.
        values = Array(@given[option["name"]]).grep_v(Array)
        values = values.map { |value| Options.text(value, option) }.reject(&:empty?)
        values.map { |value| word(option, value) }
      end
      words << "--config=#{File.expand_path(@config, directory)}" if @config
      words
    end

    # The table's options that a handler can be given.
    def self.settable
      Options.table.select { |option| option["in_file"] && option["name"] != "daemonize" }
    end

    private

    def settable = self.class.settable

    def word(option, value)
      # A whole address may stand for a host, as with other servers.
      return "--bind=#{value}" if option["name"] == "host" && value.match?(%r{\A(unix|tcp)://})

      "--#{option['flag']}=#{value}"
    end

    def keep(name, value)
      key = keys[Options.plain(name)] || raise(Error, unknown(name))
      if Config::HOOKS.include?(key)
        raise Error, "#{name} takes a Proc, not #{value.inspect}" unless value.respond_to?(:call)

        (@hooks[key.to_sym] ||= []) << value
      else
        # A name that comes later was given by somebody: Rack's defaults come first.
        @given[key] = value
      end
    end

    # Every name there is, spelled plainly, and what it means.
    def keys
      @keys ||= settable.each_with_object({}) do |option, keys|
        [option["name"], *option["also"]].each { |name| keys[Options.plain(name)] = option["name"] }
      end.merge(Config::HOOKS.to_h { |name| [Options.plain(name), name] },
                %w[configfile explain].to_h { |name| [name, name] })
    end

    # Names the nearest in the spelling that people use with rackup.
    def unknown(name)
      if name.to_s.casecmp?("mount")
        return "#{name}: an app that is handed over is the only one: start the server with " \
               "`oribi --mount PATH=FILE` or `oribi -C FILE`"
      end

      require "oribi/rhebok"
      ours = settable.map { |option| option["name"] } + Config::HOOKS
      names = Rhebok::OPTIONS.keys + ours.map { |own| own.split("_").map(&:capitalize).join }
      names = names.uniq { |known| Options.plain(known) }
      names = names.to_h { |known| [Options.plain(known), known] }
      near = names[Options.nearest(Options.plain(name), names.keys)]
      "no option #{name}#{", do you mean #{near}?" if near}"
    end
  end
end
