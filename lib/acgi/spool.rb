# frozen_string_literal: true

module ACGI
  # Bytes that are gathered before they are used: in memory while they are few, then in a file that
  # has no name.
  class Spool
    # Bytes that any pipe takes at once (PIPE_BUF of POSIX, on Linux).
    PIPE = 4096

    attr_reader :size

    def initialize(limit = 256 * 1024)
      @limit = limit
      @size = 0
      @io = StringIO.new(String.new(encoding: Encoding::BINARY))
    end

    def <<(data)
      @size += data.bytesize
      spill if @size > @limit && @io.is_a?(StringIO)
      @io.write(data)
      self
    end

    # All of it, to be read from the beginning.
    def io
      @io.rewind
      @io
    end

    # The same as a file or pipe, for the standard input of processes. The caller closes it.
    def descriptor
      return File.open(File::NULL, "rb") if @size.zero?
      return pipe if @size <= PIPE

      spill if @io.is_a?(StringIO)
      io.dup
    end

    def close = @io.close

    private

    def spill
      file = Tempfile.create("acgi", binmode: true)
      File.unlink(file.path)
      file.write(@io.string)
      @io = file
    end

    def pipe
      reader, writer = Streams.pipe
      writer.write(io.read)
      writer.close
      reader
    end
  end
end
