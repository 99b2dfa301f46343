# frozen_string_literal: true

require "oribi/cgi/htaccess"
require "oribi/cgi/shim"

module Oribi
  module Cgi
    # `oribi cgi bundle`: a folder that serves an app where nothing of Oribi's is installed.
    class Bundle
      ACGI = File.expand_path("../../acgi.rb", __dir__)
      # Not of the app, or made anew.
      LEFT_OUT = %w[. .. .git .hg .svn index.cgi acgi.rb].freeze

      def initialize(directory, into: nil, ruby: nil)
        @directory = directory
        @into = File.expand_path(into || "#{File.basename(directory)}-cgi")
        @ruby = ruby
      end

      # Does it; what people are told.
      def run
        check
        FileUtils.mkdir_p(@into)
        copy_app
        Shim.put(@into, [@ruby].compact)
        Cgi.write(File.join(@into, "acgi.rb"), Bundle.joined, 0o644)
        Htaccess.put(@into) unless File.exist?(File.join(@into, ".htaccess"))
        <<~TEXT
          #{@into} is ready to be uploaded: #{Dir.children(@into).sort.join(', ')}.
          Over there index.cgi#{' and server.cgi' if script?} must be executable (mode 755), and \
          Ruby 3.1 or newer must be there#{" as #{@ruby}" if @ruby}. index.cgi is for #{machine}.
        TEXT
      end

      # All of acgi in one file.
      def self.joined
        File.read(ACGI).gsub(%r{^require_relative "(acgi/\w+)"$}) do
          part = File.read(File.join(File.dirname(ACGI), "#{$1}.rb"))
          part.delete_prefix("# frozen_string_literal: true\n\n").chomp
        end
      end

      private

      def script? = Cgi.program(@directory) == "server.cgi"

      def machine = "Linux on #{RbConfig::CONFIG['host_cpu']}"

      def check
        if @into == @directory
          raise Error, "the bundle cannot be the app's own directory: name another with --into"
        end
        return unless File.exist?(@into) && !(File.directory?(@into) && Dir.empty?(@into))

        raise Error, "#{@into} is there already: remove it, or name another folder with --into"
      end

      def copy_app
        (Dir.entries(@directory) - LEFT_OUT).each do |name|
          from = File.join(@directory, name)
          FileUtils.cp_r(from, @into, preserve: true) unless within?(from)
        end
        File.chmod(0o755, File.join(@into, "server.cgi")) if script?
      end

      # The new folder may lie in the app's.
      def within?(path) = @into == path || @into.start_with?("#{path}/")
    end
  end
end
