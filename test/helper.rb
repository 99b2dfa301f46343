# frozen_string_literal: true

require "minitest"
require "net/http"
require "pathname"
require "socket"
require "tmpdir"
require "oribi/binary"
require "stringio"
require "oribi/native"

# What the tests from outside need: servers in their own directories, processes as the kernel
# shows them, and waiting for conditions.
module Helper
  ROOT = File.expand_path("..", __dir__)
  LIB = File.join(ROOT, "lib")
  # For what must come about on a busy machine.
  PATIENCE = 20.0

  # Orphans of a server that was killed become this process's children: none can hide.
  Oribi::Native.subreaper!

  # For a class of tests that share something: its `stop` is called after the last of them. What
  # would end with the whole run only, others took for what they have left.
  module StopsAfterwards
    # Minitest 6 has another name for it.
    all = Minitest::Runnable.respond_to?(:run_suite) ? :run_suite : :run
    define_method(all) do |*arguments|
      super(*arguments)
    ensure
      stop
    end
  end

  module_function

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # Looks until the block gives something; fails when it has not in time.
  def wait_until(what, within: PATIENCE)
    deadline = now + within
    loop do
      found = yield
      return found if found
      raise Minitest::Assertion, "#{what}: not within #{within} s" if now > deadline

      IO.select(nil, nil, nil, 0.005)
    end
  end

  # One process as /proc shows it; `start` tells it from a later one with the same pid.
  Entry = Struct.new(:pid, :parent, :state, :start, :title) do
    def role = title[/\Aoribi: (\w+)/, 1]

    def worker? = role == "worker"

    def generation = title[/ gen (\d+)/, 1].to_i

    def nr = title[/\Aoribi: worker (\d+)/, 1].to_i

    def same?(other) = !other.nil? && pid == other.pid && start == other.start
  end

  def process(pid)
    # The name is in parentheses and may hold anything; what follows it does not.
    fields = File.read("/proc/#{pid}/stat").rpartition(")").last.split
    title = File.read("/proc/#{pid}/cmdline").tr("\0", " ").strip
    Entry.new(pid, fields[1].to_i, fields[0], fields[19], title)
  rescue Errno::ENOENT, Errno::ESRCH
    nil
  end

  def all_processes
    Dir.children("/proc").grep(/\A\d+\z/).filter_map { |pid| process(pid.to_i) }
  end

  # A process and its descendants, parents first.
  def family(pid, all = all_processes)
    root = all.find { |entry| entry.pid == pid }
    return [] unless root

    [root] + all.select { |entry| entry.parent == pid }.flat_map { |entry| family(entry.pid, all) }
  end

  # Rack's release as a number: 2.2, 3.1.
  def rack = @rack ||= Float(Gem::Specification.find_by_name("rack").version.to_s[/\A\d+\.\d+/])

  # Whether a server may run as somebody else, who must be able to read all it needs.
  def can_be_another_user?
    Process.uid.zero? && [Oribi::Binary.path, __FILE__].all? do |path|
      path = File.realpath(path)
      File.world_readable?(path) && Pathname(path).dirname.ascend.all? do |directory|
        directory.stat.mode.anybits?(0o001)
      end
    end
  end

  def free_port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
end
