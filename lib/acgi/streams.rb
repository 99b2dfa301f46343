# frozen_string_literal: true

# What is exchanged are Ruby's own streams, whatever a script has made of the variables.
# rubocop:disable Style/GlobalStdStream

module ACGI
  # What belongs to one request although the process has it once: ENV and the standard streams. The
  # streams are exchanged as file descriptors, so that processes a script starts have them too.
  module Streams
    STANDARD = [STDIN, STDOUT, STDERR].freeze

    module_function

    # Runs the block with these; afterwards all is as it was, ENV too, whatever the block did.
    def lend(environment, variables, input, output, errors)
      kept = STANDARD.map(&:dup)
      take_over(input, output, errors)
      ENV.update(variables)
      yield
    ensure
      ENV.replace(environment)
      give_back(kept)
    end

    # To whoever reads the errors of this request.
    def report(error) = STDERR.write(ACGI.describe(error))

    # A pipe for processes, both ends. Ruby's own never wait, which other programs do not expect.
    def pipe
      IO.pipe(binmode: true).each do |io|
        io.fcntl(Fcntl::F_SETFL, io.fcntl(Fcntl::F_GETFL) & ~Fcntl::O_NONBLOCK)
      end
    end

    # Whoever closes a standard stream has ended it, for this request only: a Ruby stream that is
    # really closed can never be opened again.
    def protect
      STANDARD.each { |stream| stream.extend(Lasting) }
    end

    # A stream that `close` connects to nothing.
    module Lasting
      def close
        flush unless equal?(STDIN)
        Streams.connect(self, File.open(File::NULL, equal?(STDIN) ? "rb" : "wb"))
        nil
      end
    end

    def take_over(input, output, errors)
      flush
      # As at the start of a process: a script before may have said something else.
      [STDIN, STDOUT].each { |stream| stream.set_encoding(nil) }
      [input, output, errors].zip(STANDARD) { |io, stream| exchange(stream, io) }
      STDIN.lineno = 0
      # As for a script whose output is a pipe.
      STDOUT.sync = false
      STDERR.sync = true
      globals
    end

    def give_back(kept)
      flush
      # What Ruby has read ahead would be the next request's.
      connect(STDIN, File.open(File::NULL, "rb"))
      STDIN.read
      kept.zip(STANDARD) do |io, stream|
        exchange(stream, io)
        io.close
      end
      STDOUT.sync = true
      globals
    end

    def globals
      $stdin = STDIN
      $stdout = STDOUT
      $stderr = STDERR
    end

    # The descriptor alone (dup2), behind the stream's back: reopening the stream would write out
    # what it holds, where perhaps nobody reads, and make another object of it.
    def exchange(stream, io)
      mode = stream.equal?(STDIN) ? "rb" : "wb"
      IO.for_fd(stream.fileno, mode, autoclose: false).reopen(io)
    end

    def connect(stream, io)
      exchange(stream, io)
    ensure
      io.close
    end

    # Nobody may be there any more to read it. Then it goes nowhere.
    def flush
      [STDOUT, STDERR].each do |stream|
        stream.flush
      rescue SystemCallError
        connect(stream, File.open(File::NULL, "wb"))
        stream.flush
      end
    end
  end
end
# rubocop:enable Style/GlobalStdStream
