# frozen_string_literal: true

# A page that shows what it is sent, by server-sent events and over a WebSocket, and reports it.
require "digest"

PAGE = <<~HTML
  <!doctype html><title>Oribi</title><meta charset="utf-8"><ul></ul>
  <script>
    const show = text => {
      const item = document.createElement("li");
      item.textContent = text;
      document.querySelector("ul").append(item);
    };
    const tell = (path, text) => fetch(path, { method: "POST", body: text });
    const items = () => [...document.querySelectorAll("li")].map(item => item.textContent);
    const talk = (path, then) => {
      const socket = new WebSocket(`ws://${location.host}${path}`);
      socket.onopen = () => socket.send("gr\\u00fc\\u00dfe");
      socket.onmessage = event => { show(event.data); socket.close(1000); };
      socket.onclose = event => { show(`${path} ${event.code} ${event.wasClean}`); then(); };
    };
    const events = new EventSource("/events");
    events.onmessage = event => { show(event.data); tell("/saw", items().at(-1)); };
    events.addEventListener("end", () => {
      events.close();
      talk("/full", () => talk("/partial", () => tell("/result", items().join("\\n"))));
    });
  </script>
HTML

# What the page has shown; the stream goes on when the page has shown the last event.
SAW = Queue.new

# Three events, each when the last one was seen.
class Events
  def each
    3.times do |i|
      yield "data: event #{i}\n\n"
      raise "the page shows something else" unless SAW.pop == "event #{i}"
    end
    yield "event: end\ndata:\n\n"
  end
end

# As much of RFC 6455 as a short talk needs.
module WebSocket
  GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

  module_function

  def headers(env)
    accept = [Digest::SHA1.digest(env.fetch("HTTP_SEC_WEBSOCKET_KEY") + GUID)].pack("m0")
    { "upgrade" => "websocket", "connection" => "Upgrade", "sec-websocket-accept" => accept }
  end

  def serve(io)
    loop do
      kind, length = io.read(2).unpack("CC")
      mask = io.read(4).bytes
      text = io.read(length & 0x7f).bytes.map.with_index { |byte, i| byte ^ mask[i % 4] }.pack("C*")
      text = "<#{text}>".b if kind == 0x81
      io.write([kind, text.bytesize].pack("CC"), text)
      break io.close if kind == 0x88
    end
  end
end

run(lambda do |env|
  plain = { "content-type" => "text/plain" }
  case env["PATH_INFO"]
  when "/" then [200, { "content-type" => "text/html" }, [PAGE]]
  when "/events" then [200, { "content-type" => "text/event-stream" }, Events.new]
  when "/saw"
    SAW << env["rack.input"].read
    [200, plain, []]
  when "/full"
    io = env["rack.hijack"].call
    lines = WebSocket.headers(env).map { |name, value| "#{name}: #{value}\r\n" }
    io.write("HTTP/1.1 101 Switching Protocols\r\n#{lines.join}\r\n")
    Thread.new { WebSocket.serve(io) }
    [200, plain, []]
  when "/partial"
    serve = ->(given) { Thread.new { WebSocket.serve(given) } }
    [101, WebSocket.headers(env).merge("rack.hijack" => serve), []]
  when "/result"
    File.write("result", env["rack.input"].read)
    [200, plain, []]
  else [404, plain, []]
  end
end)
