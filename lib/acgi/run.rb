# frozen_string_literal: true

module ACGI
  # What a script writes to its standard error, in a file without a name. A pipe would not do: Ruby
  # itself writes there (`warn`) while no other thread of it can run, so nobody would empty it.
  class Noise
    CHUNK = 64 * 1024

    # This process's; it has one script at a time.
    def self.mine
      @mine = new unless @pid == Process.pid
      @pid = Process.pid
      @mine
    end

    # For the script.
    attr_reader :io

    def initialize
      path = Tempfile.create("acgi").tap(&:close).path
      @io = File.open(path, File::WRONLY | File::APPEND | File::BINARY)
      @reader = File.open(path, "rb")
      File.unlink(path)
      @taken = 0
    end

    # What is new; nil when nothing is.
    def take
      data = @reader.pread(CHUNK, @taken)
      @taken += data.bytesize
      data
    rescue EOFError
      nil
    end

    # Before the next request. A process in the background may have written since.
    def clear
      @io.truncate(0) if @io.size.positive?
      @taken = 0
    end
  end

  # One request on its way through a script. The script runs in a thread of its own, with streams of
  # its own; whoever made the run takes what it writes, as it is written, so that neither waits for
  # the other whatever the sizes are.
  class Run
    CHUNK = 64 * 1024
    OVER = [:over].freeze
    OTHER = [:other].freeze

    # How the script ended: its exit status, and the exception if that was it.
    attr_reader :status, :error

    # `variables` come into ENV, `input` (an IO, closed here) the standard input.
    def initialize(script, variables, input)
      @script = script
      @owner = Process.pid
      @out, out = Streams.pipe
      @end, over = IO.pipe
      @noise = Noise.mine.tap(&:clear)
      @thread = Thread.new { perform(variables, input, out, over) }
      @thread.report_on_exception = false
      # For a server that says where its requests are.
      Thread.current.thread_variable_set(:oribi_works, @thread)
    end

    # What comes next: [:out, data], OVER when the script has ended and all has been taken, OTHER
    # when `other` can be read, nil when nothing came in `timeout` seconds.
    def take(timeout = nil, other = nil)
      until @ended
        ready, = IO.select([@end, other, @out].compact, nil, nil, timeout)
        return if ready.nil?
        return OTHER if ready.include?(other)

        @ended = ready.include?(@end)
        found = ready.include?(@out) && part
        return found if found
      end
      part || over
    end

    # What has been written to the standard error since the last call; nil when nothing has.
    def errors = @noise.take

    # Nobody wants its output any more: writing fails from now on, as in any pipe.
    def abandon
      out = @out
      @out = nil
      out&.close
    end

    # Waits for the end.
    def finish
      abandon
      nil until take == OVER
    end

    private

    def part
      data = @out&.read_nonblock(CHUNK, exception: false)
      return [:out, data] if data.is_a?(String)

      abandon if data.nil?
    end

    # What a process that still runs in the background writes later reaches nobody.
    def over
      @thread&.join
      @thread = nil
      Thread.current.thread_variable_set(:oribi_works, nil)
      abandon
      @end.close
      OVER
    end

    def perform(variables, input, out, over)
      Streams.lend(@script.environment, variables, input, out, @noise.io) do
        @status = 0
        @script.call
      rescue Exception => error # rubocop:disable Lint/RescueException
        ended_by(error)
      ensure
        leave_copy
      end
    rescue Exception => error # rubocop:disable Lint/RescueException
      @status = 1
      @error ||= error
    ensure
      [input, out, over].each(&:close)
    end

    def ended_by(error)
      @status = 1
      return @status = error.status if error.is_a?(SystemExit)
      # That nobody reads any more is no mistake of the script's.
      return if error.is_a?(Errno::EPIPE) && @out.nil?

      @error = error
      Streams.report(error)
    end

    # A script that forks without a block has a copy that would go on to serve.
    def leave_copy
      return if Process.pid == @owner

      Streams.flush
      exit!(@status)
    end
  end
end
