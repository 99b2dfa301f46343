# frozen_string_literal: true

require "rack/files" if Rack.release >= "2"

# Bodies that are files, and some that only say so.
class FileBody
  def initialize(path, *parts)
    @path = path
    @parts = parts
  end

  attr_reader :path
  alias to_path path

  # Where parts are given, they are what comes when the file is not sent.
  def each(&block)
    File.write("iterated", "#{@path}\n", mode: "a")
    @parts.each(&block)
  end

  def close
    File.write("closed", "#{@path}\n", mode: "a")
  end
end

# Copied for each response: Rack 3 wants headers that are not frozen.
PLAIN = { "content-type" => "text/plain" }.freeze
FILES = Rack::Files.new(Dir.pwd)

run(lambda do |env|
  case env["PATH_INFO"]
  when "/pid" then [200, PLAIN.dup, [Process.pid.to_s]]
  when %r{\A/path/(.+)} then [200, PLAIN.dup, FileBody.new($1, "iterated\n")]
  when %r{\A/length/(\d+)/(.+)}
    [200, PLAIN.merge("Content-Length" => $1), FileBody.new($2, "iterated\n")]
  when %r{\A/status/(\d+)/(.+)} then [$1.to_i, {}, FileBody.new($2)]
  when %r{\A/header/(.+)} then [200, PLAIN.merge("x-wrong" => "a\0b"), FileBody.new($1)]
  else FILES.call(env)
  end
end)
