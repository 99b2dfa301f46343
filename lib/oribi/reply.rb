# frozen_string_literal: true

require "socket"
require "oribi/file_body"
require "oribi/stream"
require "oribi/unchunk"

module Oribi
  # The replies that are more than a head and an Array of Strings.
  module Reply
    module_function

    # The body behind a head that has gone out. A body that responds to both is an enumerable one.
    def send_body(seat, env, body)
      if body.respond_to?(:each)
        body.each { |part| break unless seat.write(part) }
      else
        stream = Stream.new(seat, env["rack.input"])
        body.call(stream)
      end
      seat.finish
    end

    # What `seat.reply` leaves to us: a status or headers of another class, a body that comes with
    # a transfer coding, or the app wants the connection itself.
    def send_special(seat, env, status, headers, body)
      status = number(status)
      headers = hash_of(headers)
      special = headers.select { |name, _| SPECIAL.include?(name.to_s.downcase) }
      headers = headers.reject { |name, _| special.key?(name) }
      special.transform_keys! { |name| name.to_s.downcase }
      callable = special["rack.hijack"]
      protocol = special["rack.protocol"]
      keep_connection(status, callable, protocol, body) if seat.gateway?
      return hand_over(seat, status, headers, callable) if callable
      return upgrade(seat, headers, protocol, body) if protocol && body.respond_to?(:call)
      return hand_over(seat, status, headers, body) if status == 101 && body.respond_to?(:call)

      coding = special["transfer-encoding"]
      return if coding.nil? && FileBody.reply(seat, status, headers, body)

      body = unchunked(coding, body)
      complete = seat.reply_parts(status, headers, body)
      raise BadReply, "the app's status is #{status}, and its body does not call" if complete.nil?

      send_body(seat, env, body) unless complete
    end

    # A Hash of what may be one, or only respond to `each`.
    def hash_of(headers)
      return headers if headers.is_a?(Hash)
      return headers.to_hash if headers.respond_to?(:to_hash)

      unless headers.respond_to?(:each)
        raise BadReply, "the app's headers are #{headers.nil? ? 'nil' : "a #{headers.class}"}, " \
                        "not a Hash"
      end

      pairs = {}
      headers.each { |name, value| (pairs[name] ||= []).concat(Array(value)) }
      pairs
    end

    SPECIAL = %w[rack.hijack rack.protocol transfer-encoding].freeze
    private_constant :SPECIAL

    class << self
      private

      def number(status)
        case status
        when nil, /\D/ then raise BadReply, "the app's status is #{status.inspect}, not a number"
        else return status.to_i if status.respond_to?(:to_i)
        end

        raise BadReply, "the app's status is a #{status.class}, not a number"
      end

      # Raises where the app wants the client's connection: a web server or a shim has it.
      def keep_connection(status, callable, protocol, body)
        wanted = if callable then "a header rack.hijack"
                 elsif !body.respond_to?(:call) then return
                 elsif protocol then "a header rack.protocol"
                 elsif status == 101 then "status 101"
                 end
        return unless wanted

        raise BadReply, "the app's reply has #{wanted}, but the request came through a gateway, " \
                        "which keeps its client's connection: look at rack.hijack? in the env " \
                        "before, or let these requests come over HTTP"
      end

      # Head and connection at once, and the worker's part is done; then the app's callable gets it.
      def hand_over(seat, status, headers, callable)
        mine, theirs = UNIXSocket.pair
        # Nothing else says where such a response ends.
        unless status == 101 || headers.keys.any? { |name| name.to_s.casecmp?("connection") }
          headers = headers.merge("connection" => "close")
        end
        seat.hijack_with(theirs.fileno, status, headers)
        theirs.close
        callable.call(mine)
      rescue Exception # rubocop:disable Lint/RescueException
        mine&.close
        raise
      ensure
        theirs&.close
      end

      # RFC 9110, section 7.8. What the app says of the connection itself is replaced.
      def upgrade(seat, headers, protocol, body)
        headers = headers.reject { |name, _| name.to_s.match?(/\A(connection|upgrade)\z/i) }
        headers.update("connection" => "upgrade", "upgrade" => protocol)
        hand_over(seat, 101, headers, body)
      end

      # An app that says so has chunked its body itself (Rack::Chunked does). The front chunks for
      # those clients that can read it.
      def unchunked(coding, body)
        case coding&.downcase
        when nil, "identity" then body
        when "chunked" then Unchunk.new(body)
        else raise BadReply, "the app's Transfer-Encoding is #{coding.inspect}, not chunked"
        end
      end
    end
  end
end
