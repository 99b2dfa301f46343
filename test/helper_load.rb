# frozen_string_literal: true

require "helper_client"

module Helper
  # Clients that never stop asking, and count what goes wrong. Half of them keep their connection
  # for as long as the server does, the others take a new one for each request.
  class Load
    attr_reader :answers

    # `doors` are procs that connect.
    def initialize(*doors)
      @failures = Queue.new
      @answers = Queue.new
      @over = false
      @threads = doors.flat_map do |door|
        [true, false].map { |keeps| Thread.new { keeps ? keep(door) : renew(door) } }
      end
    end

    # Waits for so many more answers.
    def more(count)
      before = @answers.size
      Helper.wait_until("#{count} answers more") { @answers.size >= before + count }
    end

    # Ends the load.
    def stop
      @over = true
      @threads.each(&:join)
    end

    # What has failed since the last call.
    def failures = Array.new(@failures.size) { @failures.pop }

    # What the answers said, each once.
    def bodies = Array.new(@answers.size) { @answers.pop }.uniq

    private

    def renew(door)
      until @over
        attempt do
          client = door.call
          count(client.get("/", "Connection: close"))
        ensure
          client&.close
        end
      end
    end

    # A server may close a kept connection that has nothing under way at any time, and a client may
    # then ask again elsewhere: that is no failure. One that is closed under a request it has
    # begun to answer is.
    def keep(door)
      until @over
        client = attempt(&door)
        nil until client.nil? || @over || !ask_again(client)
        client&.close
      end
    end

    def ask_again(client)
      return false unless client.quiet?

      answer = client.get
      count(answer)
      !answer["connection"]&.casecmp?("close")
    rescue SystemCallError, EOFError, Minitest::Assertion => error
      @failures << "kept: #{error.class}: #{error.message}"
      false
    end

    def attempt
      yield
    rescue SystemCallError, EOFError, Minitest::Assertion => error
      @failures << "#{error.class}: #{error.message}"
      nil
    end

    def count(answer)
      @failures << "#{answer.status} #{answer.body}" unless answer.status == 200
      @answers << answer.body
    end
  end
end
