# frozen_string_literal: true

require "helper_case"

# The same requests to Puma 5.6: apps written against it must find what they know. Every difference
# is listed here.
class PeerTest < Helper::Case
  serve "rack.ru", "-w", "1"

  # In Puma's env alone. GATEWAY_INTERFACE promises CGI, which neither is; REQUEST_PATH is PATH_INFO
  # under its Mongrel name; hijacking is not offered.
  THEIRS = %w[GATEWAY_INTERFACE REQUEST_PATH rack.hijack rack.after_reply puma.config puma.socket
              puma.request_body_wait].freeze
  # In ours alone.
  OURS = %w[REMOTE_PORT oribi.queue_time oribi.timeout].freeze
  # Puma's from version 7 has the first two, and no HTTP_VERSION.
  NEWER = %w[rack.response_finished puma.mark_as_io_bound HTTP_VERSION].freeze
  OLD = Gem::Specification.find_by_name("puma").version < Gem::Version.new("6")
  # In both, with another value: who serves, what Rack calls the interface, whether hijacking is
  # possible, the class of an input and of the errors' stream.
  OTHERWISE = %w[SERVER_SOFTWARE rack.version rack.hijack? rack.input rack.errors].freeze

  HOST = "Host: example.org:8080"

  # Request bytes, and the keys that differ for a reason of that request.
  REQUESTS = {
    "a plain GET" => [["GET /env", HOST]],
    "a query" => [["GET /env/a%20b;c?d=e&f=%20+", HOST]],
    "a path of many names" => [["GET /env//x/./../%2e%2e/%2F;a=b/", HOST]],
    "an empty query" => [["GET /env/?", HOST]],
    "usual headers" => [["GET /env", HOST, "User-Agent: x", "Accept: */*", "Cookie: a=b",
                         "Referer: /", "Accept-Encoding: gzip", "If-None-Match: \"x\"",
                         "X-Requested-With: y"]],
    "no port" => [["GET /env", "Host: example.org"]],
    "IPv6" => [["GET /env", "Host: [::1]:81"]],
    "a POST" => [["POST /env", HOST, "Content-Type: text/x", "Content-Length: 4"], "body"],
    "chunks" => [["POST /env", HOST, "Transfer-Encoding: chunked"], "4\r\nbody\r\n0\r\n\r\n"],
    "a header twice" => [["GET /env", HOST, "X-A: 1", "X-A: 2"]],
    "an absolute target" => [["GET http://example.org:8080/env?q", HOST]],
    # RFC 9112, section 3.2.2: Host is ignored.
    "an absolute target elsewhere" => [["GET http://else.example:1/env", HOST], "",
                                       %w[HTTP_HOST SERVER_NAME SERVER_PORT]],
    "a DELETE" => [["DELETE /env", HOST]],
    # Puma's SERVER_PROTOCOL is a constant before version 6.
    "HTTP/1.0" => [["GET /env HTTP/1.0", HOST], "", OLD ? %w[SERVER_PROTOCOL] : []],
    # Puma joins cookies like any other header, which no cookie parser can undo.
    "cookies twice" => [["GET /env", HOST, "Cookie: a=1", "Cookie: b=2"], "", %w[HTTP_COOKIE]],
    # Puma says localhost:80; ours is the address that answered.
    "no host" => [["GET /env HTTP/1.0", "X-A: 1", "Host:"], "",
                  %w[SERVER_NAME SERVER_PORT] + (OLD ? %w[SERVER_PROTOCOL] : [])],
    # An underscore lets a client forge what a proxy sets with a dash.
    "underscores" => [["GET /env", HOST, "X_Forwarded_For: 1.1.1.1"], "", %w[HTTP_X_FORWARDED_FOR]],
    # HTTP_PROXY is an environment variable that programs obey.
    "Proxy" => [["GET /env", HOST, "Proxy: x"], "", %w[HTTP_PROXY]]
  }.freeze

  def setup
    @directory = Dir.mktmpdir("oribi-peer")
    File.write(File.join(@directory, "config.ru"), self.class.source("rack.ru"))
    @log = File.join(@directory, "log")
    # No configuration of the machine's: `-C -` is none at all.
    @puma = Process.spawn(RbConfig.ruby, Gem.bin_path("puma", "puma"), "-C", "-", "-t", "1:1", "-q",
                          "-b", "tcp://127.0.0.1:0", "config.ru",
                          chdir: @directory, out: @log, err: %i[child out])
    @peer = wait_until("Puma listens") do
      File.read(@log)[%r{Listening on http://127\.0\.0\.1:(\d+)}, 1]
    end
  end

  def teardown
    super
    Process.kill("KILL", @puma)
    Process.wait(@puma)
    FileUtils.remove_entry(@directory)
  end

  def env_of(client, head, body)
    answer = client.write(Client.request(*head), body.to_s).answer
    env = unpack(answer)
    # Where a value does not come from the client Puma's may be UTF-8; as bytes they are the same.
    env.except(*OTHERWISE).transform_values do |value, detail|
      %w[UTF-8 US-ASCII].include?(detail) ? [value.b, "ASCII-8BIT"] : [value, detail]
    end
  end

  def test_only_the_listed_differences
    REQUESTS.each do |what, (head, body, differing)|
      ours = env_of(connect, head, body)
      theirs = env_of(keep(Client.tcp(Integer(@peer, 10))), head, body)
      differing ||= []
      unlike = (ours.keys | theirs.keys).reject { |key| ours[key] == theirs[key] }
      unlike -= THEIRS + NEWER
      assert_equal (differing + OURS).sort, unlike.sort,
                   "#{what}: #{unlike.to_h { |key| [key, [ours[key], theirs[key]]] }}"
    end
  end
end
