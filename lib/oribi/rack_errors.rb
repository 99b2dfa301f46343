# frozen_string_literal: true

require "stringio"

module Oribi
  # `rack.errors` of a request whose door has a way for it (FastCGI's STDERR): what is written goes
  # to the web server, beside the reply. Whatever comes too late for that, or from a forked process,
  # goes to the server's own log. One for each seat, for the request it serves at the moment.
  class RackErrors
    def initialize(seat)
      @seat = seat
      @thread = Thread.current
      @process = Process.pid
    end

    # Bytes written, all of them.
    def write(*parts)
      parts.sum do |part|
        text = part.to_s
        $stderr.write(text) unless text.empty? || beside_reply(text)
        text.bytesize
      end
    end

    def <<(part)
      write(part)
      self
    end

    %i[puts print printf].each do |name|
      define_method(name) do |*arguments|
        text = StringIO.new.tap { |io| io.public_send(name, *arguments) }.string
        write(text)
        nil
      end
    end

    # Without it they come with the next part of the reply, or with its end.
    def flush
      Process.pid == @process ? @seat.flush_errors : $stderr.flush
      self
    end

    # Rack forbids it, and other requests want it too.
    def close = nil

    def closed? = false

    def sync = true

    def sync=(_); end

    def fsync = 0

    def tty? = false

    alias isatty tty?

    def external_encoding = nil

    def inspect = "#<Oribi::RackErrors>"

    private

    # A copy: nobody else can change it while it is written.
    def beside_reply(text)
      Process.pid == @process && @seat.errors(text.b, Thread.current.equal?(@thread))
    end
  end
end
