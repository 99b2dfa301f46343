# frozen_string_literal: true

require "fileutils"
require "helper_fastcgi"
require "oribi/binary"
require "open3"

module Helper
  # A FastCGI server's side of one connection of the shim's.
  class Peer < FastCgi
    # The request's variables; what is left in the connection is its body.
    def params
      @params ||= begin
        bytes = +"".b
        loop do
          got = record
          next if got.kind == BEGIN_REQUEST
          break if got.content.empty?

          bytes << got.content
        end
        pairs(bytes)
      end
    end

    # The whole body; the next part of it, empty at the end.
    def body
      params
      parts = +"".b
      until (part = piece).empty?
        parts << part
      end
      parts
    end

    def piece = record.content

    def out(data) = write(*stream(OUTPUT, data))

    def errors(data) = write(*stream(ERRORS, data))

    def finish(status = 0, protocol = 0)
      write(FastCgi.record(END_REQUEST, 1, [status, protocol].pack("NCx3")))
    end

    # A page, and the end.
    def page(text, status = 0)
      out("Content-Type: text/plain\r\n\r\n#{text}")
      finish(status)
    end

    private

    def stream(kind, data)
      data.b.scan(/.{1,65535}/mn).map { |part| FastCgi.record(kind, 1, part) }
    end

    def pairs(bytes)
      all = {}
      until bytes.empty?
        lengths = Array.new(2) do
          long = bytes.getbyte(0) > 127
          long ? bytes.slice!(0, 4).unpack1("N") & 0x7fffffff : bytes.slice!(0, 1).ord
        end
        name, value = lengths.map { |length| bytes.slice!(0, length) }
        all[name] = value
      end
      all
    end
  end

  # An application's directory with the shim in it, and the place where it meets its server.
  class CgiDirectory
    # Serves like an application's server, in plain Ruby: each page says which process it comes
    # from. What it is to do besides stands before it.
    SERVER = <<~'RUBY'
      require "socket"
      File.write("starts", "#{Process.pid}\n", mode: "a")
      %1$s
      File.delete(%2$s) if File.exist?(%2$s)
      server = UNIXServer.new(%2$s)
      loop do
        Thread.new(server.accept) do |peer|
          kind, length = nil
          until kind == 5 && length.zero?
            _, kind, _, length, padding, = peer.read(8).unpack("CCnnCC")
            peer.read(length + padding)
          end
          page = "Content-Type: text/plain\r\n\r\n#{Process.pid}"
          peer.write([1, 6, 1, page.bytesize, 0].pack("CCnnCx"), page,
                     [1, 3, 1, 8, 0, 0, 0].pack("CCnnCxNCx3"))
          peer.close
        end
      end
    RUBY

    attr_reader :path, :base

    def initialize
      @folder = Dir.mktmpdir("oribi-shim")
      FileUtils.chmod(0o755, @folder)
      @path = File.join(@folder, "app")
      @base = File.join(@folder, "run")
      Dir.mkdir(@path)
      FileUtils.cp(Oribi::Binary.shim, shim)
      write("config.ru", "run ->(_env) { [200, {}, []] }\n")
    end

    def shim = File.join(@path, "index.cgi")

    def write(name, text) = File.write(File.join(@path, name), text)

    # What the shim starts.
    def server(before = "", after: SERVER)
      write("acgi.rb", format(after, before, socket.inspect))
    end

    # FNV-1a, 64 bits.
    def run
      hash = File.realpath(@path).each_byte.reduce(0xcbf29ce484222325) do |sum, byte|
        ((sum ^ byte) * 0x100000001b3) & 0xffffffffffffffff
      end
      File.join(@base, format("acgi-%016x", hash))
    end

    def socket = File.join(run, "socket")

    def make_run
      FileUtils.mkdir_p(run)
      FileUtils.chmod(0o700, [@base, run])
    end

    # Listens as the application's server; each connection is the block's.
    def listen(&block)
      make_run
      FileUtils.rm_f(socket)
      listener = UNIXServer.new(socket)
      thread = Thread.new { loop { answer(listener.accept, &block) } }
      thread.report_on_exception = false
      (@listeners ||= []) << listener << thread
      listener
    end

    def answer(connection)
      Thread.new do
        yield Peer.new(connection)
      rescue SystemCallError, IOError
        nil
      ensure
        connection.close
      end.report_on_exception = false
    end

    def env(**more)
      usual = { "ORIBI_RUNTIME_DIR" => @base, "REQUEST_METHOD" => "GET",
                "SCRIPT_NAME" => "/app/index.cgi", "GATEWAY_INTERFACE" => "CGI/1.1",
                "CONTENT_LENGTH" => nil, "PATH" => ENV.fetch("PATH") }
      usual.merge(more.transform_keys(&:to_s))
    end

    # The shim, which must not make a test hang.
    def in_time = ["/usr/bin/timeout", "--signal=KILL", (PATIENCE * 3).to_s, shim]

    # Runs it to its end: what it prints, what it tells the log, its exit status.
    def hit(body: nil, program: in_time, **more)
      more = { REQUEST_METHOD: "POST", CONTENT_LENGTH: body.bytesize.to_s }.merge(more) if body
      streams = { stdin_data: body.to_s, binmode: true, unsetenv_others: true }
      out, err, status = Open3.capture3(env(**more), *program, **streams)
      [out, err, status.exitstatus]
    end

    # Pids of the servers that were started.
    def starts
      File.readlines(File.join(@path, "starts"), chomp: true).map { |line| Integer(line, 10) }
    rescue Errno::ENOENT
      []
    end

    def remove
      @listeners&.reverse_each { |each| each.is_a?(Thread) ? each.kill.join : each.close }
      starts.each do |pid|
        Process.kill("KILL", pid)
        Process.wait(pid)
      rescue Errno::ESRCH, Errno::ECHILD
        nil
      end
      FileUtils.remove_entry(@folder)
    end
  end
end
