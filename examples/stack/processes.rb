# frozen_string_literal: true

require_relative "place"

module Stack
  # The processes of a stack, each known by a pid file `PREFIX-PORT.pid` in the log folder. The
  # file holds the pid and when that process began, so that a later one with the same pid is left
  # alone.
  class Processes
    # How long one may take to end before it is killed, in seconds; Oribi gives its requests 30.
    PATIENCE = 35.0

    # One process as its pid file tells of it.
    Entry = Struct.new(:name, :pid, :start, :file) do
      def alive? = !start.nil? && Processes.start_of(pid) == start

      def kind = name.start_with?("oribi") ? "vms" : "httpd"
    end

    # When a process began, in ticks since boot; nil once it is gone, or dead and only unreaped.
    def self.start_of(pid)
      # The name is in parentheses and may hold anything; what follows it does not.
      fields = File.read("/proc/#{pid}/stat").rpartition(")").last.split
      fields[19] unless fields[0] == "Z"
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end

    def initialize(place)
      @place = place
    end

    # Starts a process that outlives this one; what it says goes to the file `out`.
    def run(name, out, *command, env: {}, input: File::NULL)
      path = @place.file(out)
      options = { in: input, out: [path, "w"], err: %i[child out], pgroup: true }
      pid = Process.spawn(env, *@place.as_user(*command), options)
      start = Processes.start_of(pid)
      File.write(@place.file("#{name}.pid"), "#{pid} #{start}\n")
      Entry.new(name, pid, start, path)
    end

    # Those that run, or have been left for dead.
    def all
      files = Dir.glob(@place.file("*.pid")).map do |file|
        pid, start = File.read(file).split
        Entry.new(File.basename(file, ".pid"), pid.to_i, start, file)
      end
      files + shims_servers
    end

    def running = all.select(&:alive?)

    # Ends those of a kind ("all", "vms", "httpd"), web servers first: they would complain about
    # servers that are gone.
    def stop(kind = "all")
      unless %w[all vms httpd].include?(kind)
        raise Trouble, "WHAT=#{kind}: there is all, vms (Oribi), httpd (the web server)"
      end

      chosen = all.select { |entry| kind == "all" || entry.kind == kind }
      chosen.partition { |entry| entry.kind == "httpd" }.each { |some| end_all(some) }
      chosen
    end

    private

    # Servers that the CGI program has started. They hold a lock and write their pid into it.
    def shims_servers
      Dir.glob(@place.file("run", "acgi-*", "server.lock")).filter_map do |file|
        held = File.open(file) { |lock| !lock.flock(File::LOCK_SH | File::LOCK_NB) }
        pid = File.read(file).to_i
        name = "oribi-#{File.basename(File.dirname(file))}"
        Entry.new(name, pid, Processes.start_of(pid)) if held
      rescue Errno::ENOENT
        nil
      end
    end

    def end_all(entries)
      entries.each { |entry| signal("TERM", entry.pid) if entry.alive? }
      deadline = Stack.now + PATIENCE
      sleep 0.01 while entries.any?(&:alive?) && Stack.now < deadline
      entries.each do |entry|
        signal("KILL", entry.pid) if entry.alive?
        # What its leader has left behind: fcgiwrap's children.
        signal("TERM", -entry.pid) if entry.file
        File.delete(entry.file) if entry.file
      end
    end

    def signal(name, pid)
      Process.kill(name, pid)
    rescue Errno::ESRCH
      nil
    end
  end
end
