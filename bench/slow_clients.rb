# frozen_string_literal: true

# What slow clients cost the others: the latencies of a client that asks at a steady pace, without
# and with so many slow heads (a byte each second), slow bodies (likewise) and slow readers (1 KB
# each second of a page of 1 MB). Each that is cut off is replaced.
#
#   ruby -Ilib bench/slow_clients.rb [OF_EACH_KIND] [ROUNDS]
#
# Exit status 1 when the median of the rounds' 99th percentiles grew by more than half.

$LOAD_PATH.unshift(File.expand_path("../test", __dir__))
require "helper_client"
require "helper_server"

# A process full of slow clients.
class SlowClients
  HEAD = "GET / HTTP/1.1\r\nHost: slow\r\nX-Slow: #{'x' * 4000}".b
  BODY = "POST / HTTP/1.1\r\nHost: slow\r\nContent-Length: 4000\r\n\r\n".b + ("x" * 4000)
  READ = "GET /page HTTP/1.1\r\nHost: slow\r\n\r\n".b
  # Seconds between two moves of one of them; in so many parts, for they are not of one mind.
  PACE = 1.0
  PARTS = 100

  # One of them: what it sends, and how much of that at once.
  Slow = Struct.new(:socket, :bytes, :at_once, :sent) do
    def move
      if sent < bytes.bytesize
        socket.write_nonblock(bytes.byteslice(sent, at_once))
        self.sent += at_once
      else
        socket.read_nonblock(1024)
      end
      true
    rescue IO::WaitReadable, IO::WaitWritable
      true
    rescue SystemCallError, EOFError
      socket.close
      false
    end
  end

  def self.start(port, count)
    # Not the server's parent: it must not wait for this one.
    ready, done = IO.pipe
    pid = fork { new(port, count).run(done) }
    done.close
    ready.read(1)
    pid
  end

  def initialize(port, count)
    @port = port
    @plans = [[HEAD, 1], [BODY, 1], [READ, READ.bytesize]].flat_map { |plan| [plan] * count }
  end

  def run(done)
    trap("TERM") { exit!(0) }
    slow = @plans.shuffle(random: Random.new(1)).map { |bytes, at_once| begin_one(bytes, at_once) }
    done.write(".")
    parts = slow.each_slice((slow.size / PARTS) + 1).to_a
    parts.cycle.with_index do |part, index|
      @start ||= Helper.now
      sleep([@start + (index * PACE / parts.size) - Helper.now, 0].max)
      part.map! { |one| one.move ? one : begin_one(one.bytes, one.at_once) }
    end
  end

  def begin_one(bytes, at_once)
    socket = Socket.new(:INET, :STREAM)
    socket.setsockopt(:SOCKET, :RCVBUF, 8192)
    socket.connect(Socket.sockaddr_in(@port, "127.0.0.1"))
    # A body's head comes whole.
    Slow.new(socket, bytes, at_once, 0).tap do |slow|
      slow.sent = socket.write(bytes[/.*\r\n\r\n/m]) if bytes.equal?(BODY)
    end
  end
end

# Rounds without and with them.
class Comparison
  RATE = 200
  SECONDS = 5
  MOST = 1.5

  APP = <<~'RUBY'
    PAGE = ["x" * 1_000_000].freeze
    HELLO = ["hello"].freeze
    run(lambda do |env|
      env["rack.input"].read
      [200, { "content-type" => "text/plain" }, env["PATH_INFO"] == "/page" ? PAGE : HELLO]
    end)
  RUBY

  def initialize(count, rounds)
    @count = count
    @rounds = rounds
    most = Process.getrlimit(:NOFILE).last
    Process.setrlimit(:NOFILE, most, most)
    @server = Helper::Server.new(:oribi, "-w", "2", app: APP).ready
    @port = Integer(@server.log[/:(\d+)$/, 1], 10)
  end

  def run
    measure(1)
    rounds = Array.new(@rounds) { [measure, with_slow_ones { measure }] }
    alone, beside = rounds.transpose
    [["alone", alone], ["beside 3 x #{@count} slow clients", beside]].each do |name, rows|
      puts "#{name}: p50 #{milliseconds(rows.map(&:first))}, p99 #{milliseconds(rows.map(&:last))}"
    end
    ratio = median(beside.map(&:last)) / median(alone.map(&:last))
    puts format("p99 beside / alone: %.2f", ratio)
    ratio <= MOST
  ensure
    @server.clean_up
  end

  private

  def with_slow_ones
    pid = SlowClients.start(@port, @count)
    # Until the pages are made: that much work is not what slow clients are about.
    measure(2)
    yield
  ensure
    Process.kill("TERM", pid)
    Process.wait(pid)
  end

  # Median and 99th percentile, in seconds, counted from when each request was due.
  def measure(seconds = SECONDS)
    client = Helper::Client.tcp(@port)
    start = Helper.now
    took = Array.new(seconds * RATE) do |i|
      due = start + (i.to_f / RATE)
      sleep([due - Helper.now, 0].max)
      sent = [due, Helper.now].max
      client.get
      Helper.now - sent
    end.sort
    client.close
    [took[took.size / 2], took[took.size * 99 / 100]]
  end

  def median(values) = values.sort[values.size / 2]

  def milliseconds(values) = values.map { |value| format("%.2f", value * 1000) }.join(" ") + " ms"
end

exit Comparison.new(Integer(ARGV.fetch(0, "500"), 10), Integer(ARGV.fetch(1, "5"), 10)).run
