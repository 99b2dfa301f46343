# frozen_string_literal: true

module Oribi
  # A body without the chunks that it comes in (RFC 9112, section 7.1).
  class Unchunk
    def initialize(body)
      @body = body
      @buffer = +"".b
      # Bytes of the chunk still to come; nil between chunks.
      @left = nil
      @ended = false
    end

    # Yields what the chunks hold as it comes.
    def each
      @body.each do |part|
        @buffer << part.to_s.b
        while (data = cut)
          yield data unless data.empty?
        end
      end
      raise BadReply, "the app's body is not chunked as it says" unless @ended
    end

    private

    # The next bytes of a chunk, as far as they are there. What follows the last chunk is dropped.
    def cut
      return if @ended && @buffer.clear
      return read_size unless @left
      return end_chunk if @left.zero?
      return if @buffer.empty?

      data = @buffer.slice!(0, @left)
      @left -= data.bytesize
      data
    end

    def read_size
      stop = @buffer.index("\r\n") or return
      line = @buffer.slice!(0, stop + 2)
      size = line[/\A\h{1,15}(?=[\r;])/] or
        raise BadReply, "the app's body is not chunked as it says"
      @left = size.hex
      @ended = @left.zero?
      ""
    end

    def end_chunk
      return if @buffer.bytesize < 2
      unless @buffer.slice!(0, 2) == "\r\n"
        raise BadReply, "the app's body is not chunked as it says"
      end

      @left = nil
      ""
    end
  end
end
