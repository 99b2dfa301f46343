# frozen_string_literal: false

# The ceiling of a worker: what Ruby alone needs for a request, on one core.
#
#   ruby call_loop.rb APP.ru [CALLS]
#
# Each call builds the env a server hands out, calls the app and writes head and body into one
# String, as a server without any I/O would. Prints one line of JSON, under the names by which the
# lab compares: microseconds of CPU for all of it, and for each part alone. The best of five turns
# counts, because a ceiling is what the machine can do and not what disturbed it.
require "rack"
require "stringio"
require "json"

NO_BODY = StringIO.new("".b)

def env
  {
    "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/".dup,
    "QUERY_STRING" => "".dup, "SERVER_NAME" => "127.0.0.1", "SERVER_PORT" => "9292",
    "SERVER_PROTOCOL" => "HTTP/1.1", "HTTP_VERSION" => "HTTP/1.1", "REMOTE_ADDR" => "127.0.0.1",
    "REMOTE_PORT" => "40000".dup, "HTTP_HOST" => "127.0.0.1:9292".dup,
    "HTTP_USER_AGENT" => "loop/1".dup, "HTTP_ACCEPT" => "*/*".dup, "REQUEST_URI" => "/".dup,
    "SERVER_SOFTWARE" => "loop", "rack.version" => [1, 3], "rack.input" => NO_BODY,
    "rack.errors" => $stderr, "rack.multithread" => false, "rack.multiprocess" => true,
    "rack.run_once" => false, "rack.url_scheme" => "http", "rack.hijack?" => false
  }
end

def answer(app)
  _status, headers, body = app.call(env)
  out = +"HTTP/1.1 200 OK\r\n"
  headers.each { |name, value| out << name << ": " << value << "\r\n" }
  out << "\r\n"
  body.each { |part| out << part }
  body.close if body.respond_to?(:close)
  out
end

def cpu
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end

# Microseconds of CPU for one turn of the block.
def micros(calls)
  GC.start
  start = cpu
  i = 0
  while i < calls
    yield
    i += 1
  end
  (cpu - start) * 1_000_000 / calls
end

app, = Rack::Builder.parse_file(ARGV.fetch(0))
calls = Integer(ARGV[1] || 50_000)
once = env
turns = Array.new(5) do
  { "load.cpu_us" => micros(calls) { answer(app) },
    "load.cpu_us.call" => micros(calls) { app.call(once) },
    "load.cpu_us.env" => micros(calls) { env } }
end
puts JSON.generate(turns.first.keys.to_h { |part| [part, turns.map { |t| t[part] }.min.round(3)] })
