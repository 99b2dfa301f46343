# frozen_string_literal: true

require "fileutils"
require "securerandom"

module MagTag
  # The secret that signs sessions: from the environment, or made up once and kept in a file.
  module Secret
    SHORTEST = 64

    module_function

    def fetch(path)
      given = ENV.fetch("MAGTAG_SECRET", "")
      return read_or_create(path) if given.empty?
      raise "MAGTAG_SECRET must have at least #{SHORTEST} characters" if given.length < SHORTEST

      given
    end

    # Several processes may come here at once, on a server that loads the application in each of
    # them. `link` lets exactly one of them win, and everybody reads a whole file.
    def read_or_create(path)
      create(path) unless File.exist?(path)
      File.read(path)
    end

    def create(path)
      FileUtils.mkdir_p(File.dirname(path))
      draft = "#{path}.#{Process.pid}"
      File.write(draft, SecureRandom.hex(SHORTEST), perm: 0o600)
      File.link(draft, path)
    rescue Errno::EEXIST
      nil
    ensure
      FileUtils.rm_f(draft)
    end
  end
end
