# frozen_string_literal: true

module ACGI
  # What the processes of a server share: the listener; a pipe that ends with the server, and one
  # through which it hears that there are requests.
  Ties = Struct.new(:listener, :life, :pulse, :directory, keyword_init: true) do
    def title(role) = Process.setproctitle("acgi: #{role} #{directory}")
  end

  # A process that runs requests, one at a time: whoever is idle takes the next connection.
  class Worker
    # `mold` is a pipe that ends with the mold.
    def initialize(app, ties, mold, settings)
      @app = app
      @ties = ties
      @mold = mold
      @values = { "FCGI_MAX_CONNS" => settings.worker_count.to_s,
                  "FCGI_MAX_REQS" => settings.worker_count.to_s, "FCGI_MPXS_CONNS" => "0" }
      @interval = [(settings.idle_seconds || 60) / 4.0, 15.0].min
      @pulsed = 0
    end

    # Serves until told to leave: TERM after the request it has, QUIT after all that have been
    # accepted by the kernel.
    def run
      @signals = Signals.new("TERM", "QUIT")
      Thread.new { watch }
      serve_next until @leaving
      nil while @draining && serve(@ties.listener.accept_nonblock(exception: false))
    end

    private

    def serve_next
      ready, = IO.select([@signals.io, @ties.listener])
      return obey if ready.include?(@signals.io)

      serve(@ties.listener.accept_nonblock(exception: false))
    end

    def obey
      order = @signals.take
      @leaving = true if order.any?
      @draining = true if order.include?("QUIT")
    end

    # Without its server a worker ends; without its mold it finishes what it has.
    def watch
      watched = [@ties.life, @mold]
      loop do
        ready, = IO.select(watched, nil, nil, @interval)
        exit!(1) if ready&.include?(@ties.life)
        Process.kill("TERM", Process.pid) if ready && watched.delete(@mold)
        pulse if @busy
      end
    end

    # There are requests: the server does not idle.
    def pulse
      moment = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      return if moment - @pulsed < [@interval, 1].min

      @pulsed = moment
      @ties.pulse.write_nonblock("!", exception: false)
    end

    # False when there was no connection.
    def serve(socket)
      return false unless socket.is_a?(BasicSocket)

      @busy = true
      pulse
      connection = Connection.new(socket, @values)
      @app.serve(connection) if connection.receive(@app.spool)
      true
    rescue Gone, Error
      # No request, or nobody to answer.
      true
    rescue StandardError => error
      warn ACGI.describe(error)
      true
    ensure
      connection&.close
      @busy = false
      pulse
    end
  end
end
