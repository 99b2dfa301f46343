# frozen_string_literal: true

module Stack
  # Sockets that wait in TIME_WAIT, as `ss -Htan state time-wait` counts them.
  module Sockets
    # Its number in /proc/net/tcp.
    TIME_WAIT = "06"

    module_function

    # Those with one of the ports at an end: pairs of their own port and the other end's. The side
    # that closed first has them.
    def time_wait(ports)
      lines = %w[/proc/net/tcp /proc/net/tcp6].select { |file| File.exist?(file) }
                                              .flat_map { |file| File.readlines(file).drop(1) }
      pairs = lines.map(&:split).select { |fields| fields[3] == TIME_WAIT }
                   .map { |fields| fields[1, 2].map { |address| address[/\h+\z/].to_i(16) } }
      pairs.select { |pair| pair.intersect?(ports) }
    end

    # Waits until fewer than so many touch the ports; the kernel keeps each for 60 s. False if they
    # do not get fewer in time.
    def settle(ports, fewer_than, within: 90.0)
      deadline = Stack.now + within
      until time_wait(ports).size < fewer_than
        return false if Stack.now > deadline

        sleep 0.2
      end
      true
    end
  end
end
