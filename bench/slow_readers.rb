# frozen_string_literal: true

# What clients that hardly read cost the others: requests a second of eight kept connections, in
# turns without and with 64 readers (or as many as the first argument says) that take one KB a second
# of a page of 5 MB each.
#
#   ruby -Ilib bench/slow_readers.rb [READERS] [ROUNDS]
#
# Exit status 1 when the others got less than 0.9 times as much in the median round.

$LOAD_PATH.unshift(File.expand_path("../test", __dir__))
require "helper_client"
require "helper_server"

# The server, its readers, and the others.
class SlowReaders
  LEAST = 0.9
  SECONDS = 2.0
  OTHERS = 8
  RATE = 1024

  APP = <<~'RUBY'
    PLAIN = { "content-type" => "text/plain" }.freeze
    PART = ("x" * 65_536).freeze
    PARTS = Struct.new(:count) { def each = count.times { yield PART } }
    run(lambda do |env|
      next [200, PLAIN, ["hello"]] unless env["PATH_INFO"] == "/page"

      [200, PLAIN, PARTS.new(80)]
    end)
  RUBY

  def initialize(readers, rounds)
    @readers = readers
    @rounds = rounds
    @server = Helper::Server.new(:oribi, "-w", "2", "--write-timeout", "0", app: APP).ready
    @port = Integer(@server.log[/:(\d+)$/, 1], 10)
  end

  def run
    measure
    rounds = Array.new(@rounds) do |round|
      # In turns, and every other time the other way round: what changes meanwhile hits both.
      order = round.even? ? [false, true] : [true, false]
      order.to_h { |slow| [slow, slow ? beside_readers { measure } : measure] }
    end
    report(rounds)
  ensure
    @server.clean_up
  end

  private

  def report(rounds)
    rounds.each_with_index do |round, index|
      puts format("round %<nr>d: %<alone>.0f requests/s, beside %<readers>d readers %<beside>.0f",
                  nr: index + 1, alone: round[false], readers: @readers, beside: round[true])
    end
    ratio = rounds.map { |round| round[true] / round[false] }.sort[rounds.size / 2]
    puts format("the others get %<ratio>.2f times as much (median; at least %<least>.1f wanted)",
                ratio: ratio, least: LEAST)
    ratio >= LEAST
  end

  # Requests a second. A process of its own, so that its lock is not the readers'.
  def measure
    input, output = IO.pipe
    pid = fork do
      input.close
      output.write(ask_for(SECONDS))
      exit!(0)
    end
    output.close
    Float(input.read) / SECONDS
  ensure
    input&.close
    Process.wait(pid)
  end

  def ask_for(seconds)
    request = Helper::Client.request("GET /")
    sockets = Array.new(OTHERS) { TCPSocket.new("127.0.0.1", @port).tap { |s| s.write(request) } }
    count = 0
    buffer = +""
    deadline = Helper.now + seconds
    while Helper.now < deadline
      IO.select(sockets, nil, nil, 1)&.first&.each do |socket|
        # Shorter than a segment, so it comes whole.
        raise "no answer" unless socket.readpartial(4096, buffer).end_with?("hello")

        count += 1
        socket.write(request)
      end
    end
    count
  end

  def beside_readers
    sockets = Array.new(@readers) { reader }
    done = false
    reading = Thread.new { sockets.each { |socket| socket.readpartial(RATE) } && sleep(1) until done }
    yield
  ensure
    done = true
    reading&.join
    sockets&.each(&:close)
  end

  def reader
    socket = Socket.new(:INET, :STREAM)
    # Or the kernel takes all of it at once.
    socket.setsockopt(:SOCKET, :RCVBUF, 16 * 1024)
    socket.connect(Socket.sockaddr_in(@port, "127.0.0.1"))
    socket.write(Helper::Client.request("GET /page"))
    socket
  end
end

exit SlowReaders.new(Integer(ARGV[0] || "64", 10), Integer(ARGV[1] || "5", 10)).run
