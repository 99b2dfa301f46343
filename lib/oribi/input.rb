# frozen_string_literal: true

module Oribi
  # `rack.input` of a request without a body: always at its end, and shared by all such requests,
  # so it holds no state and cannot be closed for the next one.
  module NullInput
    module_function

    def read(length = nil, buffer = nil)
      data = length.nil? || length.zero? ? +"" : nil
      return data unless buffer

      buffer.clear
      data && buffer
    end

    def gets(*) = nil

    def each = self

    def rewind = 0

    def size = 0

    def eof? = true

    def close = nil

    def closed? = false

    def binmode = self

    def binmode? = true

    def external_encoding = Encoding::BINARY

    def set_encoding(*) = self

    def sync = true
  end
end
