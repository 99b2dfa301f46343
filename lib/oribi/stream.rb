# frozen_string_literal: true

module Oribi
  # What a callable body writes to, and reads from what it has not yet read of the request.
  class Stream
    def initialize(seat, input)
      @seat = seat
      @input = input
      @reads = @writes = true
    end

    def read(*arguments)
      raise IOError, "not opened for reading" unless @reads

      @input.read(*arguments)
    end

    # Sent at once. Raises Errno::EPIPE when the client has gone.
    def write(*parts)
      raise IOError, "not opened for writing" unless @writes

      parts.sum do |part|
        part = part.to_s
        raise Errno::EPIPE, "the client has gone" unless @seat.write(part)

        part.bytesize
      end
    end

    def <<(part)
      write(part)
      self
    end

    def flush = self

    def close_read
      @reads = false
      nil
    end

    # The reply is whole.
    def close_write
      @seat.finish if @writes
      @writes = false
      nil
    end

    def close(_error = nil)
      close_read
      close_write
    end

    def closed? = !@reads && !@writes
  end
end
