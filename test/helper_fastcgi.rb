# frozen_string_literal: true

require "helper_client"

module Helper
  # A FastCGI client (a web server's side of FastCGI 1.0) that hides nothing: any record can be
  # written, and every record that comes back can be seen.
  class FastCgi < Client
    # Kinds of records; INPUT, OUTPUT and ERRORS are its FCGI_STDIN, _STDOUT and _STDERR.
    BEGIN_REQUEST, ABORT_REQUEST, END_REQUEST, PARAMS, INPUT, OUTPUT, ERRORS, DATA, GET_VALUES,
      GET_VALUES_RESULT, UNKNOWN_TYPE = *1..11
    RESPONDER = 1
    KEEP = 1

    # One record.
    Record = Struct.new(:kind, :id, :content)

    # What one request has been answered with; `status` is the application's, `protocol` the
    # protocol's; `kinds` are its records' kinds, in order.
    Reply = Struct.new(:out, :errors, :status, :protocol, :kinds) do
      # The CGI answer as one that came over HTTP.
      def answer
        head, body = out.split("\r\n\r\n", 2)
        fields = head.split("\r\n").map { |line| line.split(/:\s*/, 2) }
        status = fields.find { |name, _| name.casecmp?("status") }
        fields -= [status]
        Answer.new("CGI", Integer((status&.last || "200")[/\d+/], 10), fields, body)
      end
    end

    # The bytes of one record.
    def self.record(kind, id, content = "", padding: 0)
      [1, kind, id, content.bytesize, padding, 0].pack("CCnnCC") << content.b << ("\0" * padding)
    end

    # Name-value pairs (section 3.4).
    def self.pairs(pairs)
      pairs.map do |name, value|
        lengths = [name, value].map(&:bytesize).map do |length|
          length < 128 ? [length].pack("C") : [length | (1 << 31)].pack("N")
        end
        [*lengths, name.b, value.b].join
      end.join.b
    end

    # A stream's records, the empty one that ends it included.
    def self.stream(kind, id, data, piece: 65_535)
      parts = data.b.scan(/.{1,#{piece}}/mn).map { |part| record(kind, id, part) }
      parts.join.b << record(kind, id)
    end

    # All records of a request. `keep`: the connection stays open behind it.
    def self.request(params, body: "", id: 1, keep: true, role: RESPONDER)
      start = [role, keep ? KEEP : 0].pack("nCx5")
      record(BEGIN_REQUEST, id, start) << stream(PARAMS, id, pairs(params)) <<
        stream(INPUT, id, body)
    end

    # The parameters of a request for `target`, as a web server would send them.
    def self.params(target = "/", method: "GET", body: nil, **others)
      path, query = target.split("?", 2)
      params = { "REQUEST_METHOD" => method, "REQUEST_URI" => target, "SCRIPT_NAME" => "",
                 "PATH_INFO" => path, "QUERY_STRING" => query.to_s, "SERVER_NAME" => "test",
                 "SERVER_PORT" => "80", "SERVER_PROTOCOL" => "HTTP/1.1", "HTTP_HOST" => "test",
                 "REMOTE_ADDR" => "192.0.2.1", "REMOTE_PORT" => "1234",
                 "GATEWAY_INTERFACE" => "CGI/1.1" }
      params["CONTENT_LENGTH"] = body.bytesize.to_s if body
      params.merge(others.transform_keys(&:to_s))
    end

    def initialize(socket)
      super
      @replies = Hash.new { |all, id| all[id] = Reply.new(+"".b, +"".b, nil, nil, []) }
    end

    # A request, and all of its reply.
    def ask(target = "/", body: nil, id: 1, keep: true, **params)
      params[:method] ||= body ? "POST" : "GET"
      params = FastCgi.params(target, body: body, **params)
      write(FastCgi.request(params, body: body.to_s, id: id, keep: keep))
      reply(id)
    end

    def get(target = "/", **params) = ask(target, **params).answer

    # The whole reply to a request; records of others are kept for theirs.
    def reply(id = 1)
      note(record) until @replies[id].protocol
      @replies.delete(id)
    end

    # What has come of a reply, once the block is satisfied with it.
    def reply_until(id = 1)
      note(record) until yield @replies[id]
      @replies[id]
    end

    # The next record.
    def record
      version, kind, id, length, padding, = take(8).unpack("CCnnCC")
      raise Minitest::Assertion, "a record of version #{version}" unless version == 1

      content = take(length)
      take(padding)
      Record.new(kind, id, content)
    end

    private

    def note(record)
      reply = @replies[record.id]
      reply.kinds << record.kind
      case record.kind
      when OUTPUT then reply.out << record.content
      when ERRORS then reply.errors << record.content
      when END_REQUEST then reply.status, reply.protocol = record.content.unpack("NC")
      else raise Minitest::Assertion, "a record of kind #{record.kind} for request #{record.id}"
      end
    end
  end
end
