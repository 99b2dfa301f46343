# frozen_string_literal: true

# A server of known latency: PORT, MILLISECONDS, and what is wrong with it (`liar` answers every
# third request with 503, `mortal` dies after 100 requests, `phoenix` has a worker that it starts
# again whenever it dies, `learner` takes a while to take up new code on USR2, and `dunce` never does).
require "socket"

port, milliseconds, flaw = ARGV
seconds = milliseconds.to_i / 1_000.0
count = 0
lock = Mutex.new
# Where tests find who is left.
here = -> { File.write(File.join(__dir__, "pids", Process.pid.to_s), flaw.to_s) }
here.call
trap("TERM") { exit!(0) }
release = File.read(ENV.fetch("LAB_RELEASE"))
trap("USR2") do
  Thread.new { sleep 0.2 and release = File.read(ENV.fetch("LAB_RELEASE")) } if flaw == "learner"
end

answer = lambda do |path|
  number = lock.synchronize { count += 1 }
  exit!(3) if flaw == "mortal" && number > 100
  next [200, Process.pid.to_s] if path == "/pid"
  next [404, "no"] if path == "/nowhere"

  next [200, release] if path == "/release"

  sleep seconds
  next [200, %({"pid":#{Process.pid},"count":#{number},"ms":1.5})] if path == "/gc"

  [flaw == "liar" && (number % 3).zero? ? 503 : 200, "ok"]
end

server = TCPServer.new("127.0.0.1", port.to_i)
server.listen(512)
if flaw == "phoenix"
  # The first process never gets out of here; each worker goes on below.
  while (worker = fork)
    trap("TERM") do
      Process.kill("KILL", worker)
      exit!(0)
    end
    Process.wait(worker)
  end
  here.call
  trap("TERM") { exit!(0) }
end
loop do
  Thread.new(server.accept) do |client|
    client.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    while (line = client.gets)
      fields = []
      while (field = client.gets&.chomp) && !field.empty?
        fields << field.downcase
      end
      status, body = answer.call(line.split[1])
      last = fields.include?("connection: close")
      client.write("HTTP/1.1 #{status} Such\r\nContent-Length: #{body.bytesize}\r\n" \
                   "#{"Connection: close\r\n" if last}\r\n#{body}")
      break if last
    end
  rescue SystemCallError
    nil
  ensure
    client.close
  end
end
