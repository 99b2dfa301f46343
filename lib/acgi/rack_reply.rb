# frozen_string_literal: true

module ACGI
  # A Rack reply as the output of a CGI script.
  class RackReply
    CHUNK = 64 * 1024
    # Of the server in front, and not the app's to say.
    HOPS = %w[connection keep-alive status transfer-encoding upgrade].freeze

    def initialize(connection, input)
      @connection = connection
      @input = input
    end

    attr_reader :begun

    def send(status, headers, body)
      head = head(status, headers)
      @begun = true
      @connection.write(Records::OUTPUT, head)
      pass(body)
    ensure
      body.close if body.respond_to?(:close)
    end

    private

    def head(status, headers)
      raise Error, "the app's status is #{status.inspect}, not a number" if status.to_i < 100

      lines = ["Status: #{status.to_i}"]
      headers.each do |name, value|
        next if name.start_with?("rack.") || HOPS.include?(name.downcase)

        values = value.is_a?(Array) ? value : value.to_s.split("\n", -1)
        values.each { |one| lines << "#{name}: #{clean(name, one)}" }
      end
      "#{lines.join("\r\n")}\r\n\r\n".b
    end

    def clean(name, value)
      return value unless value.to_s.match?(/[\r\n\0]/)

      raise Error, "the app's header #{name} has a line break or a NUL in its value"
    end

    def pass(body)
      if body.respond_to?(:to_path)
        pass_file(body.to_path)
      elsif body.respond_to?(:each)
        body.each { |part| pass_part(part) }
      else
        body.call(RackStream.new(@input) { |part| pass_part(part) })
      end
    end

    def pass_part(part) = @connection.write(Records::OUTPUT, part.to_s.b)

    def pass_file(path)
      File.open(path, "rb") do |file|
        while (data = file.read(CHUNK))
          pass_part(data)
        end
      end
    end
  end

  # What a body that responds to `call` is given.
  class RackStream
    def initialize(input, &write)
      @input = input
      @write = write
    end

    def read(...) = @input.read(...)

    def write(*parts)
      raise IOError, "closed stream" if @closed

      parts.sum do |part|
        @write.call(part)
        part.to_s.bytesize
      end
    end

    def <<(part)
      write(part)
      self
    end

    def flush = self

    def close = close_write

    def close_read = nil

    def close_write
      @closed = true
      nil
    end

    def closed? = !!@closed
  end
end
