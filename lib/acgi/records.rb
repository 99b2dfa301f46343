# frozen_string_literal: true

module ACGI
  # The records of FastCGI 1.0, as bytes.
  module Records
    BEGIN_REQUEST = 1
    ABORT_REQUEST = 2
    END_REQUEST = 3
    PARAMS = 4
    INPUT = 5
    OUTPUT = 6
    ERRORS = 7
    GET_VALUES = 9
    GET_VALUES_RESULT = 10
    UNKNOWN_TYPE = 11

    RESPONDER = 1
    # Protocol status of END_REQUEST.
    COMPLETE = 0
    CANNOT_MULTIPLEX = 1
    OVERLOADED = 2
    UNKNOWN_ROLE = 3

    HEADER = 8
    # A multiple of eight, so that whole records need no padding.
    CONTENT = 65_528

    module_function

    def record(kind, id, content)
      padding = -content.bytesize % 8
      [1, kind, id, content.bytesize, padding, 0].pack("CCnnCC") + content + ("\0" * padding)
    end

    # A piece of a stream, in as many records as it takes.
    def stream(kind, id, data)
      (0...data.bytesize).step(CONTENT).map do |from|
        record(kind, id, data.byteslice(from, CONTENT))
      end.join
    end

    # What ends a request: both streams, if they are open, and both kinds of status.
    def ending(id, app_status, protocol_status = COMPLETE)
      status = [app_status, protocol_status].pack("NCx3")
      return record(END_REQUEST, id, status) unless protocol_status == COMPLETE

      record(OUTPUT, id, "") << record(END_REQUEST, id, status)
    end

    # Name-value pairs (section 3.4) as a Hash, of names that come twice the last. Raises Error for
    # bytes that are none.
    def pairs(content)
      pairs = {}
      place = 0
      while place < content.bytesize
        name, place = length(content, place)
        value, place = length(content, place)
        raise Error, "FastCGI: a pair is cut" if place + name + value > content.bytesize

        pairs[content.byteslice(place, name)] = content.byteslice(place + name, value)
        place += name + value
      end
      pairs
    end

    def put_pairs(pairs)
      pairs.map do |name, value|
        sizes = [name, value].map do |text|
          text.bytesize < 128 ? [text.bytesize].pack("C") : [text.bytesize | (1 << 31)].pack("N")
        end
        "#{sizes.join}#{name}#{value}"
      end.join
    end

    # One byte, or four when the first has its highest bit.
    def length(content, place)
      first = content.getbyte(place) || raise(Error, "FastCGI: a pair is cut")
      return [first, place + 1] if first < 128

      long = content.byteslice(place, 4)
      raise Error, "FastCGI: a pair is cut" if long.bytesize < 4

      [long.unpack1("N") & 0x7fff_ffff, place + 4]
    end
  end
end
