# frozen_string_literal: true

module ACGI
  # The Rack env of a FastCGI request.
  module RackEnv
    module_function

    # Raises Error for what is no request.
    def of(params, body, errors, multiprocess)
      env = params.reject do |name, _|
        Variables::NEVER.include?(name) || !name.match?(/\A[^=.\x00-\x20\x7f]+\z/n)
      end
      check(env)
      env["SCRIPT_NAME"], env["PATH_INFO"] = Paths.of(params)
      env["QUERY_STRING"] ||= ""
      env["SERVER_PROTOCOL"] ||= "HTTP/1.0"
      name_server(env)
      env.merge!(rack(params, body, errors, multiprocess))
    end

    def check(env)
      raise Error, "a request without REQUEST_METHOD" if env["REQUEST_METHOD"].to_s.empty?

      %w[CONTENT_LENGTH CONTENT_TYPE].each { |name| env.delete(name) if env[name] == "" }
      length = env["CONTENT_LENGTH"]
      return if length.nil? || length.match?(/\A\d+\z/)

      raise Error, "a request whose CONTENT_LENGTH is #{length[0, 40].inspect}"
    end

    def name_server(env)
      env["SERVER_NAME"] = "localhost" if env["SERVER_NAME"].to_s.empty?
      env["SERVER_PORT"] = "80" unless env["SERVER_PORT"].to_s.match?(/\A\d+\z/)
      env["HTTP_VERSION"] = env["SERVER_PROTOCOL"] if release < 3
    end

    def rack(params, body, errors, multiprocess)
      secure = %w[on 1].include?(params["HTTPS"].to_s.downcase) ||
               params["REQUEST_SCHEME"] == "https"
      env = { "rack.url_scheme" => secure ? "https" : "http", "rack.input" => body.io,
              "rack.errors" => errors, "rack.multithread" => false,
              "rack.multiprocess" => multiprocess, "rack.run_once" => false,
              "rack.hijack?" => false }
      env["rack.version"] = [1, 3] if release < 3
      env
    end

    # Of Rack, 3 when there is none.
    def release = defined?(Rack.release) ? Rack.release.to_i : 3
  end

  # rack.errors: the log of the web server.
  class RackErrors
    def initialize(connection)
      @connection = connection
    end

    def write(*texts)
      text = texts.join
      @connection.write(Records::ERRORS, text.b)
      text.bytesize
    rescue Gone
      warn text
      text.bytesize
    end

    def puts(*lines)
      text = StringIO.new
      text.puts(*lines)
      write(text.string)
      nil
    end

    def print(*texts)
      write(*texts)
      nil
    end

    def <<(text)
      write(text)
      self
    end

    def flush = self

    def sync = true

    def close = nil
  end
end
