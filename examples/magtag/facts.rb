# frozen_string_literal: true

require "etc"

module MagTag
  # What /info and /debug show.
  class Facts
    SECRET = /cookie|authori[sz]ation|session|secret|token|passw|csrf|api.?key/i
    HIDDEN = "(hidden)"
    LONGEST = 200

    def initialize
      @started = Time.now
      @mine = Process.pid
      @answered = 0
      @turn = Mutex.new
    end

    # Counts per process: after a fork the count starts anew.
    def count
      @turn.synchronize do
        @answered = 0 unless @mine == Process.pid
        @mine = Process.pid
        @answered += 1
      end
    end

    def info(env)
      {
        "Server" => server(env),
        "Process" => process,
        "This request" => request(env),
        "Software" => software
      }
    end

    # The env as a person may see it: secrets hidden, objects by their class.
    def debug(env)
      env.sort.to_h { |key, value| [key, SECRET.match?(key) ? HIDDEN : shown(value)] }
    end

    private

    def server(env)
      {
        "software" => env["SERVER_SOFTWARE"] || "(it does not say)",
        "protocol" => env["SERVER_PROTOCOL"] || env["HTTP_VERSION"] || "(it does not say)",
        "several threads" => said(env["rack.multithread"]),
        "several processes" => said(env["rack.multiprocess"]),
        "hijack" => said(env["rack.hijack?"]),
        "mounted at" => env["SCRIPT_NAME"].empty? ? "/" : env["SCRIPT_NAME"]
      }
    end

    def process
      {
        "pid" => Process.pid,
        "parent" => Process.ppid,
        "title" => title,
        "pages answered here" => @answered,
        "application loaded" => @started.strftime("%F %T %z"),
        "resident memory" => memory,
        "processors" => Etc.nprocessors
      }
    end

    def request(env)
      waited = env["oribi.queue_time"]
      {
        "waited in the queue" => waited ? format("%.3f ms", waited * 1_000) : "(not told)",
        "client" => env["REMOTE_ADDR"] || "(not told)",
        "scheme" => env["rack.url_scheme"]
      }
    end

    def software
      {
        "Ruby" => RUBY_DESCRIPTION,
        "Rack" => Rack.release,
        "Sinatra" => Sinatra::VERSION,
        "SQLite" => SQLite3::SQLITE_VERSION
      }
    end

    # As ps shows it; servers rename their processes.
    def title
      File.read("/proc/self/cmdline").tr("\0", " ").strip
    rescue SystemCallError
      $PROGRAM_NAME
    end

    def memory
      kilobytes = File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1]
      format("%.1f MB", kilobytes.to_i / 1024.0)
    rescue SystemCallError
      "(not told)"
    end

    def said(value)
      { true => "yes", false => "no" }.fetch(value, "(not told)")
    end

    def shown(value)
      case value
      when String then value.dup.force_encoding("UTF-8").scrub.slice(0, LONGEST)
      when Numeric, Symbol, true, false, nil then value.inspect
      when Array then "[#{value.map { |item| shown(item) }.join(", ")}]"[0, LONGEST]
      else "a #{value.class}"
      end
    end
  end
end
