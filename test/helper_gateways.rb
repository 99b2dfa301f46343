# frozen_string_literal: true

require "helper_fastcgi"

module Helper
  # For cases whose server has doors for FastCGI and SCGI too.
  module Gateways
    DOORS = %w[-b fastcgi://127.0.0.1:0 -b scgi://127.0.0.1:0].freeze

    def door(scheme) = Integer(server.log[%r{listening on #{scheme}://\S+:(\d+)$}, 1], 10)

    def fastcgi = @fastcgi ||= keep(FastCgi.tcp(door("fastcgi")))

    # Status and body.
    def scgi(target, content = "", **others)
      params = FastCgi.params(target, body: content, **others)
      params = { "CONTENT_LENGTH" => params.delete("CONTENT_LENGTH"), "SCGI" => "1" }.merge(params)
      block = params.map { |name, value| "#{name}\0#{value}\0" }.join.b
      client = keep(Client.tcp(door("scgi"))).write("#{block.bytesize}:#{block},#{content}")
      head, body = client.rest.split("\r\n\r\n", 2)
      [Integer(head[/\AStatus: (\d+)/, 1], 10), body]
    end
  end
end
