# frozen_string_literal: true

# What clients that hardly read cost the others: two servers, one of which has 64 readers (or as many
# as the first argument says) that take one KB a second of a page of 5 MB each. Both are asked in
# turns, a quarter of a second each, over eight kept connections.
#
#   ruby -Ilib bench/slow_readers.rb [READERS] [TURNS]
#
# Exit status 1 when the others got less than 0.9 times as much beside the readers.

$LOAD_PATH.unshift(File.expand_path("../test", __dir__))
require "etc"
require "helper_client"
require "helper_server"

# A server and whoever reads slowly from it.
class SlowReaders
  LEAST = 0.9
  SECONDS = 0.25
  OTHERS = 8
  RATE = 1024
  REQUEST = Helper::Client.request("GET /")

  APP = <<~'RUBY'
    PLAIN = { "content-type" => "text/plain" }.freeze
    PART = ("x" * 65_536).freeze
    PARTS = Struct.new(:count) do
      def each = count.times { yield PART }
      def close = File.write("made", "page\n", mode: "a")
    end
    run(->(env) { [200, PLAIN, env["PATH_INFO"] == "/page" ? PARTS.new(80) : ["hello"]] })
  RUBY

  def self.compare(readers, turns)
    beside = new(readers)
    alone = new(0)
    rates = Array.new(turns) { [alone.ask, beside.ask] }
    report(readers, rates, [alone, beside].map(&:cpu))
  ensure
    # One takes the other for its leftovers, so both end first.
    [beside, alone].compact.each(&:stop).each(&:clean_up)
  end

  def self.report(readers, rates, cpu)
    alone, beside = rates.transpose.map { |counts| counts.sum / (rates.size * SECONDS) }
    ratio = rates.map { |without, with| with / without.to_f }.sort[rates.size / 2]
    puts format("alone %<alone>.0f requests/s at %<own>.1f us of CPU, beside %<readers>d readers " \
                "%<beside>.0f at %<their>.1f us; median of the turns %<ratio>.2f (%<least>.1f wanted)",
                alone: alone, own: cpu[0], readers: readers, beside: beside, their: cpu[1],
                ratio: ratio, least: LEAST)
    ratio >= LEAST
  end

  def initialize(readers)
    @server = Helper::Server.new(:oribi, "-w", "2", app: APP).ready
    @port = Integer(@server.log[/:(\d+)$/, 1], 10)
    @others = Array.new(OTHERS) { TCPSocket.new("127.0.0.1", @port) }
    @readers = Array.new(readers) { reader }
    wait_for_pages if readers.positive?
    @reading = Thread.new { read_on }
    ask
    @asked = 0
    @before = ticks
  end

  # How many requests the others get answered in one turn.
  def ask
    count = 0
    buffer = +""
    @others.each { |socket| socket.write(REQUEST) }
    deadline = Helper.now + SECONDS
    waiting = @others.dup
    until waiting.empty?
      IO.select(waiting).first.each do |socket|
        # Shorter than a segment, so it comes whole.
        raise "no answer" unless socket.readpartial(4096, buffer).end_with?("hello")

        count += 1
        Helper.now < deadline ? socket.write(REQUEST) : waiting.delete(socket)
      end
    end
    @asked = @asked.to_i + count
    count
  end

  # Microseconds of the server's CPU for each request of theirs.
  def cpu = (ticks - @before) * 1e6 / Etc.sysconf(Etc::SC_CLK_TCK) / @asked

  def stop
    @reading.kill
    (@readers + @others).each(&:close)
    @server.signal("TERM")
    @server.wait
  end

  def clean_up = @server.clean_up

  private

  def ticks
    @server.tree.sum do |entry|
      File.read("/proc/#{entry.pid}/stat").rpartition(")").last.split.values_at(11, 12).sum(&:to_i)
    end
  end

  # The pages have to be made, which is work as any other.
  def wait_for_pages
    made = File.join(@server.directory, "made")
    Helper.wait_until("the workers are free") do
      File.exist?(made) && File.readlines(made).size == @readers.size
    end
  end

  def read_on
    loop do
      @readers.each { |socket| socket.readpartial(RATE) }
      sleep(1)
    end
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

exit SlowReaders.compare(Integer(ARGV[0] || "64", 10), Integer(ARGV[1] || "40", 10))
