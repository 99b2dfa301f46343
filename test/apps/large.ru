# frozen_string_literal: true

# Replies longer than any memory that is set aside for them.

# Copied for each response: Rack 3 wants headers that are not frozen.
PLAIN = { "content-type" => "application/octet-stream" }.freeze
# Neighbouring pieces differ, so that one lost, doubled or out of place is seen.
PIECE = ->(index) { format("%016d", index) * 4096 }

# Parts of 64 KiB, made as they are asked for.
class Pieces
  def initialize(count)
    @count = count
  end

  def each
    @count.times { |index| yield PIECE.call(index) }
  ensure
    File.write("made", "#{@count}\n", mode: "a")
  end

  def close
    File.write("closed", "#{@count}\n", mode: "a")
  end
end

use Rack::Lint
run(lambda do |env|
  case env["PATH_INFO"]
  when "/pid" then [200, PLAIN.dup, [Process.pid.to_s]]
  when %r{\A/array/(\d+)} then [200, PLAIN.dup, Array.new($1.to_i, &PIECE)]
  when %r{\A/stream/(\d+)} then [200, PLAIN.dup, Pieces.new($1.to_i)]
  when %r{\A/length/(\d+)}
    [200, PLAIN.merge("content-length" => ($1.to_i * 65_536).to_s), Pieces.new($1.to_i)]
  end
end)
