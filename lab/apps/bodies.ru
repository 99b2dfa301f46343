# frozen_string_literal: true

# GET /bytes/N   N bytes in one String, with their length
# GET /stream/N  N bytes in pieces of 16 KiB, length unknown
# GET /          answers at once
# POST /         reads what is sent, 16 KiB at a time, and answers with its length
require_relative "lab"

most = 64 * 1024 * 1024
# Made once for each length: a server is measured here, not Ruby's String.
texts = Hash.new { |made, size| made[size] = ("x" * size).freeze }

piece = ("x" * 16_384).freeze
# A body that does not know its length.
pieces = lambda { |size|
  Enumerator.new do |body|
    (size / piece.bytesize).times { body << piece }
    body << piece[0, size % piece.bytesize] unless (size % piece.bytesize).zero?
  end
}

received = lambda { |input|
  total = 0
  buffer = +""
  total += buffer.bytesize while input&.read(piece.bytesize, buffer)
  total
}

run Lab.around(lambda { |env|
  next Lab.answer(received.call(env["rack.input"]).to_s) if env["REQUEST_METHOD"] == "POST"

  _, kind, size = env["PATH_INFO"].split("/")
  size = size.to_i
  next Lab.answer("at most #{most} bytes", status: 400) if size > most

  case kind
  when "bytes" then Lab.answer(texts[size])
  when nil then Lab.answer("ok")
  when "stream" then [200, { "content-type" => Lab::TEXT }, pieces.call(size)]
  else Lab.answer("GET /bytes/N, GET /stream/N or POST", status: 404)
  end
})
