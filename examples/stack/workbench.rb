# frozen_string_literal: true

require "net/http"
require_relative "cell"
require_relative "httpd"
require_relative "place"
require_relative "processes"
require_relative "program"
require_relative "servers"

# A web server, Oribi behind it, MagTag below /app: the workbench. See README.md.
module Stack
  CSS = "/app/magtag.css"
  # How long the web server may take until it answers, in seconds.
  PATIENCE = 20.0

  module_function

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # What a log says last.
  def tail(file, lines = 3)
    said = File.readlines(file, chomp: true).last(lines)
    said.empty? ? "#{file} is empty" : "#{file} says:\n#{said.join("\n")}"
  end

  # Starts a cell and waits until a page comes through all of it.
  def start(cell, place = Place.new)
    processes = Processes.new(place)
    check(cell, place, processes)
    place.prepare
    servers = Servers.new(place, cell, processes)
    servers.check
    begin
      servers.start
      started = front(cell, place, processes, servers)
      await(place, started, cell)
    rescue StandardError
      processes.stop
      raise
    end
    processes.running
  end

  def check(cell, place, processes)
    running = processes.running
    unless running.empty?
      raise Trouble, "a stack is running (#{running.map(&:name).join(', ')}): `make stack-stop`"
    end

    Httpd.new(place, cell, processes).check unless cell.web == "none"
    place.require_free(place.port)
    return if cell.unix?

    place.server_ports(cell.servers).each { |port| place.require_free(port) }
  end

  def front(cell, place, processes, servers)
    return [] if cell.web == "none"

    program = Program.new(place, cell).prepare if cell.cgi?
    Httpd.new(place, cell, processes).start(servers.addresses, program)
  end

  # Asks for a page until it comes.
  def await(place, entries, cell)
    return if cell.web == "none" && cell.door != "http"

    deadline = now + PATIENCE
    loop do
      answer = get(place, CSS)
      return if answer.is_a?(Net::HTTPOK)

      dead = entries.find { |entry| !entry.alive? }
      raise Trouble, "#{dead.name} ended; #{tail(dead.file)}" if dead

      # Until all are up there may be nobody, or a 502; nothing else gets better by waiting.
      coming = answer.nil? || answer.is_a?(Net::HTTPServerError)
      give_up(entries, answer) if !coming || now > deadline
      sleep 0.02
    end
  end

  def give_up(entries, answer)
    said = answer ? "answers #{answer.code} #{answer.message}" : "does not answer"
    logs = entries.map { |entry| tail(entry.file) }.join("\n")
    raise Trouble, "#{CSS} #{said}; #{logs}"
  end

  # A page through the web server; nil if nobody listens.
  def get(place, path)
    options = { open_timeout: PATIENCE, read_timeout: PATIENCE, max_retries: 0 }
    Net::HTTP.start("127.0.0.1", place.port, nil, **options) { |http| http.get(path) }
  rescue SystemCallError, IOError
    nil
  rescue Timeout::Error
    raise Trouble, "#{path} is not answered within #{PATIENCE} s"
  end
end
