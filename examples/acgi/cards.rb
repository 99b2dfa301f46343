# frozen_string_literal: true

require "fileutils"
require "json"
require "securerandom"
require "tmpdir"

# The postcards, in files of a folder that is nobody else's: a card is its text as JSON and perhaps
# a picture.
class Cards
  # What a visitor did wrong, in words for him.
  class Refused < StandardError; end

  KEPT = 12
  LARGEST = 2 * 1024 * 1024
  # How pictures begin, whatever they are called.
  TYPES = { "\x89PNG\r\n\x1A\n".b => "image/png", "\xFF\xD8\xFF".b => "image/jpeg",
            "GIF87a".b => "image/gif", "GIF89a".b => "image/gif" }.freeze

  # Outside of any web root, unless somebody says otherwise.
  def self.place
    ENV.fetch("POSTCARDS_DATA") { File.join(Dir.tmpdir, "postcards-#{Process.euid}") }
  end

  attr_reader :sessions

  def initialize(place)
    @place = own(place)
    @sessions = own(File.join(place, "sessions"))
  end

  # The newest first.
  def latest
    cards = Dir[File.join(@place, "*.json")].reverse
    cards.first(KEPT).filter_map do |file|
      JSON.parse(File.read(file), symbolize_names: true)
    rescue Errno::ENOENT
      # Another process has just thrown it away.
      nil
    end
  end

  # `picture` is an IO, or nothing.
  def add(name:, text:, picture: nil)
    raise Refused, "A postcard needs a name and some words." if name.empty? || text.empty?
    raise Refused, "That is too long for a postcard." if name.size > 40 || text.size > 280

    id = SecureRandom.hex(8)
    card = { name: name, text: text, at: Time.now.strftime("%e %B, %H:%M").strip }
    card[:picture] = id if keep(picture, id)
    # Whole or not at all: others read at the same time.
    write("#{(Time.now.to_r * 1_000_000).to_i}-#{id}.json", JSON.generate(card))
    throw_away
  end

  # Type and bytes.
  def picture(id)
    bytes = File.binread(File.join(@place, "#{id}.picture"))
    [type(bytes), bytes]
  rescue Errno::ENOENT
    nil
  end

  private

  def own(path)
    FileUtils.mkdir_p(path, mode: 0o700)
    found = File.lstat(path)
    return path if found.directory? && found.owned? && (found.mode & 0o077).zero?

    raise "#{path} must be a folder of this user's alone: remove it, or set POSTCARDS_DATA"
  end

  def keep(picture, id)
    return if picture.nil? || !picture.respond_to?(:size) || picture.size.zero?
    raise Refused, "That picture has more than 2 MB." if picture.size > LARGEST

    bytes = picture.read
    raise Refused, "That is no PNG, JPEG or GIF." unless type(bytes)

    write("#{id}.picture", bytes)
  end

  def type(bytes) = TYPES.find { |beginning, _| bytes.b.start_with?(beginning) }&.last

  def write(name, bytes)
    path = File.join(@place, name)
    File.binwrite("#{path}.new", bytes)
    File.rename("#{path}.new", path)
    true
  end

  def throw_away
    Dir[File.join(@place, "*.json")].reverse.drop(KEPT).each do |file|
      id = File.basename(file, ".json").split("-").last
      FileUtils.rm_f([file, File.join(@place, "#{id}.picture")])
    end
  end
end
