# frozen_string_literal: true

module ACGI
  # SCRIPT_NAME and PATH_INFO of Rack from what web servers call so.
  module Paths
    # What a path keeps when it is written down again (RFC 3986, section 3.3).
    PLAIN = %r{[^A-Za-z0-9\-._~!$&'()*+,;=:@/]}n

    module_function

    # Both, as they stand in an env: SCRIPT_NAME decoded no more than PATH_INFO is, and never "/".
    def of(params)
      raw = raw(params["REQUEST_URI"])
      script, path = params.values_at("SCRIPT_NAME", "PATH_INFO")
      return whole(params, raw, script) if path.nil?

      script = script.to_s
      # Asked for as its directory: the index belongs to no path.
      index = script[%r{\A(.*)/[^/]+\z}m, 1]
      decoded = raw && Variables.decode(raw)
      if index && decoded && !under?(decoded, script) && under?(decoded, index)
        script = index
        path = decoded.delete_prefix(index) if path.empty?
      end
      split(raw, decoded, script.delete_suffix("/"), path)
    end

    # The web server makes no difference: all of it is PATH_INFO.
    def whole(params, raw, script)
      name = script || params["DOCUMENT_URI"] || (raw && Variables.decode(raw)) || "/"
      split(raw, raw && Variables.decode(raw), "", name)
    end

    # As the client wrote it, where that is what is meant.
    def split(raw, decoded, script, path)
      return [encode(script), encode(path)] unless raw && decoded == script + path

      # Each of its bytes is a character of the raw path, or three.
      name = raw[/\A(?:%\h\h|.){#{script.bytesize}}/mn]
      [name, raw.delete_prefix(name)]
    end

    # The path of a REQUEST_URI, which may be a whole URI.
    def raw(uri)
      path = uri.to_s.b[%r{\A(?:[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*)?([^?#]*)}n, 1]
      path.start_with?("/") ? path : nil
    end

    def under?(path, base) = path == base || path.start_with?("#{base}/")

    def encode(path) = path.b.gsub(PLAIN) { format("%%%02X", $&.ord) }
  end
end
