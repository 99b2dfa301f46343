# frozen_string_literal: true

# Generation 2 of `rackup` is `rackup` once more, and ends before it knows of us when its app does
# not load. Ruby loads this file before anything else (RUBYOPT), so that the supervisor is told why:
# its log has the backtrace, but whoever waits for the restart has only the answer.
#
# Programs that the app runs are none of its business.
if (original = ENV.delete("ORIBI_RUBYOPT"))
  ENV["RUBYOPT"] = original.empty? ? nil : original
  pid = Process.pid
  if ENV.delete("ORIBI_BOOT") == pid.to_s
    at_exit do
      error = $! # rubocop:disable Style/SpecialGlobalVars
      # Deleted by those who come to join.
      socket = ENV.fetch("ORIBI_MOLD", nil)
      next if socket.nil? || Process.pid != pid
      next if error.nil? || (error.is_a?(SystemExit) && error.success?)

      require "socket"
      require_relative "errors"
      reason = Oribi::Report.line(error).tr("\n", " ")[0, 2000]
      UNIXSocket.for_fd(Integer(socket)).sendmsg("failed #{reason}", 0)
    rescue SystemCallError
      # Nobody is there to be told.
    end
  end
end
