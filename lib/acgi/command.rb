# frozen_string_literal: true

module ACGI
  # What is typed: `./server.cgi status`, `ruby acgi.rb --server DIR`.
  module Command
    NAMES = %w[status pid start stop restart --server].freeze

    module_function

    # `ruby acgi.rb ...`.
    def main(arguments)
      name, directory, *rest = arguments
      unless NAMES.include?(name) && directory && rest.empty?
        abort "usage: acgi.rb #{NAMES.join('|')} DIR"
      end
      run(name, directory)
    end

    # `./server.cgi ...`, or the script as plain CGI, which is the block. A web server may pass a
    # query as arguments: they are no commands.
    def of_script(arguments)
      return yield if ENV["GATEWAY_INTERFACE"]

      name, *rest = arguments
      return run(name, File.dirname($PROGRAM_NAME)) if NAMES.include?(name) && rest.empty?
      # Without a web server CGI takes its parameters from the command line.
      return yield if arguments.all? { |word| word.include?("=") }

      abort "#{File.basename($PROGRAM_NAME)}: no command #{arguments.join(' ')}: there are " \
            "#{NAMES.join(', ')}"
    end

    def run(name, directory)
      place = Place.new(directory)
      case name
      when "status", "pid" then tell(name, *place.server)
      when "start" then place.start
      when "stop" then place.stop
      when "restart"
        place.stop
        place.start
      else serve(place)
      end
      exit(0)
    rescue Error => error
      abort "acgi: #{error.message}"
    end

    def tell(name, pid, alive)
      if name == "status"
        puts alive ? "alive (#{pid})" : ["dead", *("(#{pid})" if pid.positive?)].join(" ")
      elsif alive
        puts pid
      end
      exit(alive)
    end

    # The server itself, in the foreground: a native one where there is one.
    def serve(place)
      native = native_server
      exec(native, "cgi", "serve", place.directory) if native
      # Nothing of a script that has been loaded already is to be in its server.
      exec(RbConfig.ruby, FILE, "--server", place.directory) unless $PROGRAM_NAME == FILE
      # Ruby's CGI takes them for parameters of some requests.
      ARGV.clear
      Server.new(place).run
    end

    def native_server
      return if ENV["ACGI_NATIVE"] == "0"

      named = ENV.fetch("ORIBI", nil)
      return named unless named.to_s.empty?

      ENV.fetch("PATH", "").split(":").map { |folder| File.join(folder, "oribi") }
         .find { |file| File.file?(file) && File.executable?(file) }
    end
  end
end
