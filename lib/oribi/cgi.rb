# frozen_string_literal: true

require "optparse"
require "oribi/errors"

module Oribi
  # The commands `oribi cgi install` and `oribi cgi bundle`, which put an `index.cgi` beside an app;
  # the binary has the others (`crates/supervisor/src/cgi.rs`).
  module Cgi
    # What makes a directory an app's; the first wins.
    APPS = %w[server.cgi config.ru].freeze

    HELP = {
      "install" => <<~TEXT,
        Usage: oribi cgi install [--htaccess] DIR

        Puts index.cgi beside the app in DIR (a server.cgi or a config.ru). A web server that runs
        it as CGI then gets its answers from an Oribi that stays in memory.

        Examples:
          oribi cgi install /var/www/app
          oribi cgi install --htaccess ~/public_html/app     Apache, where AllowOverride allows it

        Options:
      TEXT
      "bundle" => <<~TEXT
        Usage: oribi cgi bundle [--into OUT] [--ruby PATH] DIR

        Makes a folder to upload to a host that has Ruby and CGI and nothing else: the app in DIR,
        index.cgi, acgi.rb (the server in one file of plain Ruby) and a .htaccess.

        Examples:
          oribi cgi bundle .
          oribi cgi bundle --into /tmp/upload --ruby /opt/ruby-3.3/bin/ruby ~/src/guestbook

        Options:
      TEXT
    }.freeze

    module_function

    # Does one of them; nil if it is not ours.
    def start(command, arguments)
      return unless HELP.key?(command)

      options = {}
      directory, *more = parser(command, options).parse(arguments)
      unless directory && more.empty?
        raise Error, "name the one directory of the app; see `oribi cgi #{command} --help`"
      end

      require "oribi/cgi/#{command}"
      puts const_get(command.capitalize).new(app(directory), **options).run
      true
    rescue OptionParser::ParseError => error
      raise Error, "#{error.message}; see `oribi cgi #{command} --help`"
    end

    def parser(command, options)
      OptionParser.new(HELP.fetch(command)) do |parser|
        if command == "install"
          parser.on("--htaccess", "Write a .htaccess for Apache too") { options[:htaccess] = true }
        else
          parser.on("--into OUT", "The folder to make [default: ./NAME-cgi]") do |into|
            options[:into] = into
          end
          parser.on("--ruby PATH", "Ruby on that host [default: ruby in its PATH]") do |ruby|
            options[:ruby] = ruby
          end
        end
      end
    end

    # The directory by its real name, which is how its server is found.
    def app(directory)
      path = File.realpath(directory)
      return path if program(path)

      raise Error, "#{path} has neither #{APPS.join(' nor ')}: put the app there"
    rescue Errno::ENOENT, Errno::ENOTDIR
      raise Error, "there is no directory #{directory}"
    end

    def program(path) = APPS.find { |name| File.file?(File.join(path, name)) }

    # A file written whole or not at all: a web server may run it at this moment.
    def write(path, bytes, mode)
      new = "#{path}.#{Process.pid}.new"
      File.binwrite(new, bytes, perm: mode)
      File.chmod(mode, new)
      File.rename(new, path)
    ensure
      FileUtils.rm_f(new)
    end
  end
end
