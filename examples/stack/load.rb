# frozen_string_literal: true

require_relative "httpd"
require_relative "sockets"

module Stack
  # What the MagLev people measured: ApacheBench on a style sheet that the Ruby application answers.
  module Load
    # Sockets in TIME_WAIT that may be left from before.
    CALM = 20

    module_function

    # Asks once, waits for calm, then lets `ab` run. Returns the lines of its report that matter.
    def ab(place, count, file)
      ab = Httpd.find("ab") or
        raise Trouble, "ab is not installed; `apt-get install apache2-utils`"
      look(place)
      calm(place)
      url = "http://127.0.0.1:#{place.port}#{CSS}"
      said = IO.popen([ab, "-q", "-n", count.to_s, "-c", "10", url, { err: %i[child out] }], &:read)
      FileUtils.mkdir_p(File.dirname(file))
      File.write(file, said)
      raise Trouble, "ab: #{said.lines.last(2).join.strip}" unless said.include?("Requests per s")

      said.lines(chomp: true).grep(/\A(Complete|Failed|Non-2xx|Requests|Time per|  (50|90|99)%)/)
    end

    def look(place)
      answer = Stack.get(place, "#{Servers::PREFIX}/info")
      return if answer.is_a?(Net::HTTPOK)

      said = answer ? "answers #{answer.code}" : "does not answer"
      raise Trouble, "http://127.0.0.1:#{place.port}/app/info #{said}: `make stack` starts a stack"
    end

    def calm(place)
      ports = [place.port, *place.server_ports(1)]
      return if Sockets.settle(ports, CALM)

      raise Trouble, "#{CALM} sockets and more of port #{ports.join(' or ')} stay in TIME_WAIT"
    end
  end
end
