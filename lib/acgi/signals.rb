# frozen_string_literal: true

module ACGI
  # Signals as bytes in a pipe, for a process that waits in a select.
  class Signals
    ALL = %w[TERM INT QUIT HUP CHLD].freeze

    # The end to wait for.
    attr_reader :io

    # Catches these; the others of ALL do nothing here, but to programs that are started what they
    # usually do.
    def initialize(*caught)
      @io, @writer = IO.pipe
      mine = Process.pid
      ALL.each do |name|
        next name == "CHLD" ? trap(name, "DEFAULT") : trap(name) {} unless caught.include?(name)

        trap(name) do
          # A process just forked is not the one that catches this.
          @writer.write_nonblock("#{name}\n", exception: false) if Process.pid == mine
        end
      end
    end

    # Those that have come, in order.
    def take
      text = @io.read_nonblock(1024, exception: false)
      text.is_a?(String) ? text.split("\n") : []
    end

    # In a process forked from this one.
    def close
      [@io, @writer].each(&:close)
    end
  end
end
