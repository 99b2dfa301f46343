# frozen_string_literal: true

require "etc"
require "fileutils"
require "helper"

module Helper
  # A real web server in the foreground with a configuration of the test's, in a folder of its own
  # (with `logs` and `tmp` in it), never as root. Relative paths of the configuration lie in there.
  #
  #   web = Helper::WebServer.new(:nginx, text).ready(port)
  #   ...
  #   web.stop
  class WebServer
    # How each is started by hand from such a folder, as the examples say.
    COMMANDS = {
      nginx: ["nginx", "-p", "FOLDER/", "-c", "server.conf", "-e", "logs/error.log"],
      lighttpd: ["lighttpd", "-D", "-f", "server.conf"],
      apache: ["apache2", "-D", "FOREGROUND", "-d", "FOLDER", "-f", "server.conf"],
      caddy: ["caddy", "run", "--adapter", "caddyfile", "--config", "server.conf"]
    }.freeze
    # Debian keeps servers where the PATH of people who are not root does not look.
    PATH = "#{ENV.fetch('PATH')}:/usr/sbin:/sbin".freeze

    attr_reader :pid, :folder

    # Whom web servers run as when the tests are root's.
    def self.user = Process.uid.zero? ? "www-data" : Etc.getpwuid.name

    def self.installed?(kind)
      name = COMMANDS.fetch(kind).first
      PATH.split(":").any? { |folder| File.executable?(File.join(folder, name)) }
    end

    # Words that run a command as that user.
    def self.as_user(*words)
      return words unless Process.uid.zero?

      ["setpriv", "--reuid", user, "--regid", user, "--init-groups", *words]
    end

    # A key and a certificate that nobody has signed, as files.
    def self.certificate
      @certificate ||= Dir.mktmpdir do |folder|
        words = %w[openssl req -x509 -nodes -days 2 -subj /CN=localhost -newkey ec -pkeyopt
                   ec_paramgen_curve:prime256v1 -keyout key.pem -out cert.pem]
        raise "openssl failed" unless system(*words, chdir: folder, err: File::NULL)

        %w[key.pem cert.pem].to_h { |name| [name, File.read(File.join(folder, name))] }
      end
    end

    # A configuration that listens at another port for TLS, too, with these files.
    def self.with_tls(kind, text, port)
      more = format(TLS.fetch(kind), port: port)
      kind == :nginx ? text.sub(/^ +listen .*\n/) { "#{_1}#{more}" } : text + more
    end

    TLS = {
      nginx: "listen 127.0.0.1:%<port>d ssl; ssl_certificate cert.pem; " \
             "ssl_certificate_key key.pem;\n",
      lighttpd: <<~CONF,
        server.modules += ("mod_openssl")
        $SERVER["socket"] == "127.0.0.1:%<port>d" {
          ssl.engine = "enable"
          ssl.pemfile = var.CWD + "/cert.pem"
          ssl.privkey = var.CWD + "/key.pem"
        }
      CONF
      apache: <<~CONF
        LoadModule ssl_module ${MODULES}/mod_ssl.so
        Listen 127.0.0.1:%<port>d https
        <VirtualHost 127.0.0.1:%<port>d>
          SSLEngine on
          SSLCertificateFile cert.pem
          SSLCertificateKeyFile key.pem
        </VirtualHost>
      CONF
    }.freeze
    private_constant :TLS

    # `config` is the text of its configuration, or what the block makes of the folder; `files` are
    # written beside it.
    def initialize(kind, config = nil, files: {}, env: {})
      @kind = kind
      @folder = Dir.mktmpdir("oribi-#{kind}")
      FileUtils.chmod(0o755, @folder)
      %w[logs tmp].each { |name| FileUtils.mkdir(File.join(@folder, name)) }
      config ||= yield @folder
      { "server.conf" => config, **files }.each do |name, text|
        File.write(File.join(@folder, name), text)
      end
      FileUtils.chown_R(WebServer.user, nil, @folder) if Process.uid.zero?
      start(env)
    end

    # Waits until it listens on these ports.
    def ready(*ports)
      ports.each do |port|
        Helper.wait_until("#{@kind} listens on #{port}; its log: #{log}") do
          raise Minitest::Assertion, "#{@kind} ended instead: #{log}" if ended?

          TCPSocket.new("127.0.0.1", port).close || true
        rescue Errno::ECONNREFUSED
          nil
        end
      end
      self
    rescue Minitest::Assertion
      stop
      raise
    end

    # All that it has written, its access log aside.
    def log
      files = [File.join(@folder, "output"), *Dir[File.join(@folder, "logs/*")]]
      files.grep_v(/access/).select { |file| File.file?(file) }.map { |file| File.read(file) }.join
    end

    # Ends it, and removes its folder.
    def stop
      return unless @pid

      begin
        family = Helper.family(@pid)
        end_in_order
        left = family.select { |entry| entry.same?(Helper.process(entry.pid)) }
        left.each { |entry| finish(entry.pid) }
      ensure
        reap
        @pid = nil
        FileUtils.remove_entry(@folder)
      end
    end

    def ended?
      @ended ||= !Process.wait(@pid, Process::WNOHANG).nil?
    end

    private

    def start(env)
      output = File.join(@folder, "output")
      command = COMMANDS.fetch(@kind).map { |word| word.sub("FOLDER", @folder) }
      words = WebServer.as_user(*command)
      env = { "PATH" => PATH, "HOME" => @folder, "XDG_DATA_HOME" => @folder }.merge(env)
      # Apache tells its whole process group to end.
      @pid = Process.spawn(env, *words, chdir: @folder, in: File::NULL, out: output,
                                        err: %i[child out], pgroup: true)
    end

    def end_in_order
      kill("TERM", @pid)
      Helper.wait_until("#{@kind} ends", within: 5) { ended? }
    rescue Minitest::Assertion
      kill("KILL", @pid)
    end

    # What its death has made our child.
    def finish(pid)
      kill("KILL", pid)
      Process.wait(pid)
    rescue Errno::ECHILD
      nil
    end

    def reap
      Process.wait(@pid) unless @ended
    rescue Errno::ECHILD
      nil
    end

    def kill(signal, pid)
      Process.kill(signal, pid)
    rescue Errno::ESRCH
      nil
    end
  end
end
