# frozen_string_literal: true

require_relative "crowd"
require_relative "sockets"
require_relative "workbench"

module Stack
  # Walks through cells: does each answer, stand a crowd, and leave few sockets behind?
  class Proof
    # Clients at once, and requests after which sockets in TIME_WAIT are counted.
    CROWD = 1_000
    REQUESTS = 5_000
    # Fewer than so many may be left on the side of Oribi.
    FEW = 20
    # What a walk through one cell found.
    Result = Struct.new(:cell, :faults, :crowd, :rate, :ours, :theirs) do
      def ok? = faults.empty?

      def to_s
        figures = [crowd && format("%.2f s", crowd), rate && format("%.0f/s", rate), ours, theirs]
        Proof.row(cell, *figures, ok? ? "ok" : faults.join("; "))
      end
    end

    # A line of the table.
    def self.row(cell, *columns)
      *figures, verdict = columns.map { |column| (column || "-").to_s }
      [cell.to_s.ljust(34), *figures.map { |figure| figure.rjust(11) }, "  #{verdict}"].join
    end

    HEAD = row("cell", "#{CROWD} at once", "requests", "TIME_WAIT", "web's", "verdict")

    # All cells that words such as `WEB=nginx` leave; without SOCKET the doors over both.
    def self.cells(words)
      choose = ->(name, all) { words.key?(name) ? [words[name]] : all }
      rest = { "DOOR" => Cell::DOORS, "MODE" => Cell::MODES, "SOCKET" => Cell::SOCKETS }
      webs = choose.call("WEB", Cell::WEBS - %w[none])
      webs.product(*rest.map(&choose)).filter_map do |web, door, mode, socket|
        next if door == "cgi" && socket == "tcp"

        Cell.named({ "WEB" => web, "DOOR" => door, "MODE" => mode, "SOCKET" => socket,
                     "N" => words.fetch("N", "4") })
      end
    end

    def initialize(cell, place, crowd: CROWD, requests: REQUESTS)
      @cell = cell
      @place = place
      @count = crowd
      @requests = requests
      @result = Result.new(cell, [])
    end

    # Starts the cell, walks through it and stops it.
    def run
      Stack.start(@cell, @place)
      begin
        pages
        together
        in_turn
      ensure
        Processes.new(@place).stop
      end
      @result
    rescue Trouble => trouble
      @result.faults << trouble.message
      @result
    end

    private

    def fault(text) = @result.faults << text

    # A page, its style sheet, and where one who has not logged in is sent.
    def pages
      info = Stack.get(@place, "/app/info")
      told = info&.body.to_s.include?("<dt>mounted at</dt><dd>/app<")
      fault("/app/info answers #{info&.code}, not mounted at /app") unless told
      home = Stack.get(@place, "/app/home")
      return if home&.code == "303" && home["location"].match?(%r{\A(http://[^/]+)?/app/login\z})

      fault("/app/home answers #{home&.code} and sends one to #{home && home['location']}")
    end

    def crowd
      css = File.binread(File.join(Servers::ROOT, "examples/magtag/public/magtag.css"))
      Crowd.new(@place.port, CSS, css)
    end

    def together
      outcome = crowd.together(@count)
      @result.crowd = outcome.seconds
      note("#{@count} at once", outcome)
    end

    # Over unix sockets nobody on our side can be in TIME_WAIT; over TCP it depends on who keeps
    # connections, and on who closes them.
    def in_turn
      ports = @cell.cgi? || @cell.unix? ? [] : @place.server_ports(@cell.servers)
      before = Sockets.time_wait(ports)
      outcome = crowd.in_turn(@requests, 10)
      @result.rate = outcome.rate
      note("#{@requests} in turn", outcome)
      # An earlier cell's are not this one's.
      left = Sockets.time_wait(ports) - before
      @result.ours, @result.theirs = left.partition { |own, _| ports.include?(own) }.map(&:size)
      keeps = @cell.unix? || (@cell.web != "lighttpd" && @cell.door != "scgi")
      fault("#{@result.ours} sockets in TIME_WAIT") if keeps && @result.ours >= FEW
    end

    def note(what, outcome)
      outcome.failures.each { |failure, times| fault("#{what}: #{times} x #{failure}") }
    end
  end
end
