# frozen_string_literal: true

module ACGI
  # What `oribi.rb` beside the app says, as far as it concerns plain Ruby. The same file may say
  # more to the native server.
  class Settings
    NAME = "oribi.rb"
    MANY = 1024

    # What to tell people; patterns of files whose change means new code.
    attr_reader :warnings, :patterns

    # Of the file in `directory`, if there is one.
    def self.read(directory)
      settings = new(File.join(directory, NAME))
      settings.send(:evaluate) if File.exist?(settings.send(:file))
      settings
    end

    def initialize(file)
      @file = file
      @warnings = []
      @patterns = []
      @workers = 4
      @threads = 1
      @idle_timeout = 900.0
    end

    # How many processes run requests.
    def worker_count = @single ? 1 : @workers

    # Seconds without a request after which the server ends; nil: never.
    def idle_seconds = @idle_timeout.zero? ? nil : @idle_timeout

    # Scripts cannot share a process; Rack apps need not.
    def check_threads(script)
      return if @threads == 1

      raise Error, RackApp::ONE_THREAD.sub("The script", script) if script

      warnings << "#{NAME}: threads is for the native server: a worker in plain Ruby runs one " \
                  "request at a time"
    end

    private

    attr_reader :file

    def evaluate = instance_eval(File.read(@file, encoding: Encoding::UTF_8), @file)

    def workers(count) = @workers = whole(:workers, count)

    def threads(count) = @threads = whole(:threads, count)

    def affinity(word)
      unless %w[any single].include?(word.to_s)
        raise Error, "#{place}: affinity is any or single, not #{word.inspect}"
      end

      @single = word.to_s == "single"
    end

    def idle_timeout(seconds)
      @idle_timeout = Float(seconds, exception: false)
      return if @idle_timeout && @idle_timeout >= 0 && @idle_timeout.finite?

      raise Error, "#{place}: idle_timeout is a number of seconds, not #{seconds.inspect}"
    end

    def watch(*patterns) = @patterns.concat(patterns.flatten.map(&:to_s))

    def whole(name, count)
      number = Integer(count, exception: false)
      return number if number&.between?(1, MANY)

      raise Error, "#{place}: #{name} is a number from 1 to #{MANY}, not #{count.inspect}"
    end

    # A setting or a hook of the native server.
    def method_missing(name, *)
      @warnings << "#{place}: #{name} means nothing to plain Ruby and is left out"
      nil
    end

    def respond_to_missing?(*) = true

    def place
      frame = caller_locations.find { |location| location.path == @file }
      "#{NAME}:#{frame&.lineno}"
    end
  end
end
