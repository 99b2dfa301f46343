# frozen_string_literal: true

# What one large body costs in memory: an upload and a download of 1 GiB (or of so many MiB as the
# first argument says), each with the growth of all of the server's processes while it passes.
#
#   ruby -Ilib bench/big_bodies.rb [MIB] [SPOOL_DIR]
#
# Counted is Pss: what a process has for itself, and of what it shares its part. Exit status 1 when
# one of them grew by more than 64 MB.

$LOAD_PATH.unshift(File.expand_path("../test", __dir__))
require "helper_client"
require "helper_server"

# One run of both.
class BigBodies
  MOST = 64_000_000
  PIECE = Random.new(1).bytes(1 << 20)

  APP = <<~'RUBY'
    parts = Struct.new(:count) { def each = count.times { yield PART } }
    PART = Random.new(1).bytes(1 << 16).freeze
    run(lambda do |env|
      mib = env["PATH_INFO"][/\d+/].to_i
      next [200, { "content-type" => "text/plain" }, parts.new(16 * mib)] if mib.positive?

      length = 0
      piece = +""
      length += piece.bytesize while env["rack.input"].read(65_536, piece)
      [200, { "content-type" => "text/plain" }, [length.to_s]]
    end)
  RUBY

  def initialize(mib, spool_dir)
    @mib = mib
    arguments = ["-w", "2"]
    arguments.push("--spool-dir", spool_dir) if spool_dir
    @server = Helper::Server.new(:oribi, *arguments, app: APP).ready
    @port = Integer(@server.log[/:(\d+)$/, 1], 10)
    @processes = @server.tree.select(&:role)
  end

  def run
    # What is allocated once is no part of the growth.
    [method(:upload), method(:download)].each { |pass| pass.call(2) }
    growths = [measure("upload", method(:upload)), measure("download", method(:download))]
    growths.max <= MOST
  ensure
    @server.clean_up
  end

  private

  def client = Helper::Client.tcp(@port)

  def upload(mib)
    client = self.client
    client.write(Helper::Client.request("POST /", "Content-Length: #{mib << 20}"))
    mib.times { client.write(PIECE) }
    raise "not all came" unless client.answer.body == (mib << 20).to_s
  ensure
    client&.close
  end

  def download(mib)
    client = self.client
    client.write(Helper::Client.request("GET /#{mib}"))
    client.head
    length = 0
    while (chunk = client.chunk)
      length += chunk.bytesize
    end
    raise "not all came" unless length == mib << 20
  ensure
    client&.close
  end

  def measure(name, pass)
    before = memory
    most = before
    started = Helper.now
    watched = Thread.new { pass.call(@mib) }
    most = [most, memory].max until watched.join(0.05)
    seconds = Helper.now - started
    growth = most - before
    rate = ((@mib << 20) / 1e6 / seconds).round
    puts "#{name}: #{@mib} MiB in #{seconds.round(1)} s, #{rate} MB/s; memory " \
         "#{(before / 1e6).round(1)} MB before, at most #{(growth / 1e6).round(1)} MB more"
    growth
  end

  def memory
    @processes.sum do |entry|
      File.read("/proc/#{entry.pid}/smaps_rollup")[/^Pss:\s+(\d+) kB/, 1].to_i * 1024
    end
  end
end

exit BigBodies.new(Integer(ARGV[0] || "1024", 10), ARGV[1]).run
