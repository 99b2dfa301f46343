# frozen_string_literal: true

module ACGI
  # The environment of a request: the process's own, without what another request has left there
  # (that which had the server started), and the request's variables.
  module Variables
    OWN = %w[AUTH_TYPE GATEWAY_INTERFACE HTTPS PATH_INFO PATH_TRANSLATED QUERY_STRING].freeze
    FAMILIES = /\A(?:(?:HTTP|REMOTE|REQUEST|SCRIPT|REDIRECT|CONTENT|CONTEXT|DOCUMENT)_|
                   SERVER_(?:ADDR|ADMIN|NAME|PORT|PROTOCOL|SIGNATURE|SOFTWARE)\z|
                   SSL_(?:CIPHER|CLIENT|PROTOCOL|SERVER|SESSION|TLS_SNI|VERSION))/x
    # A header of that name would tell subprocesses which proxy to use.
    NEVER = %w[HTTP_PROXY HTTP_CONTENT_LENGTH HTTP_CONTENT_TYPE].freeze

    module_function

    # Makes it the environment without a request, and returns that.
    def settle
      base = ENV.to_h.reject { |name, _| OWN.include?(name) || name.match?(FAMILIES) }
      ENV.replace(base)
      base
    end

    # `given` as a web server sent them, the body with `size` bytes, which it need not have known.
    def of(given, size)
      own = given.reject do |name, value|
        NEVER.include?(name) || !name.match?(/\A[^=.\x00]+\z/n) || value.include?("\0")
      end
      own["CONTENT_LENGTH"] = size.to_s if size.positive? || own.key?("CONTENT_LENGTH")
      own["GATEWAY_INTERFACE"] ||= "CGI/1.1"
      own
    end

    # The same from a Rack env.
    def of_rack(env, size)
      given = env.select { |name, value| value.is_a?(String) && !name.include?(".") }
      given.delete("HTTP_VERSION")
      of(given.merge(place(env)), size)
    end

    # In CGI the path is decoded, and the script's name ends with the script's file, also where the
    # web server took it for the index of its directory.
    def place(env)
      name, path = env.values_at("SCRIPT_NAME", "PATH_INFO").map { |value| decode(value) }
      file = File.basename(env["SCRIPT_FILENAME"].to_s)
      if file.end_with?(".cgi") && !name.end_with?("/#{file}")
        name = "#{name}/#{file}"
        path = "" if path == "/"
      end
      { "SCRIPT_NAME" => name, "PATH_INFO" => path }
    end

    def decode(path) = path.to_s.b.gsub(/%(\h\h)/) { $1.hex.chr }
  end
end
