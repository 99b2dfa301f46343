# frozen_string_literal: true

module ACGI
  # What a directory serves: a script, or a rackup file.
  module App
    SCRIPT = "server.cgi"
    RACKUP = "config.ru"
    FAILED = "Status: 500 Internal Server Error\r\nContent-Type: text/plain\r\n\r\n" \
             "Internal Server Error\n"

    module_function

    # The file's path; a script wins.
    def file(directory)
      [SCRIPT, RACKUP].map { |name| File.join(directory, name) }.find { |path| File.file?(path) } ||
        raise(Error, "#{directory} has neither #{SCRIPT} nor #{RACKUP}")
    end

    def load(file, workers)
      return ScriptApp.new(ACGI.load(file)) if File.basename(file) == SCRIPT

      RackupApp.new(rackup(file), workers > 1)
    end

    # What visitors of a web site see is not for developers.
    def rackup(file)
      ENV["RACK_ENV"] ||= "production"
      require "rack"
      Rack::Builder.parse_file(file).then { |app, _| app }
    rescue LoadError => error
      raise unless error.path == "rack"

      Builder.load(file)
    end
  end

  # A script, of which the web server wants the output as it is.
  class ScriptApp
    # Seconds between two looks at a file that tells nobody that it grows.
    LOOK = 0.25

    def initialize(script)
      @script = script
      Streams.protect
    end

    # Bytes of a body that are kept in memory.
    def spool = Spool::PIPE

    # One request.
    def serve(connection)
      variables = Variables.of(connection.params, connection.body.size)
      @held = String.new(encoding: Encoding::BINARY)
      @run = Run.new(@script, variables, connection.body.descriptor)
      relay(connection)
      conclude(connection)
    rescue Gone
      nil
    ensure
      @run&.finish
    end

    private

    # What the script has written to its standard error.
    def tell(connection)
      while (data = @run.errors)
        connection.write(Records::ERRORS, data)
      end
    end

    # The first output is held for a moment: an exception makes another reply of it.
    def relay(connection)
      deadline = now + RackAppReply::GRACE
      loop do
        waiting = @held && !@held.empty?
        time = waiting ? [deadline - now, 0].max : LOOK
        kind, data = @run.take(time, connection.watched)
        tell(connection)
        case kind
        when :over then break
        when :other then raise Gone, "aborted" if connection.abandoned?
        when :out then pass(connection, data)
        else release(connection) if waiting
        end
      end
    end

    def pass(connection, data)
      return connection.write(Records::OUTPUT, data) unless @held

      @held << data
      release(connection) if @held.bytesize > RackAppReply::SMALL
    end

    # From the first byte on there is no other reply any more.
    def release(connection)
      connection.write(Records::OUTPUT, @held)
      @held = nil
    end

    def conclude(connection)
      @held = +App::FAILED if @held && @run.error
      release(connection) if @held
      connection.finish(@run.status)
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # An app of Rack's.
  class RackupApp
    def initialize(app, multiprocess)
      @app = app
      @multiprocess = multiprocess
    end

    def spool = 256 * 1024

    # One request.
    def serve(connection)
      errors = RackErrors.new(connection)
      env = RackEnv.of(connection.params, connection.body, errors, @multiprocess)
      reply = RackReply.new(connection, env["rack.input"])
      reply.send(*@app.call(env))
      connection.finish(0)
    rescue Gone
      nil
    rescue Error => error
      fail_with(connection, "acgi: #{error.message}\n", reply)
    rescue Exception => error # rubocop:disable Lint/RescueException
      fail_with(connection, ACGI.describe(error), reply)
      # An app that ends the process ends it.
      raise unless error.is_a?(StandardError) || error.is_a?(ScriptError)
    end

    private

    # One that has begun is cut: half a reply is not to pass for a whole one.
    def fail_with(connection, why, reply)
      connection.write(Records::ERRORS, why.b)
      return if reply&.begun

      connection.write(Records::OUTPUT, App::FAILED)
      connection.finish(0)
    rescue Gone
      nil
    end
  end
end
