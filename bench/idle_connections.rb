# frozen_string_literal: true

# What idle connections cost in memory: so many are opened, each is served one request and kept.
#
#   ruby -Ilib bench/idle_connections.rb [CONNECTIONS]
#
# Counted is what the front has for itself (RssAnon), when it does not change any more. Exit status
# 1 when it is more than 20 kB for each of them.

$LOAD_PATH.unshift(File.expand_path("../test", __dir__))
require "helper_client"
require "helper_server"

# One run.
class IdleConnections
  MOST = 20_000
  APP = 'run(->(_) { [200, { "content-type" => "text/plain" }, ["hello"]] })'

  def initialize(count)
    @count = count
    allow_descriptors
    arguments = ["-w", "1", "--keep-alive-timeout", "0"]
    @server = Helper::Server.new(:oribi, *arguments, app: APP).ready
    @port = Integer(@server.log[/:(\d+)$/, 1], 10)
    @front = @server.one("front").pid
  end

  def run
    connect(0).get.then { nil }
    before = settled
    clients = Array.new(@count) { |i| connect(i).tap(&:get) }
    largest = memory("VmHWM") - memory("RssFile") - memory("RssShmem") - before
    each = (settled - before) / @count
    puts "#{@count} idle connections: #{each} bytes each, #{each * @count / 1_000_000} MB; " \
         "#{largest / 1_000_000} MB at most meanwhile"
    raise "one is not served again" unless clients.sample(200).all? { |c| c.get.status == 200 }

    each <= MOST
  ensure
    @server.clean_up
  end

  private

  def allow_descriptors
    most = Process.getrlimit(:NOFILE).last
    Process.setrlimit(:NOFILE, most, most)
    abort "#{@count} connections need more open files than #{most}: see ulimit -Hn" if most < @count
  end

  # From several addresses, since one has 28,000 ports at best.
  def connect(index)
    Helper::Client.new(TCPSocket.new("127.0.0.1", @port, "127.0.0.#{2 + (index / 20_000)}"))
  end

  def memory(field) = File.read("/proc/#{@front}/status")[/^#{field}:\s*(\d+)/, 1].to_i * 1024

  def settled
    values = []
    Helper.wait_until("the front's memory stays as it is") do
      values << memory("RssAnon")
      sleep 0.5
      values.size > 3 && values.last(3).uniq.one?
    end
    values.last
  end
end

exit IdleConnections.new(Integer(ARGV.fetch(0, "10000"), 10)).run
