# frozen_string_literal: true

require "etc"
require "helper_case"

# `user`, the limits and `weight` of a mount: an app that tries what it may not, beside one that
# must not notice.
class UserTest < Helper::Case
  TIGHT = Etc.getpwnam("games")
  OTHER = Etc.getpwnam("daemon")
  FILES = 100
  PROCESSES = 24
  CONFIG = <<~RUBY.freeze
    workers 1
    mount "/tight", rackup: "tight.ru", user: "#{TIGHT.name}", weight: 50,
      limit_memory: "256m", limit_files: #{FILES}, limit_processes: #{PROCESSES},
      limit_file_size: "1m", limit_cpu: 1
    mount "/other", rackup: "config.ru", user: "#{OTHER.name}", weight: 200
  RUBY
  FILES_OF_IT = { "release" => "1", "oribi.rb" => CONFIG,
                  "tight.ru" => Helper::Case.source("trespass.ru") }.freeze

  def self.shared
    app = Helper::Case.source("deploy.ru")
    @shared ||= Helper::Server.new(:oribi, "--config", "oribi.rb", open: true, app: app,
                                                                   files: FILES_OF_IT).ready
  end

  # The app is one that keeps its interpreter: whatever it has tried, the next request finds it.
  def try(name, argument = "")
    answer = get("/tight/#{name}?#{argument}")
    assert_equal 200, answer.status, "#{name}: #{answer.body} #{server.log}"
    answer.body
  end

  def other = get("/other/who")

  def worker_of(mount) = server.one("worker", title: "oribi: worker 1 gen 1 #{mount}")

  def nice(pid) = File.read("/proc/#{pid}/stat").rpartition(")").last.split[16].to_i

  if Helper.can_be_another_user?
    def setup
      @before = other.body
    end

    # Whatever was tried.
    def teardown
      assert_equal @before, other.body, "the other mount's worker is the same"
      assert_equal "#{TIGHT.uid} #{TIGHT.uid}", try("ids")[/\A\d+ \d+/]
      super
    end

    def test_it_is_who_it_is_to_be_and_stays_it
      groups = `id -G #{TIGHT.name}`.split.sort_by(&:to_i)
      assert_equal [TIGHT.uid, TIGHT.uid, TIGHT.gid, *groups].join(" "), try("ids")
      %w[setuid setresuid setgid setgroups].each { |name| assert_equal "Errno::EPERM", try(name) }
    end

    def test_what_is_roots_or_anothers_is_out_of_its_reach
      %w[read write deface].each { |name| assert_equal "Errno::EACCES", try(name), name }
      [worker_of("other"), server.one("front"), server.one("supervisor")].each do |entry|
        assert_equal "Errno::EPERM", try("kill", entry.pid), entry.title
        assert_equal "Errno::EACCES", try("trace", entry.pid), entry.title
      end
    end

    def test_no_program_leads_back
      id = File.join(server.directory, "id")
      FileUtils.cp("/usr/bin/id", id)
      FileUtils.chmod(0o4755, id)
      assert_equal TIGHT.uid.to_s, try("run", id)
    end

    def test_limits_hold
      assert_equal "NoMemoryError", try("memory")
      assert_equal "Errno::EPERM", try("unlimit")
      assert_equal "Errno::EFBIG after #{1 << 20}", try("file_size")
      { "files" => FILES, "processes" => PROCESSES }.each do |name, most|
        said = try(name)
        assert_match(/\A(Errno::EMFILE|ThreadError) after/, said)
        assert_operator said[/\d+/].to_i, :<, most, name
      end
    end

    def test_a_worker_that_has_had_its_processor_time_is_replaced
      answer = get("/tight/processor")
      assert_equal 502, answer.status
      wait_for_log(/worker 1 gen 1 .*ended: signal #{Signal.list.fetch('XCPU')}/)
    end

    # 100 is 0, and one for each factor of 1.25: 50 is 3, 200 is -3. From the server's own.
    def test_weights_are_nice_values
      own = nice(server.pid)
      [["tight", 3], ["other", -3]].each do |mount, step|
        %w[mold worker].each do |role|
          title = role == "mold" ? "oribi: mold gen 1 #{mount}" : "oribi: worker 1 gen 1 #{mount}"
          assert_equal own + step, nice(server.one(role, title: title).pid), title
        end
      end
      assert_equal "Errno::EACCES", try("haste")
    end
  end

  if Process.uid.zero?
    # Somebody who is not root.
    def refused(*arguments)
      IO.popen([Oribi::Binary.environment, "setpriv", "--reuid=#{OTHER.uid}", "--clear-groups",
                Oribi::Binary.path, *arguments, "--chdir", "/",
                File.join(Helper::ROOT, "test/apps/deploy.ru"), { err: %i[child out] }], &:read)
    end

    def test_what_only_root_can_give_is_refused_to_others
      assert_match(/\Aoribi: .*user: only root can run workers as somebody else/,
                   refused("--user", TIGHT.name))
      assert_match(/\Aoribi: .*weight: 101 is more than usual, which only root can give: start/,
                   refused("--weight", "101"))
    end
  end

  def test_limits_that_could_not_hold_are_refused
    said = lambda do |*arguments|
      IO.popen([Oribi::Binary.environment, Oribi::Binary.path, *arguments, "--chdir", "/",
                File.join(Helper::ROOT, "test/apps/deploy.ru"), { err: %i[child out] }], &:read)
    end
    assert_match(/limit_files: 20 are too few .*at least 67/,
                 said.call("--workers=1", "--limit-files=20"))
    return unless Process.uid.zero?

    assert_match(/limit_processes: root has no such limit: name a user too/,
                 said.call("--limit-processes=20"))
  end
end
