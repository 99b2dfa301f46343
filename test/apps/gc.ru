# frozen_string_literal: false

# An app that makes garbage, and says what the collector did while it did.
#
#   /OBJECTS   about so many objects, dead when the reply is out
#   /gate      an object whose end waits at the test's gate: whoever collects it stands there
#   /hold      stands at that gate itself
#   /disable   switches the collector off

# As much as an app of a framework holds: the heap's size follows it.
LIVE = Array.new(60_000) { |nr| [nr.to_s] }

finalized = lambda do
  waited = false
  finalizer = proc do
    next if waited

    waited = true
    File.read("gate")
  end
  # In a thread, whose stack is gone when they are looked for.
  Thread.new { 20.times { ObjectSpace.define_finalizer(Object.new, finalizer) } }.join
end

app = lambda do |env|
  case env["PATH_INFO"]
  when "/gate" then finalized.call
  when "/hold" then File.read("gate")
  when "/disable" then GC.disable
  else
    count = env["PATH_INFO"].delete("/").to_i
    Array.new(count / 4) { |nr| { "id" => nr, "name" => "name #{nr}", "tags" => [nr] } }
  end
  [200, { "content-type" => "text/plain" }, [""]]
end

# Counted around all of it, so that hardly anything is allocated in between. In development rackup
# adds a Lint by itself, and two do not bear each other.
linted = $PROGRAM_NAME.end_with?("rackup") ? app : Rack::Lint.new(app)
run(lambda do |env|
  before = GC.count
  status, headers, body = linted.call(env)
  body.each(&:itself)
  body.close if body.respond_to?(:close)
  after = GC.count
  [status, { "content-type" => headers["content-type"] }, ["#{Process.pid} #{before} #{after}"]]
end)
