# frozen_string_literal: true

# Says which release it is: what stood in the file `release` when it was loaded.
release = File.read("release").chomp

use Rack::Lint unless $PROGRAM_NAME.end_with?("rackup")
run(lambda do |env|
  case env["PATH_INFO"]
  when "/env"
    names = %w[SERVER_NAME SERVER_PORT]
    [200, { "content-type" => "text/plain" }, [env.values_at(*names).join(" ")]]
  when "/who"
    [200, { "content-type" => "text/plain" }, ["#{Process.uid} #{Process.gid} #{Dir.pwd}"]]
  when "/child"
    # What a program that the app starts has open, and is told.
    had = IO.popen(["sh", "-c", "ls -l /proc/$$/fd; env"], &:read)
    [200, { "content-type" => "text/plain" }, [had]]
  else
    [200, { "content-type" => "text/plain" }, ["release #{release}"]]
  end
end)
