# frozen_string_literal: true

# Not "digest" alone: Ruby then loads the class when it is first named, and two threads that name
# it at once are one too many.
require "digest/sha2"
require "helper_case"

module Helper
  # What the tests of uploads have in common.
  module Uploads
    MEMORY = 256 * 1024

    def random(size) = Random.new(size).bytes(size)

    def digest(body) = "#{Digest::SHA256.hexdigest(body)} #{body.bytesize} #{body.bytesize}"

    # A body as chunks of so many bytes.
    def chunked(body, size)
      parts = (0...body.bytesize).step(size).map { |from| body.byteslice(from, size) }
      parts.map { |part| "#{part.bytesize.to_s(16)}\r\n".b << part << "\r\n" }.join << "0\r\n\r\n"
    end

    def post_chunked(client, path, body, size)
      head = Client.request("POST #{path}", "Transfer-Encoding: chunked")
      client.write(head, chunked(body, size))
      client.answer
    end

    # Files that the process has open and that are gone from their directory: spooled bodies.
    def spooled(entry)
      links(entry).count { |link| spool?(link) }
    end

    def fds(entry) = links(entry).size

    def links(entry)
      Dir.children("/proc/#{entry.pid}/fd").filter_map do |fd|
        File.readlink("/proc/#{entry.pid}/fd/#{fd}")
      rescue Errno::ENOENT
        nil
      end
    end

    def front = server.one("front")

    def workers = server.find("worker")

    # The worker closes a file when its request is over, just after its answer.
    def assert_no_files(workers = self.workers)
      wait_until("no spooled body is open in #{[front, *workers].map { |e| links(e) }}") do
        [front, *workers].sum { |entry| spooled(entry) }.zero?
      end
    end

    def called = lines("called")

    # The refusal, and nothing of what the client has sent behind it.
    def assert_refused(status, client)
      answer = client.answer
      assert_equal [status, "close"], [answer.status, answer["connection"]]
      assert client.ended?
    end

    # Bytes of a spooled body that are on disk.
    def on_disk(entry)
      Dir.children("/proc/#{entry.pid}/fd").sum do |fd|
        path = "/proc/#{entry.pid}/fd/#{fd}"
        spool?(File.readlink(path)) ? File.stat(path).size : 0
      rescue Errno::ENOENT
        0
      end
    end

    def spool?(link) = link.end_with?(" (deleted)") && !link.start_with?("/memfd:")
  end
end
