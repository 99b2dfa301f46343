# frozen_string_literal: true

require "oribi/cgi/htaccess"
require "oribi/cgi/shim"

module Oribi
  module Cgi
    # `oribi cgi install`: this Oribi behind an `index.cgi`.
    class Install
      EXECUTABLE = File.expand_path("../../../exe/oribi", __dir__)
      # What leads this Ruby to its gems, and us to our binary, and may not lead the web server's
      # user there.
      ENVIRONMENT = %w[BUNDLE_GEMFILE BUNDLE_PATH CARGO_TARGET_DIR GEM_HOME ORIBI_BINARY RUBYLIB
                       RUBYOPT].freeze

      TO_DO = <<~TEXT
        The web server must run it, take it for the directory's index, and hand out no source
        (*.ru, *.rb) as text:
          Apache    Options +ExecCGI
                    AddHandler cgi-script .cgi
                    DirectoryIndex index.cgi          (--htaccess writes all of this)
          lighttpd  cgi.assign += ( ".cgi" => "" )
                    index-file.names += ( "index.cgi" )
                    url.access-deny += ( ".ru", ".rb" )
          nginx     fastcgi_pass to fcgiwrap; `oribi config nginx` is quicker where you may set it
        docs/cgi.md has each in full.
      TEXT

      def initialize(directory, htaccess: false)
        @directory = directory
        @htaccess = htaccess
      end

      # Does it; what people are told.
      def run
        Htaccess.check(@directory) if @htaccess
        Shim.put(@directory, words)
        Htaccess.put(@directory) if @htaccess
        "#{File.join(@directory, 'index.cgi')} is there, for #{Cgi.program(@directory)}.\n#{rest}"
      end

      private

      def rest
        return TO_DO unless @htaccess

        "The .htaccess beside it has Apache run it, and hand out no source as text.\n"
      end

      # The command `oribi` by absolute names: web servers have a PATH of their own.
      def words
        said = ENV.slice(*ENVIRONMENT).map { |name, value| "#{name}=#{value}" }
        ["GEM_PATH=#{Gem.path.join(File::PATH_SEPARATOR)}", *said, RbConfig.ruby, EXECUTABLE]
      end
    end
  end
end
