# What an app finds when it is loaded: what mruby's core lacks, and a part of Rack.

class LoadError < ScriptError; end unless Object.const_defined?(:LoadError)

module Kernel
  # A gem of this binary's by its name: all are there already.
  def require(name)
    Oribi.require(name.to_s)
  end

  # A file of the app's, by its path from the file that asks. Each runs once.
  def require_relative(name)
    from = caller(1, 1)[0].to_s
    from = from[0, from.index(":")] if from.include?(":")
    Oribi.require_file(from, name.to_s)
  end
end

module Oribi
  # What the app's reply cannot be.
  class BadReply < StandardError; end

  # Builds the app that a rackup file says.
  class << self
    attr_accessor :builder

    def app
      builder.to_app
    end

    # What mruby has built in, or this binary.
    BUILT_IN = %w[rack rack/builder rack/utils rack/urlmap socket struct]

    def require(name)
      return false if BUILT_IN.include?(name) || gem?(name)

      raise LoadError, "cannot load such file -- #{name}: mruby has no gem path; require_relative " \
                       "loads the app's own files"
    end

    def require_file(from, name)
      @loaded ||= {}
      path = find_file(from, name)
      return false if @loaded[path]

      @loaded[path] = true
      run_file(path)
      true
    end

    def log(error)
      $stderr.puts "oribi: #{error.class}: #{error.message}"
    end

    # Calls the block for each part of a body; it says whether there is a wish for more.
    def stream(body)
      body.each { |part| break unless Oribi.write(part) }
      nil
    end

    # What the app wants to be called once its reply is out: the last one first.
    def finished(list, env, status, headers, error)
      list.reverse.each do |callable|
        begin
          callable.call(env, status, headers, error)
        rescue StandardError => e
          Oribi.log(e)
        end
      end
    end
  end

  # `rack.errors`.
  class Errors
    def puts(*texts)
      texts.flatten.each do |text|
        text = text.to_s
        write(text[-1] == "\n" ? text : text + "\n")
      end
      write("\n") if texts.empty?
      nil
    end

    def <<(text)
      write(text)
      self
    end

    def print(*texts)
      texts.each { |text| write(text) }
      nil
    end

    def flush = self
    def sync = true
    def close = nil
  end

  # `rack.input`: the body of the request that is being served.
  class Input
    def each
      while (line = gets)
        yield line
      end
      self
    end

    def getc = read(1)
    def close = nil
    def binmode = self
  end
end

module Rack
  RELEASE = "3.0.0"

  def self.release = RELEASE

  # As in Rack: `use`, `map` and `run`.
  class Builder
    def self.app(&block) = new(&block).to_app

    def initialize(app = nil, &block)
      @use = []
      @map = nil
      @run = app
      @warmup = nil
      instance_eval(&block) if block
    end

    def use(middleware, *args, &block)
      if @map
        map, @map = @map, nil
        @use << ->(app) { Rack::URLMap.new(app ? { "/" => app }.merge(built(map)) : built(map)) }
      end
      @use << ->(app) { middleware.new(app, *args, &block) }
      nil
    end

    def run(app = nil, &block)
      raise ArgumentError, "run: an app or a block, not both" if app && block

      @run = app || block
    end

    def map(path, &block)
      @map ||= {}
      @map[path] = block
    end

    def warmup(app = nil, &block)
      @warmup = app || block
    end

    def freeze_app = nil

    def to_app
      app = @run
      app = Rack::URLMap.new(app ? { "/" => app }.merge(built(@map)) : built(@map)) if @map
      raise "missing run or map statement" unless app

      app = @use.reverse.inject(app) { |inner, wrap| wrap.call(inner) }
      @warmup.call(app) if @warmup
      app
    end

    def call(env) = to_app.call(env)

    private

    def built(map)
      apps = {}
      map.each { |path, block| apps[path] = Rack::Builder.new(&block).to_app }
      apps
    end
  end

  # Picks an app by host and longest prefix on a path boundary.
  class URLMap
    def initialize(map = {})
      @mapping = map.map do |location, app|
        host = nil
        if location.start_with?("http://", "https://")
          rest = location[location.index("//") + 2..-1]
          slash = rest.index("/") || rest.size
          host, location = rest[0, slash], rest[slash..-1].to_s
        end
        location = location[0...-1] while location[-1] == "/"
        raise ArgumentError, "paths need to start with /" unless location.empty? || location[0] == "/"

        [host, location, app]
      end
      @mapping = @mapping.sort { |a, b| [b[0].to_s.size, b[1].size] <=> [a[0].to_s.size, a[1].size] }
    end

    def call(env)
      path = env["PATH_INFO"].to_s
      script = env["SCRIPT_NAME"].to_s
      host = env["HTTP_HOST"].to_s
      @mapping.each do |name, location, app|
        next if name && name.downcase != host.downcase && name.downcase != env["SERVER_NAME"].to_s.downcase
        next unless path == location || location.empty? || path.start_with?(location + "/")

        begin
          env["SCRIPT_NAME"] = script + location
          env["PATH_INFO"] = path[location.size..-1]
          return app.call(env)
        ensure
          env["SCRIPT_NAME"] = script
          env["PATH_INFO"] = path
        end
      end
      [404, { "content-type" => "text/plain", "x-cascade" => "pass" }, ["Not Found: #{path}"]]
    end
  end

  # The bits that apps ask for most.
  module Utils
    HTTP_STATUS_CODES = {
      200 => "OK", 201 => "Created", 202 => "Accepted", 204 => "No Content", 206 => "Partial Content",
      301 => "Moved Permanently", 302 => "Found", 303 => "See Other", 304 => "Not Modified",
      307 => "Temporary Redirect", 308 => "Permanent Redirect", 400 => "Bad Request",
      401 => "Unauthorized", 403 => "Forbidden", 404 => "Not Found", 405 => "Method Not Allowed",
      406 => "Not Acceptable", 409 => "Conflict", 410 => "Gone", 413 => "Content Too Large",
      415 => "Unsupported Media Type", 422 => "Unprocessable Content", 429 => "Too Many Requests",
      500 => "Internal Server Error", 501 => "Not Implemented", 502 => "Bad Gateway",
      503 => "Service Unavailable", 504 => "Gateway Timeout"
    }
    SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~*"
    HTML = { "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", "'" => "&#39;", '"' => "&quot;" }

    class << self
      def escape(text)
        text.to_s.bytes.map { |byte| escaped(byte) }.join
      end

      def escape_path(text) = escape(text).split("+").join("%20")

      def unescape(text)
        out = ""
        index = 0
        text = text.to_s
        while index < text.bytesize
          byte = text.byteslice(index, 1)
          if byte == "%" && hex?(text.byteslice(index + 1, 2))
            out << text.byteslice(index + 1, 2).to_i(16).chr
            index += 3
          else
            out << (byte == "+" ? " " : byte)
            index += 1
          end
        end
        out
      end

      def escape_html(text)
        text.to_s.bytes.map { |byte| HTML[byte.chr] || byte.chr }.join
      end

      def parse_query(query)
        params = {}
        query.to_s.split("&").each do |pair|
          next if pair.empty?

          name, value = pair.split("=", 2).map { |part| unescape(part) }
          params[name] = params.key?(name) ? [params[name], value].flatten : value
        end
        params
      end

      def build_query(params)
        pairs = params.map do |name, value|
          next value.map { |one| "#{escape(name)}=#{escape(one)}" }.join("&") if value.is_a?(Array)

          value.nil? ? escape(name) : "#{escape(name)}=#{escape(value)}"
        end
        pairs.join("&")
      end

      def status_code(status)
        return status.to_i unless status.is_a?(Symbol)

        name = status.to_s.split("_").join(" ")
        found = HTTP_STATUS_CODES.find { |_, text| text.downcase == name }
        found ? found[0] : raise(ArgumentError, "no status #{status.inspect}")
      end

      private

      def escaped(byte)
        return "+" if byte == 32
        return byte.chr if SAFE.include?(byte.chr)

        hex = byte.to_s(16).upcase
        "%" + (hex.size < 2 ? "0" + hex : hex)
      end

      def hex?(text)
        text.to_s.size == 2 && text.bytes.all? { |b| (48..57).include?(b) || (65..70).include?(b) || (97..102).include?(b) }
      end
    end
  end
end

# The top level of a rackup file.
def self.use(...) = Oribi.builder.use(...)
def self.run(...) = Oribi.builder.run(...)
def self.map(...) = Oribi.builder.map(...)
def self.warmup(...) = Oribi.builder.warmup(...)

Oribi.builder = Rack::Builder.new
