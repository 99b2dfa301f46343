# frozen_string_literal: true

require_relative "place"

module Stack
  # What stands behind what: one of the combinations that can be started.
  Cell = Struct.new(:web, :door, :number, :mode, :socket) do
    # The cell that words such as `WEB=nginx` name.
    def self.named(words)
      known = { "WEB" => "lighttpd", "DOOR" => "http", "N" => "4", "MODE" => "workers",
                "SOCKET" => nil }
      strange = words.keys - known.keys
      unless strange.empty?
        raise Trouble, "unknown: #{strange.join(', ')}; there are #{known.keys.join(', ')}"
      end

      new(*known.merge(words).values).checked
    end

    def checked
      one_of("WEB", web, Cell::WEBS)
      one_of("DOOR", door, Cell::DOORS)
      one_of("MODE", mode, Cell::MODES)
      self.number = check_number
      check_socket
      check_without_web if web == "none"
      self
    end

    def to_s = [web, door, "#{number} #{mode}", socket].join(" ")

    def cgi? = door == "cgi"

    def unix? = socket == "unix"

    # How many servers there are, and how many workers each of them has.
    def servers = mode == "instances" ? number : 1

    def workers = mode == "instances" ? 1 : number

    private

    def one_of(name, value, known)
      return if known.include?(value)

      raise Trouble, "#{name}=#{value}: there is #{known.join(', ')}"
    end

    def check_number
      value = Integer(number.to_s, 10, exception: false)
      return value if value&.between?(1, Cell::MOST)

      raise Trouble, "N=#{number}: a number from 1 to #{Cell::MOST}"
    end

    def check_socket
      self.socket ||= cgi? ? "unix" : "tcp"
      one_of("SOCKET", socket, Cell::SOCKETS)
      return if unix? || !cgi?

      raise Trouble, "DOOR=cgi SOCKET=tcp: the CGI program speaks to its server by a unix socket"
    end

    def check_without_web
      raise Trouble, "WEB=none DOOR=cgi: there is nobody to run the program" if cgi?
      return if servers == 1

      raise Trouble, "WEB=none MODE=instances: there is nobody to balance; take MODE=workers, " \
                     "N=1 or a web server"
    end
  end

  # What the words may say.
  class Cell
    WEBS = %w[lighttpd nginx apache none].freeze
    DOORS = %w[http fastcgi scgi cgi].freeze
    MODES = %w[workers instances].freeze
    SOCKETS = %w[tcp unix].freeze
    MOST = 32
  end
end
