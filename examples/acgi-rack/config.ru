# frozen_string_literal: true

# A Rack app behind an index.cgi. It needs nothing but Ruby: where Rack is not installed, acgi.rb
# knows as much of `use`, `run` and `map` as this takes.
require "cgi/escape"

# Says how long an app took, in a header that browsers show.
class Timing
  def initialize(app)
    @app = app
  end

  def call(env)
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    status, headers, body = @app.call(env)
    spent = (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began) * 1000
    [status, headers.merge("server-timing" => format("app;dur=%.3f", spent)), body]
  end
end

use Timing

map "/env" do
  run(lambda do |env|
    lines = env.sort.map { |name, value| "#{name}: #{value.is_a?(String) ? value : value.class}\n" }
    [200, { "content-type" => "text/plain; charset=utf-8" }, lines]
  end)
end

count = 0
run(lambda do |env|
  count += 1
  home = CGI.escapeHTML(env["SCRIPT_NAME"])
  [200, { "content-type" => "text/html; charset=utf-8" }, [<<~HTML]]
    <!doctype html>
    <title>Rack behind CGI</title>
    <p>Process #{Process.pid} has answered #{count} times.
    <p><a href="#{home}/">Again</a>, or <a href="#{home}/env">what a request brings</a>.
  HTML
end)
