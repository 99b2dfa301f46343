# frozen_string_literal: true

module ACGI
  # The other side has gone, or is no FastCGI.
  class Gone < StandardError; end

  # One connection of a web server or a shim, with one request: it is closed afterwards, also where
  # it might be kept, because a kept one would tie its requests to one worker.
  class Connection
    # Seconds without a byte after which nothing more is expected.
    PATIENCE = 60
    # Bytes of all variables together.
    PARAMS = 1024 * 1024
    CHUNK = 64 * 1024

    attr_reader :params, :body

    # `values` answers GET_VALUES: name => text.
    def initialize(socket, values)
      @socket = socket
      @values = values
      @input = String.new(encoding: Encoding::BINARY)
      @words = String.new(encoding: Encoding::BINARY)
    end

    # Reads a request whole. false: there is none to be answered.
    def receive(limit)
      @body = Spool.new(limit)
      until @complete
        kind, id, content = next_record(PATIENCE)
        return false if take(kind, id, content) == :end
      end
      true
    end

    # While a request runs: whether the other side has lost interest in it. That it will send
    # nothing more does not mean that.
    def abandoned?
      kind, id, = next_record(0)
      kind == Records::ABORT_REQUEST && id == @id
    rescue Gone
      @socket_at_end = true
      false
    end

    # To be looked at while a request runs.
    def watched = @socket_at_end ? nil : @socket

    def write(kind, data) = send_all(Records.stream(kind, @id, data))

    def finish(status) = send_all(Records.ending(@id, status))

    def close
      @body&.close
      @socket.close
    end

    private

    def take(kind, id, content)
      return manage(kind, content) if id.zero?
      return start(id, content) if kind == Records::BEGIN_REQUEST
      return unless id == @id

      case kind
      when Records::ABORT_REQUEST then refuse(id, Records::COMPLETE)
      when Records::PARAMS then take_params(content)
      when Records::INPUT then content.empty? ? @complete = true : @body << content
      end
    end

    def manage(kind, content)
      if kind == Records::GET_VALUES
        known = @values.slice(*Records.pairs(content).keys)
        answer = Records.record(Records::GET_VALUES_RESULT, 0, Records.put_pairs(known))
      else
        answer = Records.record(Records::UNKNOWN_TYPE, 0, [kind].pack("Cx7"))
      end
      send_all(answer)
      nil
    end

    # Only of another request than the one under way.
    def start(id, content)
      role, = content.unpack("n")
      return send_all(Records.ending(id, 0, Records::CANNOT_MULTIPLEX)) && nil if @id
      return refuse(id, Records::UNKNOWN_ROLE) unless role == Records::RESPONDER

      @id = id
      nil
    end

    def take_params(content)
      return refuse(@id, Records::OVERLOADED) if @words.bytesize > PARAMS

      @words << content
      @params = Records.pairs(@words) if content.empty?
      nil
    end

    # Ends a request that is not answered. What the other side still sends is read for a moment:
    # closing would take the answer away from it.
    def refuse(id, protocol_status)
      send_all(Records.ending(id, 0, protocol_status))
      @socket.close_write
      @socket.readpartial(CHUNK) while @socket.wait_readable(1)
      :end
    rescue SystemCallError, EOFError
      :end
    end

    # Kind, id and content of the next record; nothing when there is none in time.
    def next_record(seconds)
      until (record = whole_record)
        unless @socket.wait_readable(seconds)
          return if seconds.zero?

          raise Gone, "nothing came for #{seconds} s"
        end
        @input << @socket.readpartial(CHUNK)
      end
      record
    rescue SystemCallError, EOFError
      raise Gone, "the connection has ended"
    end

    def whole_record
      return if @input.bytesize < Records::HEADER

      version, kind, id, length, padding = @input.unpack("CCnnC")
      raise Gone, "not FastCGI" unless version == 1

      whole = Records::HEADER + length + padding
      return if @input.bytesize < whole

      content = @input.byteslice(Records::HEADER, length)
      @input = @input.byteslice(whole..)
      [kind, id, content]
    end

    def send_all(data)
      until data.empty?
        sent = @socket.write_nonblock(data, exception: false)
        next data = data.byteslice(sent..) if sent.is_a?(Integer)
        next if @socket.wait_writable(PATIENCE)

        raise Gone, "nothing was read for #{PATIENCE} s"
      end
      true
    rescue SystemCallError
      raise Gone, "the connection has ended"
    end
  end
end
