# frozen_string_literal: true

module ACGI
  # The files that are the app's code: what serves, its settings, and what `watch` names.
  class Watch
    def initialize(directory, patterns = [])
      own = [App::SCRIPT, App::RACKUP, Settings::NAME].map { |name| File.join(directory, name) }
      @patterns = own + patterns
    end

    # Differs when a file has changed, come or gone.
    def stamp = Dir.glob(@patterns).to_h { |file| [file, look(file)] }

    private

    def look(file)
      found = File.stat(file)
      [found.mtime.to_r, found.size, found.ino]
    rescue SystemCallError
      nil
    end
  end
end
