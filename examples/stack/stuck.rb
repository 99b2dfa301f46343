# frozen_string_literal: true

require "net/http"
require_relative "proof"

module Stack
  # How long quick requests wait beside slow ones: with N workers behind one queue, and with N
  # servers between which the web server chooses.
  class Stuck
    APP = File.join(__dir__, "stuck.ru")
    # Clients that ask for the quick page, each again a moment after its answer.
    QUICK = 8
    PAUSE = 0.005
    SECONDS = 5
    HEAD = Proof.row("cell", "answers", "median", "p90", "p99", "most", "").rstrip

    def initialize(cell, place)
      @cell = cell
      @place = place
      # All but one of the workers have something slow to do, at any time.
      @slow = [cell.number - 1, 1].max
    end

    # Starts the cell, measures it and stops it; a line of the table.
    def run
      Stack.start(@cell, @place)
      times = ask.sort
      figures = [0.5, 0.9, 0.99, 1].map do |share|
        "#{(1000 * times[((times.size - 1) * share).round]).round(1)} ms"
      end
      Proof.row(@cell, times.size, *figures, "")
    ensure
      Processes.new(@place).stop
    end

    private

    def ask
      @until = Stack.now + SECONDS
      slow = Array.new(@slow) { Thread.new { visit("/app/slow") } }
      sleep 0.3
      quick = Array.new(QUICK) { Thread.new { visit("/app/quick", PAUSE) } }
      slow.each(&:join)
      quick.flat_map(&:value)
    end

    # Asks until the time is over; how long each answer took, in seconds.
    def visit(path, pause = 0)
      Net::HTTP.start("127.0.0.1", @place.port) do |http|
        times = []
        while (began = Stack.now) < @until
          answer = http.get(path)
          raise Trouble, "#{path} answers #{answer.code}" unless answer.is_a?(Net::HTTPOK)

          times << (Stack.now - began)
          sleep pause
        end
        times
      end
    end
  end
end
