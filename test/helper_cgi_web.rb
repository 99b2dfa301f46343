# frozen_string_literal: true

require "helper_web_servers"
require "oribi/binary"
require "open3"

module Helper
  # A real web server with an app behind `index.cgi` under /app, everything in one folder and run as
  # the web server's user.
  class CgiWeb
    APP = <<~'RUBY'
      run(lambda do |env|
        text = { "content-type" => "text/plain" }
        body = env["rack.input"] && env["rack.input"].read.to_s
        case env["PATH_INFO"]
        when "/hold" then File.read(File.join(__dir__, "fifo"))
        when "/careful" then env["rack.errors"].puts("careful, said the app")
        when "/teapot" then next [418, text, ["short and stout"]]
        when "/big" then next [200, text, ["x" * 1_000_000] * 4]
        end
        names = %w[SCRIPT_NAME PATH_INFO QUERY_STRING REQUEST_METHOD]
        [200, text, [[*env.values_at(*names), body.bytesize, body.sum, Process.uid].join("|")]]
      end)
    RUBY

    CONFIGURATIONS = {
      lighttpd: <<~CONF,
        server.modules = ("mod_access", "mod_rewrite", "mod_setenv", "mod_cgi")
        server.document-root = "%<folder>s/www"
        server.upload-dirs = ("%<folder>s/tmp")
        server.errorlog = "%<folder>s/logs/error.log"
        server.breakagelog = "%<folder>s/logs/cgi.log"
        server.bind = "127.0.0.1"
        server.port = %<port>d
        setenv.add-environment = ("ORIBI_RUNTIME_DIR" => "%<folder>s/run")
        cgi.assign = (".cgi" => "")
        index-file.names = ("index.cgi")
        url.access-deny = (".ru", ".rb")
        url.rewrite-if-not-file = ("^/app/(?!index\\.cgi)([^?]+)(\\?.*)?$" => "/app/index.cgi/$1$2")
      CONF
      # The rest is in the .htaccess that `oribi cgi install` writes.
      apache: <<~CONF,
        ServerName localhost
        Listen 127.0.0.1:%<port>d
        PidFile %<folder>s/tmp/pid
        ErrorLog %<folder>s/logs/error.log
        %<modules>s
        TypesConfig /etc/mime.types
        Mutex posixsem
        DocumentRoot %<folder>s/www
        ScriptSock %<folder>s/tmp/cgisock
        SetEnv ORIBI_RUNTIME_DIR %<folder>s/run
        <Directory %<folder>s/www>
          AllowOverride All
          Require all granted
        </Directory>
      CONF
      nginx: <<~CONF
        daemon off;
        pid %<folder>s/tmp/pid;
        error_log %<folder>s/logs/error.log;
        worker_processes 1;
        events { }
        http {
          access_log off;
          client_body_temp_path %<folder>s/tmp/body;
          proxy_temp_path %<folder>s/tmp/proxy;
          fastcgi_temp_path %<folder>s/tmp/fastcgi;
          scgi_temp_path %<folder>s/tmp/scgi;
          uwsgi_temp_path %<folder>s/tmp/uwsgi;
          client_max_body_size 20m;
          server {
            listen 127.0.0.1:%<port>d;
            root %<folder>s/www;
            location /app/ { rewrite ^/app/(.*)$ /app/index.cgi/$1 last; }
            location ~ ^/app/index\\.cgi(/|$) {
              fastcgi_split_path_info ^(/app/index\\.cgi)(/.*)?$;
              include /etc/nginx/fastcgi_params;
              fastcgi_param SCRIPT_FILENAME $document_root/app/index.cgi;
              fastcgi_param PATH_INFO $fastcgi_path_info;
              fastcgi_param ORIBI_RUNTIME_DIR %<folder>s/run;
              fastcgi_pass unix:%<folder>s/tmp/wrap;
            }
          }
        }
      CONF
    }.freeze
    MODULES = %w[mpm_event cgid dir mime rewrite env authz_core].map do |name|
      "LoadModule #{name}_module /usr/lib/apache2/modules/mod_#{name}.so"
    end.join("\n").freeze

    def self.fcgiwrap?
      WebServer::PATH.split(":").any? { |folder| File.executable?(File.join(folder, "fcgiwrap")) }
    end

    # `how` is :install, Oribi as an installed gem has it; or :bundle, plain Ruby. `files` are the
    # app's: names and texts.
    def initialize(kind, how, files: { "config.ru" => APP })
      @files = files
      @port = Helper.free_port
      @seen = []
      @web = WebServer.new(kind) do |folder|
        build(folder, how)
        format(CONFIGURATIONS.fetch(kind), folder: folder, port: @port, modules: MODULES)
      end
      wrap if kind == :nginx
      @web.ready(@port)
    end

    def log = @web.log

    def path(name) = File.join(@web.folder, "www/app", name)

    def ask(request)
      options = { open_timeout: PATIENCE, read_timeout: PATIENCE, max_retries: 0 }
      Net::HTTP.start("127.0.0.1", @port, **options) { |http| http.request(request) }
    end

    def get(target) = ask(Net::HTTP::Get.new(target))

    def post(target, body)
      request = Net::HTTP::Post.new(target)
      request.content_type = "application/octet-stream"
      request.body = body
      ask(request)
    end

    # The pid of the app's server; 0 while the next one is about to write it.
    def server = Dir[File.join(@web.folder, "run/acgi-*/server.lock")].sum { |f| File.read(f).to_i }

    # It and its processes, and all before it that are still there.
    def servers
      @seen |= Helper.family(server)
      @seen.select { |entry| entry.same?(Helper.process(entry.pid)) && !reaped?(entry.pid) }
    end

    def kill_servers(signal = "KILL")
      servers.each do |entry|
        Process.kill(signal, entry.pid)
      rescue Errno::ESRCH
        nil
      end
    end

    def stop
      kill_servers
      Helper.wait_until("the app's server is gone") { servers.empty? }
      if @wrap
        Process.kill("TERM", -@wrap)
        Process.wait(@wrap)
      end
    ensure
      @web.stop
    end

    private

    # Orphans are this process's children.
    def reaped?(pid)
      !Process.wait(pid, Process::WNOHANG).nil?
    rescue Errno::ECHILD
      false
    end

    def build(folder, how)
      gem = File.join(folder, "gem")
      app = File.join(folder, how == :install ? "www/app" : "app")
      FileUtils.mkdir_p([gem, app, File.join(folder, "www")])
      FileUtils.mkdir(File.join(folder, "run"), mode: 0o700)
      copy_gem(gem)
      @files.each { |name, text| File.write(File.join(app, name), text) }
      File.write(File.join(app, "oribi.rb"), "workers 2\n")
      into = ["--into", File.join(folder, "www/app"), "--ruby", RbConfig.ruby]
      put(gem, how.to_s, *(how == :install ? "--htaccess" : into), app)
      File.mkfifo(File.join(folder, "www/app/fifo"))
    end

    def put(gem, *words)
      words = [RbConfig.ruby, File.join(gem, "exe/oribi"), "cgi", *words]
      out, status = Open3.capture2e({ "ORIBI_BINARY" => nil, "RUBYLIB" => nil }, *words)
      raise Minitest::Assertion, out unless status.success?
    end

    # Whoever runs the web server may not be let into this checkout.
    def copy_gem(gem)
      FileUtils.cp_r(%w[exe lib].map { |name| File.join(ROOT, name) }, gem)
      bin = File.join(gem, "lib/oribi/bin")
      FileUtils.mkdir_p(bin)
      { "oribi" => Oribi::Binary.path, "oribi-shim" => Oribi::Binary.shim }.each do |name, file|
        FileUtils.cp(file, File.join(bin, name))
      end
    end

    # nginx knows no CGI; -f: standard error goes into its log.
    def wrap
      socket = File.join(@web.folder, "tmp/wrap")
      words = WebServer.as_user("fcgiwrap", "-f", "-c", "2", "-s", "unix:#{socket}")
      @wrap = Process.spawn({ "PATH" => WebServer::PATH }, *words, in: File::NULL, pgroup: true)
      Helper.wait_until("fcgiwrap listens") { File.socket?(socket) }
    end
  end
end
