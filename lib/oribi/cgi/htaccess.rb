# frozen_string_literal: true

require "oribi/cgi"

module Oribi
  module Cgi
    # Apache's settings for one directory.
    module Htaccess
      FIRST = "# Written by `oribi cgi`."
      # rubocop:disable Style/FormatStringToken -- Apache's
      TEXT = <<~APACHE.freeze
        #{FIRST} It takes `AllowOverride All`, or at least
        # `AllowOverride AuthConfig FileInfo Indexes Options`.
        Options +ExecCGI -Indexes
        AddHandler cgi-script .cgi
        DirectoryIndex index.cgi

        # Nobody reads the program.
        <FilesMatch "(^\\.|^Gemfile|\\.(rb|ru|erb|haml|slim|yml|lock|sqlite3|db|log)$)">
          Require all denied
        </FilesMatch>

        # What is no file is the app's.
        <IfModule mod_rewrite.c>
          RewriteEngine On
          RewriteCond %{REQUEST_FILENAME} !-f
          RewriteRule ^(.*)$ index.cgi/$1 [L]
        </IfModule>
      APACHE
      # rubocop:enable Style/FormatStringToken

      module_function

      # Fails before anything is written: somebody else's settings are not ours to lose.
      def check(directory)
        path = File.join(directory, ".htaccess")
        return path if !File.exist?(path) || File.read(path).start_with?(FIRST)

        raise Error, "#{path} is there: move it away, or add by hand what docs/cgi.md says"
      end

      def put(directory) = Cgi.write(check(directory), TEXT, 0o644)
    end
  end
end
