# frozen_string_literal: true

require "rbconfig"
require_relative "place"

module Stack
  # Oribi: one server with N workers, or N servers with one, each with MagTag below /app.
  class Servers
    ROOT = File.expand_path("../..", __dir__)
    ORIBI = File.join(ROOT, "exe/oribi")
    PREFIX = "/app"
    # How long they may take to start, in seconds.
    PATIENCE = 60.0
    # How a server is told its door: over TCP, over a unix socket.
    SCHEMES = {
      "http" => %w[tcp:// unix://], "fastcgi" => %w[fastcgi:// fastcgi+unix://],
      "scgi" => %w[scgi:// scgi+unix://]
    }.freeze

    def initialize(place, cell, processes)
      @place = place
      @cell = cell
      @processes = processes
    end

    # Complains where Oribi cannot be read by whom it will run as.
    def check
      closed = closed_folder(ROOT) || closed_folder(@place.log)
      return unless @place.user && closed

      raise Trouble, "started by root, the servers run as #{@place.user.name}, who cannot enter " \
                     "#{closed}: start it as another user, or from another folder"
    end

    # Where the web server finds them: ports, or paths of sockets. None for CGI.
    def addresses
      return [] if @cell.cgi?
      return Array.new(@cell.servers) { |nr| @place.socket(nr) } if @cell.unix?

      @place.server_ports(@cell.servers)
    end

    # Starts them and waits until they serve.
    def start
      entries = addresses.each_with_index.map { |address, nr| start_one(address, nr) }
      entries.each { |entry| await(entry) }
    end

    private

    def start_one(address, nr)
      name = "oribi-#{@cell.unix? ? nr : address}"
      environment = { "MAGTAG_DB" => @place.file("magtag.db"), "RACK_ENV" => "production" }
      command = [RbConfig.ruby, ORIBI, *arguments(address, nr), @place.app]
      @processes.run(name, "oribi-#{nr}.out", *command, env: environment)
    end

    def arguments(address, nr)
      tcp, unix = SCHEMES.fetch(@cell.door)
      binds = [@cell.unix? ? "#{unix}#{address}" : "#{tcp}127.0.0.1:#{address}"]
      # Nobody in front: it is the web server too.
      binds << "tcp://127.0.0.1:#{@place.port}" if @cell.web == "none" && @cell.door == "http"
      [*binds.flat_map { |bind| ["-b", bind] }, "--workers", @cell.workers.to_s,
       "--prefix", PREFIX, "--backlog", "4096",
       # The web server is believed when it says who the client is.
       "--trusted-proxies", "127.0.0.1", "--trusted-proxies", "unix",
       "--control", @place.file("oribi-#{nr}.control")]
    end

    def await(entry)
      deadline = Stack.now + PATIENCE
      until File.read(entry.file).match?(/^oribi: \d+ workers? of/)
        raise Trouble, "#{entry.name} ended; #{Stack.tail(entry.file)}" unless entry.alive?

        late = Stack.now > deadline
        raise Trouble, "#{entry.name} does not serve; #{Stack.tail(entry.file)}" if late

        sleep 0.02
      end
    end

    # The first folder on the way to a path that not everybody may enter.
    def closed_folder(path)
      folders = []
      until path == "/"
        folders.unshift(path)
        path = File.dirname(path)
      end
      folders.find { |folder| File.directory?(folder) && File.stat(folder).mode.nobits?(0o001) }
    end
  end
end
