# frozen_string_literal: true

require "socket"
require "timeout"

# One plain request, to see whether and who answers. Never used for measuring speed.
module Bench
  module Http
    module_function

    # Status and body, or nil if nobody answers yet.
    def get(target, path = "/", within: 5)
      Timeout.timeout(within) do
        socket = connect(target)
        socket.write("GET #{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        head, _, body = socket.read.partition("\r\n\r\n")
        [head[%r{\AHTTP/1\.\d (\d+)}, 1].to_i, body]
      ensure
        socket&.close
      end
    rescue SystemCallError, IOError, Timeout::Error
      nil
    end

    def connect(target)
      return UNIXSocket.new(target.delete_prefix("unix://")) if target.start_with?("unix://")

      host, port = target.delete_prefix("tcp://").split(":")
      TCPSocket.new(host, port.to_i)
    end

    def free_port
      server = TCPServer.new("127.0.0.1", 0)
      server.addr[1]
    ensure
      server&.close
    end
  end
end
