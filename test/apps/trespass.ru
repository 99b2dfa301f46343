# frozen_string_literal: true

# An app that tries what it may not: `/NAME?ARGUMENT` says what has become of it.

require "rack/lint"
require "tempfile"
require "tmpdir"
require "uri"

# Threads, which count as processes do: where no more processes can be, Ruby tries for ever.
def multiply
  threads = []
  loop { threads << Thread.new { sleep } }
rescue ThreadError => error
  "#{error.class} after #{threads.size}"
end

def open_all
  files = []
  loop { files << File.open(__FILE__) }
rescue SystemCallError => error
  "#{error.class} after #{files.size}"
ensure
  files.each(&:close)
end

def write_much
  Tempfile.create do |file|
    loop { file.syswrite("x" * 65_536) }
  rescue SystemCallError => error
    "#{error.class} after #{file.size}"
  end
end

TRIES = {
  "ids" => ->(_) { [Process.uid, Process.euid, Process.gid, *Process.groups.sort].join(" ") },
  "read" => ->(_) { File.read("/etc/shadow") },
  "write" => ->(_) { File.write("/etc/oribi-trespass", "") },
  "deface" => ->(_) { File.write(__FILE__, "", mode: "a") },
  "setuid" => ->(_) { Process::Sys.setuid(0) },
  "setresuid" => ->(_) { Process::Sys.setresuid(-1, 0, -1) },
  "setgid" => ->(_) { Process::Sys.setresgid(0, 0, 0) },
  "setgroups" => ->(_) { Process.groups = [0] },
  "run" => ->(program) { IO.popen([program, "-u"], &:read).to_s.strip },
  "kill" => ->(pid) { Process.kill("KILL", pid.to_i) },
  "trace" => ->(pid) { File.open("/proc/#{pid}/mem", "r+") },
  "haste" => ->(_) { Process.setpriority(Process::PRIO_PROCESS, 0, -5) },
  "unlimit" => ->(_) { Process.setrlimit(:NOFILE, 65_536) },
  "nice" => ->(_) { Process.getpriority(Process::PRIO_PROCESS, 0).to_s },
  "memory" => ->(_) { ("x" * (1 << 30)).size.to_s },
  "processes" => ->(_) { multiply },
  "files" => ->(_) { open_all },
  "file_size" => ->(_) { write_much },
  "processor" => ->(_) { loop { Process.pid } }
}.freeze

use Rack::Lint
run(lambda do |env|
  # Ruby 3.3 is no longer itself once a thread could not begin.
  if env["PATH_INFO"] == "/processes"
    env["rack.after_reply"] << -> { Process.kill("KILL", Process.pid) }
  end
  what = begin
    TRIES.fetch(env["PATH_INFO"].delete_prefix("/")).call(env["QUERY_STRING"])
  rescue SystemCallError, NoMemoryError => error
    error.class.name
  end
  [200, { "content-type" => "text/plain", "x-pid" => Process.pid.to_s }, [what.to_s]]
end)
