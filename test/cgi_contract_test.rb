# frozen_string_literal: true

require "helper_case"
require "helper_contract"
require "helper_shim"
require "helper_web_servers"

# The contract of doors_contract_test.rb by CGI: each request is a process of the shim's, which the
# web server starts. The application is at /app/index.cgi; what it is told there, it is told over
# HTTP under that prefix.
class CgiContractTest < Helper::Case
  Contract = Helper::Contract
  PREFIX = "/app/index.cgi"
  ALL = Contract::REQUESTS.keys.freeze
  # CGI has no more to say where a connection might be taken over, and web servers resolve paths.
  EXCEPT = { "rack.hijack" => ALL, "rack.hijack?" => ALL, "SERVER_SOFTWARE" => ALL,
             "PATH_INFO" => ["dot segments", "two slashes"] }.freeze
  ADDED = %w[DOCUMENT_ROOT GATEWAY_INTERFACE ORIBI_RUNTIME_DIR PATH PATH_TRANSLATED SCRIPT_FILENAME
             SERVER_ADDR].freeze

  class << self
    attr_reader :app

    # Two servers of one application: over HTTP, and as the shim finds it.
    def shared
      @shared ||= begin
        @app = Helper::CgiDirectory.new
        @app.make_run
        words = ["-w", "2", "-b", "fastcgi+unix://#{@app.socket}", "--socket-mode", "0600"]
        ours = Helper::Server.new(:oribi, *words, app: Helper::Case.source("contract.ru")).ready
        if Process.uid.zero?
          FileUtils.chown_R(Helper::WebServer.user, nil, File.dirname(@app.path))
        end
        ours
      end
    end

    # What is seen over HTTP, under the same prefix: the script's path, which is there twice.
    def direct
      @direct ||= begin
        port = Integer(shared.log[%r{listening on http://\S+:(\d+)$}, 1], 10)
        Contract.ask_all(port).each_value do |seen|
          next unless seen.env

          seen.env["SCRIPT_NAME"] = PREFIX
          seen.env["REQUEST_URI"] = PREFIX + seen.env["REQUEST_URI"]
        end
      end
    end

    def stop
      super
      @app&.remove
      @app = @direct = nil
    end
  end

  def teardown
    super
    @web&.stop
    @wrapper&.stop
  end

  def compare(added: [], except: {}, refused: {})
    rules = Contract::Rules.new([*ADDED, *added], EXCEPT.merge(except), refused)
    different = rules.differences(self.class.direct) do |name|
      Contract.ask(keep(Helper::Client.tcp(@port)), name, PREFIX)
    end
    assert_empty different, @web.log
  end

  def run_web_server(kind)
    server
    @port = free_port
    @web = Helper::WebServer.new(kind, yield(self.class.app)).ready(@port)
  end

  def test_lighttpd
    run_web_server(:lighttpd) do |app|
      <<~CONF
        server.modules = ("mod_alias", "mod_cgi", "mod_setenv")
        server.bind = "127.0.0.1"
        server.port = #{@port}
        server.document-root = var.CWD + "/tmp"
        server.upload-dirs = (var.CWD + "/tmp")
        server.errorlog = var.CWD + "/logs/error.log"
        server.http-parseopts = ("url-normalize" => "disable")
        server.range-requests = "disable"
        setenv.add-environment = ("ORIBI_RUNTIME_DIR" => "#{app.base}")
        alias.url = ("/app/" => "#{app.path}/")
        cgi.assign = ("index.cgi" => "")
      CONF
    end
    compare(added: %w[REDIRECT_STATUS])
  end

  def test_apache
    run_web_server(:apache) do |app|
      modules = %w[mpm_event authz_core cgid alias env]
      <<~CONF
        Listen 127.0.0.1:#{@port}
        ServerName localhost
        PidFile logs/apache.pid
        DefaultRuntimeDir tmp
        ScriptSock cgid
        ErrorLog logs/error.log
        #{modules.map { |name| "LoadModule #{name}_module /usr/lib/apache2/modules/mod_#{name}.so" }
                 .join("\n")}
        AllowEncodedSlashes On
        MergeSlashes Off
        MaxRanges none
        SetEnv ORIBI_RUNTIME_DIR #{app.base}
        ScriptAlias /app/ #{app.path}/
        <Directory #{app.path}>
          CGIPassAuth On
          Require all granted
        </Directory>
      CONF
    end
    compare(added: %w[CONTEXT_DOCUMENT_ROOT CONTEXT_PREFIX REQUEST_SCHEME SERVER_ADMIN
                      SERVER_SIGNATURE])
  end

  def test_nginx_and_fcgiwrap
    run_web_server(:nginx) do |app|
      <<~CONF
        daemon off;
        pid logs/nginx.pid;
        error_log logs/error.log;
        events {}
        http {
          access_log off;
          client_body_temp_path tmp/body;
          proxy_temp_path tmp/proxy;
          fastcgi_temp_path tmp/fastcgi;
          scgi_temp_path tmp/scgi;
          uwsgi_temp_path tmp/uwsgi;
          server {
            listen 127.0.0.1:#{@port};
            client_max_body_size 0;
            location ~ ^/app/index\\.cgi(/|$) {
              fastcgi_pass unix:#{wrapper};
              fastcgi_split_path_info ^(/app/index\\.cgi)(.*)$;
              include /etc/nginx/fastcgi_params;
              fastcgi_param SCRIPT_FILENAME #{app.shim};
              fastcgi_param PATH_INFO $fastcgi_path_info;
              fastcgi_param ORIBI_RUNTIME_DIR #{app.base};
            }
          }
        }
      CONF
    end
    compare(added: %w[DOCUMENT_URI FCGI_ROLE REDIRECT_STATUS REMOTE_USER REQUEST_SCHEME],
            # Debian's file of parameters leaves the port out of HTTP_HOST.
            except: { "HTTP_HOST" => ALL, "SERVER_PORT" => ALL })
  end

  # A program that runs CGI programs for FastCGI.
  class Wrapper
    attr_reader :socket

    def initialize
      @folder = Dir.mktmpdir("oribi-fcgiwrap")
      FileUtils.chown(Helper::WebServer.user, nil, @folder) if Process.uid.zero?
      @socket = File.join(@folder, "socket")
      words = Helper::WebServer.as_user("fcgiwrap", "-c", "2", "-s", "unix:#{@socket}")
      # CGI programs get its environment, and the app gets theirs.
      @pid = Process.spawn({ "PATH" => Helper::WebServer::PATH }, *words,
                           unsetenv_others: true, in: File::NULL, err: File::NULL)
      Helper.wait_until("fcgiwrap listens") { File.socket?(@socket) }
    end

    def stop
      # Its children do the work, and are ours once it is gone.
      children = Helper.family(@pid).drop(1)
      Process.kill("TERM", @pid)
      Process.wait(@pid)
      children.each do |entry|
        Process.kill("KILL", entry.pid)
        Process.wait(entry.pid)
      rescue Errno::ESRCH, Errno::ECHILD
        nil
      end
      FileUtils.remove_entry(@folder)
    end
  end

  def wrapper = (@wrapper ||= Wrapper.new).socket
end
