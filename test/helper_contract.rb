# frozen_string_literal: true

require "helper_client"

module Helper
  # What every way to the app must agree on: requests by name, sent as bytes, and what is to be seen
  # of their answers.
  module Contract
    HOST = "Host: shop.example:8042"
    # mod_cgid of Apache 2.4.69, and not of releases around it, takes no longer variables.
    LONG = "x-long: #{'abcdefgh' * 437}".freeze
    UPLOAD = Random.new(7).bytes(1024 * 1024).freeze
    BOUNDARY = "oribi-#{'-' * 20}".freeze
    FORM = "Content-Type: application/x-www-form-urlencoded"
    MULTIPART = "--#{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; " \
                "filename=\"noise.bin\"\r\nContent-Type: application/octet-stream\r\n\r\n".b +
                UPLOAD + "\r\n--#{BOUNDARY}--\r\n"
    # A header that each hop says for itself, or that says how the body comes.
    OF_HOPS = %w[connection keep-alive date server transfer-encoding content-length via
                 upgrade vary].freeze

    # Request lines below the app's own path, fields, and a body.
    REQUESTS = {
      "a query" => ["GET /env?a=1&b=2%20c+d&e[]=f", "Accept: text/html", "User-Agent: test/1"],
      "nothing asked" => ["GET /env?"],
      "no query" => ["GET /env"],
      "an encoded path" => ["GET /env/a%20b/%E2%82%AC%2Bc"],
      "an encoded slash" => ["GET /env/a%2Fb%2fc/d"],
      "dots" => ["GET /env/..a/b.c/.../d."],
      "dot segments" => ["GET /env/a/../b/./c"],
      "two slashes" => ["GET /env//a/"],
      "other characters" => ["GET /env/a+b;c=d/(e)!*',$&@:~=?x=/?:@"],
      "lower and upper hex" => ["GET /env/%e2%82%ac/%E2%82%AC"],
      "a slash behind" => ["GET /env/"],
      "the root" => ["GET /"],
      "HEAD" => ["HEAD /missing"],
      "a form" => ["POST /env", FORM, { body: "a=1&b=%20x" }],
      "nothing posted" => ["POST /env", FORM, { body: "" }],
      "an upload" => ["POST /env?u=1", "Content-Type: multipart/form-data; boundary=#{BOUNDARY}",
                      { body: MULTIPART }],
      "chunks" => ["POST /env", "Content-Type: text/plain",
                   { chunks: ["a" * 5, "b" * 70_000, "c"] }],
      "PUT" => ["PUT /env", "Content-Type: application/json", { body: "{}" }],
      "PATCH" => ["PATCH /env", "Content-Type: application/json", { body: "[1]" }],
      "DELETE" => ["DELETE /env/1"],
      "OPTIONS" => ["OPTIONS /env"],
      "cookies" => ["GET /env", "Cookie: a=1; b=\"2\"; c=%20"],
      "fields that come twice" => ["GET /env", "X-Twice: one", "X-Twice: two", "Accept: a/b"],
      "a long field" => ["GET /env", LONG],
      "fields of many kinds" => ["GET /env", "Authorization: Basic YTpi", "X-A-B: c",
                                 "Range: bytes=0-1", "Referer: http://a.example/",
                                 "Accept-Language: de,en;q=0.5"],
      "a proxy's trick" => ["GET /env", "Proxy: evil.example"],
      "If-None-Match" => ["GET /etag", 'If-None-Match: "one"'],
      "an old ETag" => ["GET /etag", 'If-None-Match: "two"'],
      "204" => ["GET /nothing"],
      "a path to go to" => ["GET /away"],
      "an address to go to" => ["POST /here", FORM, { body: "a=1" }],
      "two cookies" => ["GET /cookies"],
      "pieces" => ["GET /pieces"],
      "a long reply" => ["GET /long"],
      "404" => ["GET /missing"],
      "418" => ["GET /teapot"],
      "503" => ["GET /unavailable"],
      "an exception" => ["GET /raise"]
    }.freeze

    # What there is to see of an answer: status, headers and body, or what the app was told.
    Seen = Struct.new(:status, :fields, :body, :env)

    # What may differ, by keys of env: those that may be there besides, those that may have another
    # value or be missing in some requests, by name; and requests that are refused with a status.
    Rules = Struct.new(:added, :except, :refused) do
      # Each difference with the requests that show it; the block asks one.
      def differences(expected)
        found = Hash.new { |all, text| all[text] = [] }
        expected.each do |name, wanted|
          got = yield name
          status = refused[name]
          parts = status ? refusal(status, got) : different_parts(wanted, got, name)
          parts.each { |text| found[text] << name }
        end
        found
      end

      private

      def refusal(status, got) = got.status == status ? [] : ["status: #{status} is #{got.status}"]

      def different_parts(wanted, got, name)
        found = %i[status fields body].reject { |part| got[part] == wanted[part] }
        found.map! { |part| "#{part}: #{shown(wanted[part])} is #{shown(got[part])}" }
        return found unless wanted.env && got.env

        keys = [wanted, got].flat_map do |seen|
          seen.env["test.keys"]
        end.uniq - Contract::OF_CONNECTIONS
        keys = ["test.body", *keys].reject { |key| except[key]&.include?(name) }
        keys.reject! do |key|
          tell(wanted, key) == tell(got, key) || (added.include?(key) && !tell(wanted, key))
        end
        found + keys.map { |key| "#{key}: #{shown(tell(wanted, key))} is #{shown(tell(got, key))}" }
      end

      # Of what is no String there is only the name.
      def tell(seen, key) = seen.env.fetch(key) { seen.env["test.keys"].include?(key) }

      def shown(value) = value.inspect[0, 160]
    end

    # Each connection has its own.
    OF_CONNECTIONS = %w[REMOTE_PORT].freeze

    module_function

    # What is seen of every request, each on a connection of its own.
    def ask_all(port, prefix = "")
      REQUESTS.to_h do |name, _|
        client = Client.tcp(port)
        [name, ask(client, name, prefix)]
      ensure
        client&.close
      end
    end

    # The bytes of a request for the app below `prefix`.
    def bytes(name, prefix = "")
      line, *fields = REQUESTS.fetch(name)
      more = fields.last.is_a?(Hash) ? fields.pop : {}
      method, path = line.split(" ", 2)
      line = "#{method} #{prefix}#{path}"
      return Client.request(line, HOST, *fields, body: more[:body]) unless more[:chunks]

      chunks = [*more[:chunks], ""].map { |part| "#{part.bytesize.to_s(16)}\r\n#{part}\r\n" }
      Client.request(line, HOST, *fields, "Transfer-Encoding: chunked") << chunks.join
    end

    # The bytes of a request of a test's own.
    def line(line, *fields) = Client.request(line, HOST, *fields)

    # Asks on a connection that is closed or kept as the server likes.
    def ask(client, name, prefix = "")
      client.write(bytes(name, prefix))
      seen(client.answer(bodiless: name == "HEAD"))
    end

    def seen(answer)
      told = answer["content-type"] == "application/octet-stream"
      fields = answer.fields.map { |field, value| [field.downcase, value] }
      # Not a Hash: cookies come several times.
      fields = fields.reject { |pair| OF_HOPS.include?(pair.first) }.sort
      # What is in it was written by our own app.
      env = told ? Marshal.load(answer.body) : nil # rubocop:disable Security/MarshalLoad
      env&.transform_values! { |value| value.is_a?(String) ? value.b : value }
      Seen.new(answer.status, fields, told ? nil : answer.body, env)
    end
  end
end
