# frozen_string_literal: true

module ACGI
  # SCRIPT_NAME and PATH_INFO of Rack from what web servers call so. They send both decoded, and
  # each in its own way; the app gets them as the client wrote them, as over HTTP.
  module Paths
    # What a path keeps when it is written down again (RFC 3986, section 3.3).
    ENCODED = %r{[^A-Za-z0-9\-._~!$&'()*+,;=:@/]}n

    module_function

    # Both. The path is REQUEST_URI's where that is what the web server has looked at; otherwise,
    # where it was rewritten, what the web server says.
    def of(params)
      raw = raw(params["REQUEST_URI"])
      script, info = told(params, raw)
      name, path = split(raw, script, info, params.key?("PATH_INFO"))
      name.empty? && path.empty? ? ["", "/"] : [name, path]
    end

    # nginx and Apache may send no PATH_INFO, and all of the path as SCRIPT_NAME.
    def told(params, raw)
      script, info = params.values_at("SCRIPT_NAME", "PATH_INFO")
      return ["", script || params["DOCUMENT_URI"] || decode(raw || "/")] if info.nil?

      script = script.to_s
      return [script, info] unless script.end_with?("/")

      [script.delete_suffix("/"), info.empty? ? "/" : info]
    end

    def split(raw, script, info, sent)
      if raw
        return cut(raw, script) if decode(raw) == script + info
        # Some send the whole path as PATH_INFO whatever SCRIPT_NAME is.
        return ["", raw] if !info.empty? && decode(raw) == info

        split = sent && directory(raw, script, info)
        return split if split
      end
      [encode(script), encode(info)]
    end

    # For a script that the path need not name: the index of its directory, or what answers for all
    # that is in it. Then the directory is SCRIPT_NAME.
    def directory(raw, script, info)
      directory, _, file = script.rpartition("/")
      path = resolve(raw) if file.include?(".")
      return if path.nil?

      name = [script, directory].find do |place|
        under?(path, place) && (info.empty? || path.delete_prefix(place) == info)
      end
      cut(path == decode(raw) ? raw : encode(path), name) if name
    end

    # The path decoded, without dots and repeated slashes; nil for one that climbs above the root or
    # that means different things to different programs.
    def resolve(raw)
      return if raw.match?(/%(2f|00)/i)

      path = decode(raw)
      # Whatever stands before the root is still there unless the path leaves it.
      return unless "#{File.expand_path("/root#{path}")}/".start_with?("/root/")

      # Of two slashes at the beginning Ruby keeps both.
      clean = File.expand_path(path.squeeze("/"))
      path.match?(%r{/\.{0,2}\z}) && clean != "/" ? "#{clean}/" : clean
    end

    # Behind what spells `name`: each of its bytes is a character of the raw path, or three.
    def cut(raw, name)
      name = raw[/\A(?:%\h\h|.){#{name.bytesize}}/mn]
      [name, raw.delete_prefix(name)]
    end

    # The path of a REQUEST_URI, which may be a whole URI; nil when it is none.
    def raw(uri)
      return if uri.nil?

      path = uri.b[%r{\A(?:[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*)?([^?#]*)}n, 1]
      return "/" if path.empty?

      path if path.start_with?("/")
    end

    def under?(path, base) = path == base || path.start_with?("#{base}/")

    def encode(path) = path.b.gsub(ENCODED) { format("%%%02X", $&.ord) }

    def decode(path) = Variables.decode(path)
  end
end
