# frozen_string_literal: true

module ACGI
  # The files that are the app's code: what serves, its settings, and what `watch` names.
  class Watch
    OWN = [App::SCRIPT, App::RACKUP, Settings::NAME].freeze

    # Patterns are relative to the directory, or absolute.
    def initialize(directory, patterns = [])
      @directory = directory
      @patterns = patterns
    end

    # Differs when a file has changed, come or gone.
    def stamp
      names = OWN + Dir.glob(@patterns, base: @directory)
      names.to_h { |name| [name, look(File.expand_path(name, @directory))] }
    end

    private

    def look(file)
      found = File.stat(file)
      [found.mtime.to_r, found.size, found.ino]
    rescue SystemCallError
      nil
    end
  end
end
