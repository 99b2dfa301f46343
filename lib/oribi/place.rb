# frozen_string_literal: true

require "socket"

module Oribi
  # Where a process stands: in which directory, as whom, with which listeners somebody has given it.
  module Place
    START_SERVER = "SERVER_STARTER_PORT"
    # What start_server and systemd say to the process they have started, and to no other.
    VARIABLES = %w[SERVER_STARTER_PORT LISTEN_FDS LISTEN_PID LISTEN_FDNAMES
                   NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID].freeze
    # What limits are called here and there. Not the address space: the segment alone takes
    # gigabytes of that, and no memory.
    LIMITS = { "memory" => :DATA, "files" => :NOFILE, "processes" => :NPROC,
               "file_size" => :FSIZE }.freeze
    private_constant :START_SERVER, :VARIABLES, :LIMITS

    module_function

    # The present directory as the shell named it: `/srv/app/current`, and not the release this
    # symlink leads to today.
    def directory
      named = ENV.fetch("PWD", "")
      named.start_with?("/") && File.identical?(named, ".") ? named : Dir.pwd
    rescue SystemCallError
      Dir.pwd
    end

    # The numbers of the fds that start_server or systemd has opened for this process.
    def given_fds
      ports = ENV.fetch(START_SERVER, "")
      numbers = ports.scan(/=(\d+)(?:;|\z)/).flatten
      return numbers.map { |number| Integer(number, 10) } if numbers.any?
      return [] unless ENV["LISTEN_PID"] == Process.pid.to_s

      Array.new(ENV.fetch("LISTEN_FDS", "0").to_i) { |index| 3 + index }
    end

    # Closes them in this process. One that is open here no more is the supervisor's to report.
    def close(numbers)
      numbers.each do |number|
        Socket.for_fd(number).close
      rescue SystemCallError, ArgumentError
        next
      end
    end

    # For a process that serves the app: listeners are the supervisor's, and nothing that the app
    # starts is to hold them.
    def leave(numbers)
      close(numbers)
      VARIABLES.each { |name| ENV.delete(name) }
    end

    # What a mold that a calling process has forked takes on when it is told; one that the
    # supervisor has started has it already, and does it again to no effect. As in confine.rs.
    def confine(confinement)
      nice, rlimits, identity = confinement.values_at("nice", "rlimits", "identity")
      Process.setpriority(Process::PRIO_PROCESS, 0, nice) if nice
      # Beyond its limit of size a file cannot be written, and that is an error: nothing to die of.
      trap("XFSZ", "IGNORE") if rlimits&.fetch("file_size")&.positive?
      rlimits&.each { |name, limit| lower(LIMITS[name], limit) if LIMITS[name] && limit.positive? }
      return unless identity

      become(identity)
      Oribi::Native.no_new_privileges
    end

    # A worker's own: a mold has all its life for what it does. First the signal, then the end.
    def limit_cpu(seconds)
      Process.setrlimit(:CPU, seconds, seconds + 1) if seconds&.positive?
    end

    def lower(name, limit)
      limit = [limit, Process.getrlimit(name).last].min
      Process.setrlimit(name, limit, limit)
    end

    # Runs as another user from now on, for ever; `identity` is the supervisor's (privileges.rs).
    def become(identity)
      name, uid, gid, home = identity.values_at("name", "uid", "gid", "home")
      return if Process.uid == uid && Process.euid == uid

      Process.initgroups(name, gid)
      Process::GID.change_privilege(gid)
      Process::UID.change_privilege(uid)
      ENV.update("HOME" => home, "USER" => name, "LOGNAME" => name)
    end
  end
end
