# frozen_string_literal: true

require "socket"

module Oribi
  # `rack.input` of a request whose body is too large for memory: a file without a name, which the
  # front has written and the worker asks it for.
  module SpooledInput
    # Seconds after which a worker looks whether anybody still wants its request.
    PATIENCE = 0.5

    module_function

    # The file, before the app is called; nil when it cannot be had, or not any more.
    def fetch(seat)
      mine, theirs = UNIXSocket.pair
      seat.pass(Native::Seat::BODY, theirs.fileno)
      theirs.close
      (return if seat.cancelled?) until mine.wait_readable(PATIENCE)
      file = mine.recv_io(File, "rb")
      seat.instance_variable_set(:@spooled_input, file)
    rescue StandardError => error
      # The front closes the socket of whom it has nothing to give.
      warn "oribi: worker #{Process.pid}: no request body: #{error.message}" unless seat.cancelled?
    ensure
      mine&.close
      theirs&.close
    end

    # After the request, whatever the app has made of it.
    def close(seat)
      seat.remove_instance_variable(:@spooled_input).close
    end
  end
end
