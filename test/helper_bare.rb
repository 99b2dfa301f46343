# frozen_string_literal: true

require "fileutils"
require "open3"
require "helper"

module Helper
  # A root directory with Ruby in it, as it is installed here, and nothing else: no shell, no gems,
  # no /proc. Those who enter are nobody.
  class Bare
    # Of no user of the machine.
    USER = 54_321

    attr_reader :root

    # Only root may make one.
    def self.possible? = Process.euid.zero?

    def initialize
      @root = File.realpath(Dir.mktmpdir("oribi-bare"))
      File.chmod(0o755, @root)
      %w[dev tmp www].each { |name| Dir.mkdir(path(name)) }
      File.chmod(0o1777, path("tmp"))
      File.chown(USER, USER, path("www"))
      copy_ruby
      make_null
    end

    def path(name) = File.join(@root, name)

    # A file in the web server's folder.
    def write(name, text, mode = 0o644)
      path("www/#{name}").then do |file|
        File.binwrite(file, text)
        File.chmod(mode, file)
      end
    end

    # Runs a program of /www in there: what it wrote, what it wrote to its standard error, and its
    # exit status.
    def run(*words, env: {}, input: "")
      ins, outs, errors = Array.new(3) { IO.pipe(binmode: true) }
      pid = fork { enter(env, words, ins, outs, errors) }
      [ins[0], outs[1], errors[1]].each(&:close)
      readers = [outs, errors].map { |reader, _| Thread.new { reader.read } }
      feed(ins[1], input)
      texts = readers.map(&:value)
      [*texts, Process.wait2(pid).last.exitstatus]
    end

    # Those who live in there.
    def processes
      Helper.all_processes.select do |entry|
        File.readlink("/proc/#{entry.pid}/root") == @root
      rescue SystemCallError
        false
      end
    end

    # Ends all of them, and takes away what they and a test have left.
    def leave
      processes.each { |entry| Process.kill("KILL", entry.pid) }
      Helper.wait_until("nobody is in #{@root}") do
        processes.each { |entry| reap(entry.pid) }.empty?
      end
      FileUtils.rm_rf(%w[www tmp].flat_map { |name| Dir[path("#{name}/*")] })
    end

    def clean_up
      leave
    ensure
      FileUtils.remove_entry(@root)
    end

    private

    def enter(env, words, ins, outs, errors)
      [ins[0], outs[1], errors[1]].zip([$stdin, $stdout, $stderr]) { |io, to| to.reopen(io) }
      Dir.chroot(@root)
      Dir.chdir("/www")
      Process.groups = []
      Process::GID.change_privilege(USER)
      Process::UID.change_privilege(USER)
      exec({ "PATH" => "/usr/bin" }.merge(env), *words, unsetenv_others: true)
    ensure
      exit!(126)
    end

    def feed(io, input)
      io.write(input)
    rescue Errno::EPIPE
      nil
    ensure
      io.close
    end

    def reap(pid)
      Process.wait(pid, Process::WNOHANG)
    rescue Errno::ECHILD
      nil
    end

    def copy_ruby
      config = RbConfig::CONFIG
      folders = config.values_at("rubylibdir", "rubyarchdir").uniq
      gems = $LOADED_FEATURES.find { |file| file.end_with?("/rubygems.rb") }
      folders += [gems, gems.delete_suffix(".rb")] if gems
      folders.each { |folder| copy(folder) }
      libraries(Dir[File.join(config["rubyarchdir"], "**/*.so")]).each { |file| copy(file) }
      copy(RbConfig.ruby)
      File.symlink(RbConfig.ruby, path("usr/bin/ruby")) unless File.exist?(path("usr/bin/ruby"))
    end

    # What the kernel loads with Ruby and its extensions.
    def libraries(extensions)
      out, = Open3.capture2e("ldd", RbConfig.ruby, *extensions)
      out.scan(%r{(?:=> |^\t)(/\S+) \(0x}).flatten.uniq
    end

    def copy(from)
      to = path(from)
      return if File.exist?(to)

      FileUtils.mkdir_p(File.dirname(to))
      # Links are followed at the top, so that all of it is there.
      FileUtils.cp_r(File.realpath(from), to)
    end

    # A file where there may be no devices: it takes what it is given, too.
    def make_null
      null = path("dev/null")
      system("mknod", "-m", "666", null, "c", "1", "3", err: File::NULL)
      File.write(null, "")
    rescue SystemCallError
      FileUtils.rm_f(null)
      FileUtils.touch(null)
    ensure
      File.chmod(0o666, null)
    end
  end
end
