# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require_relative "place"

module Stack
  # The CGI program that the web server runs: `index.cgi` beside a `config.ru`, which starts Oribi
  # at the first request. No web server balances CGI programs, so several instances are several such
  # folders and a program that takes them in turn.
  class Program
    CONFIG = <<~RUBY
      # Written by `make stack` for DOOR=cgi.
      ENV["MAGTAG_DB"] = %<database>p
      instance_eval(File.read(%<app>p), %<app>p)
    RUBY
    SETTINGS = <<~RUBY
      # Written by `make stack` for DOOR=cgi.
      workers %<workers>d
      backlog 4096
    RUBY
    # A process's number is the turn: each request is a process of its own, and numbers go up.
    CHOICE = <<~SH
      #!/bin/sh
      # Written by `make stack` for DOOR=cgi MODE=instances.
      exec "%<folder>s/app-$(($$ %% %<number>d))/index.cgi"
    SH

    def initialize(place, cell)
      @place = place
      @cell = cell
    end

    # Puts it all into the log folder; the program's path.
    def prepare
      FileUtils.rm_rf(@place.file("cgi"))
      folders = Array.new(@cell.servers) { |nr| @place.file("cgi", "app-#{nr}") }
      folders.each { |folder| install(folder) }
      return File.join(folders.first, "index.cgi") if folders.one?

      path = @place.file("cgi", "index.cgi")
      File.write(path, format(CHOICE, folder: @place.file("cgi"), number: folders.size),
                 perm: 0o755)
      path
    end

    private

    def install(folder)
      FileUtils.mkdir_p(folder)
      File.write(File.join(folder, "config.ru"),
                 format(CONFIG, database: @place.file("magtag.db"), app: @place.app))
      File.write(File.join(folder, "oribi.rb"), format(SETTINGS, workers: @cell.workers))
      command = [RbConfig.ruby, Servers::ORIBI, "cgi", "install", folder]
      said, status = Open3.capture2e(*command)
      raise Trouble, "oribi cgi install: #{said.strip}" unless status.success?
    end
  end
end
