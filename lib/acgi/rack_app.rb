# frozen_string_literal: true

# How a Rack server runs a script.
module ACGI
  # A Rack app that runs the `server.cgi` at `path`. The script is loaded here, once.
  def self.rack_app(path)
    if defined?(::Oribi.threads) && ::Oribi.threads.to_i > 1
      raise Error, RackApp::ONE_THREAD.sub("The script", path)
    end

    RackApp.new(load(path))
  end

  # The CGI world inside of Rack's.
  class RackApp
    ONE_THREAD = "The script needs threads 1, and more workers instead: ENV and the standard " \
                 "streams are the process's, so a worker runs one request at a time"

    def initialize(script)
      @script = script
      Streams.protect
    end

    def call(env)
      raise Error, ONE_THREAD if env["rack.multithread"]

      # A server that forgot to close a body must not have two scripts at the streams.
      @reply&.close
      body = spool(env["rack.input"])
      run = Run.new(@script, Variables.of_rack(env, body.size), body.descriptor)
      @reply = RackAppReply.new(run, env["rack.errors"])
      @reply.to_rack
    ensure
      body&.close
    end

    private

    # rack.input as what a script and its processes can read from.
    def spool(input)
      spool = Spool.new(Spool::PIPE)
      while (data = input&.read(Run::CHUNK))
        spool << data
      end
      spool
    end
  end

  # The reply of a script: its head, then the rest as it is written.
  class RackAppReply
    # A script that has ended can be judged as a whole: its exit status, an exception. One that
    # takes longer than these seconds, or writes more, is passed on as it goes.
    GRACE = 0.05
    SMALL = 64 * 1024
    # For the server in front, which strips it.
    EXIT_STATUS = "oribi-exit-status"

    def initialize(run, errors)
      @run = run
      @errors = errors
      @text = String.new(encoding: Encoding::BINARY)
      @why = []
    end

    def to_rack
      gather_head
      gather_more unless @over
      head = @over && @run.error ? nil : Head.parse(@text)
      return refuse(nothing) unless head

      respond(head)
    rescue Error => error
      refuse("#{error.message}\n")
    end

    def each
      yield @text unless @text.empty?
      until @over
        data = step
        yield data if data
      end
      raise Error, "the script failed after its reply had begun" if @run.error
    ensure
      close
    end

    # Safe to call again.
    def close
      return if @closed

      @closed = true
      @run.finish unless @over
      @over = true
      tell
    end

    private

    # What the script writes next, if that is output; at the end @over is set.
    def step(timeout = nil)
      kind, data = @run.take(timeout)
      @over = kind == :over
      data if kind == :out
    end

    def gather_head
      until @over || @text.match?(Head::END_OF_HEAD)
        raise Error, "the script's header has more than 64 KiB" if @text.bytesize > Head::LIMIT

        data = step
        @text << data if data
      end
    end

    def gather_more
      deadline = now + GRACE
      until @over || @text.bytesize > SMALL || (left = deadline - now) <= 0
        data = step(left)
        @text << data if data
      end
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def respond(head)
      headers = head.headers(defined?(Rack.release) ? Rack.release.to_i : 3)
      @text = head.bodiless? ? +"" : @text.byteslice(head.length..)
      return [head.status, headers, self] unless @over

      headers[EXIT_STATUS] = @run.status.to_s unless @run.status.zero?
      close
      [head.status, headers, [@text].reject(&:empty?)]
    end

    # A reply instead of the script's.
    def refuse(why)
      @why << why
      close
      status = @run.status.zero? ? 1 : @run.status
      [500, { "content-type" => "text/plain", EXIT_STATUS => status.to_s },
       ["Internal Server Error\n"]]
    end

    # An exception has been written to the standard error already.
    def nothing
      return if @run.error

      "the script ended with status #{@run.status} before it wrote a whole header\n"
    end

    # After the end: rack.errors may be the very stream that the script had.
    def tell
      while (data = @run.errors || @why.shift)
        @errors.write(data.dup.force_encoding(Encoding::UTF_8).scrub)
      end
      @errors.flush
    end
  end
end
