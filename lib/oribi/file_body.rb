# frozen_string_literal: true

module Oribi
  # Response bodies that are files: the worker opens the file, under its own user, and the front
  # sends it, so that no worker waits for a client.
  module FileBody
    # Not a device; and a fifo, which is refused, is not waited for.
    FLAGS = File::RDONLY | File::NONBLOCK | File::NOCTTY | File::BINARY
    # What has no body, whatever the app gives (RFC 9110, section 6.4.1).
    BODILESS = [204, 304].freeze

    module_function

    # Replies with the file that `body` says it is. False, and nothing is sent, for any other
    # body, and for a file that cannot be had or has another length than was announced: such a body
    # is to be iterated.
    def reply(seat, status, headers, body)
      return false if body.instance_of?(Array) || !body.respond_to?(:to_path)
      return false if BODILESS.include?(status)

      file = opened(body.to_path) or return false
      size = file.size
      return false unless size == announced(headers, size)

      pass(seat, file) && seat.reply_file(status, headers, 0, size)
    ensure
      file&.close
    end

    def opened(path)
      file = File.open(path, FLAGS)
      return file if file.stat.file?

      file.close
      nil
    rescue SystemCallError, TypeError, ArgumentError
      nil
    end

    def announced(headers, size)
      _, length = headers.find { |name, _| name.to_s.casecmp?("content-length") }
      length ? Integer(length.to_s, 10, exception: false) : size
    end

    def pass(seat, file)
      seat.pass(Native::Seat::FILE, file.fileno)
      true
    rescue SystemCallError
      false
    end
  end
end
