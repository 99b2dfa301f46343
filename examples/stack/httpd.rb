# frozen_string_literal: true

require "erb"
require "socket"
require_relative "place"

module Stack
  # The web server in front: its configuration, written anew at each start, and its processes.
  class Httpd
    # A web server: the names of its program, the Debian package and its command line.
    Kind = Struct.new(:programs, :package, :arguments)
    KINDS = {
      "lighttpd" => Kind.new(%w[lighttpd], "lighttpd", ->(_, file) { ["-D", "-f", file] }),
      "nginx" => Kind.new(%w[nginx], "nginx-light",
                          ->(log, file) { ["-p", "#{log}/", "-c", file, "-e", "stderr"] }),
      "apache" => Kind.new(%w[apache2 httpd], "apache2-bin",
                           ->(_, file) { ["-f", file, "-DFOREGROUND"] })
    }.freeze
    # Where distributions put Apache's modules.
    APACHE_MODULES = %w[/usr/lib/apache2/modules /usr/lib64/httpd/modules /usr/lib/httpd/modules]
                     .freeze
    # CGI programs that fcgiwrap runs at once for nginx.
    CGI_PROGRAMS = 32
    # More than the thousand clients of the proof: nothing may be refused for want of a place.
    BACKLOG = 4096
    # Daemons are not always in a person's PATH.
    FOLDERS = (ENV.fetch("PATH", "").split(":") + %w[/usr/local/sbin /usr/sbin /sbin]).uniq.freeze

    # A program's path; nil if it is not installed.
    def self.find(*names)
      names.product(FOLDERS).map { |name, folder| File.join(folder, name) }
           .find { |path| File.executable?(path) && File.file?(path) }
    end

    # Whether the cell's web server, and what it needs, is installed.
    def self.installed?(cell)
      cell.web == "none" || missing(cell).empty?
    end

    # The packages that a cell lacks.
    def self.missing(cell)
      kind = KINDS.fetch(cell.web)
      [(kind.package unless find(*kind.programs)),
       ("fcgiwrap" if cell.web == "nginx" && cell.cgi? && !find("fcgiwrap"))].compact
    end

    def initialize(place, cell, processes)
      @place = place
      @cell = cell
      @processes = processes
    end

    # Complains where it is not installed.
    def check
      missing = Httpd.missing(@cell)
      return if missing.empty?

      why = missing == ["fcgiwrap"] ? ": nginx runs no CGI programs by itself" : ""
      raise Trouble, "WEB=#{@cell.web} DOOR=#{@cell.door}: #{missing.join(' and ')} is not " \
                     "installed#{why}; `apt-get install #{missing.join(' ')}`"
    end

    # Starts it. `addresses` are those of the servers behind it; `program` is the CGI program.
    def start(addresses, program)
      @addresses = addresses
      @program = program
      file = @place.file("#{@cell.web}.conf")
      File.write(file, configuration)
      entries = []
      entries << start_fcgiwrap if @cell.web == "nginx" && @cell.cgi?
      kind = KINDS.fetch(@cell.web)
      entries << @processes.run("#{@cell.web}-#{@place.port}", "#{@cell.web}.out",
                                Httpd.find(*kind.programs), *kind.arguments.call(@place.log, file))
    end

    private

    def configuration
      template = File.read(File.join(__dir__, "#{@cell.web}.conf.erb"))
      ERB.new(template, trim_mode: "-").result(binding)
    end

    # What the templates ask for.
    def door = @cell.door

    def unix? = @cell.unix?

    def log = @place.log

    def apache_modules = APACHE_MODULES.find { |folder| File.directory?(folder) }

    # fcgiwrap's own backlog is too short for a crowd; so it gets a socket that listens already, as
    # its standard input, like any FastCGI program.
    def start_fcgiwrap
      path = @place.file("fcgiwrap.sock")
      FileUtils.rm_f(path)
      UNIXServer.open(path) do |server|
        server.listen(BACKLOG)
        @place.hand_over(path)
        return @processes.run("fcgiwrap-0", "fcgiwrap.out", Httpd.find("fcgiwrap"), "-f",
                              "-c", CGI_PROGRAMS.to_s, input: server)
      end
    end
  end
end
