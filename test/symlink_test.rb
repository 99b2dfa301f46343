# frozen_string_literal: true

require "helper_case"

# Deploys that put a new release into place by a symlink.
class SymlinkTest < Helper::Case
  def setup
    @root = Dir.mktmpdir("oribi-releases")
    2.times do |index|
      release = File.join(@root, "releases", (index + 1).to_s)
      FileUtils.mkdir_p(release)
      File.write(File.join(release, "config.ru"), Helper::Case.source("deploy.ru"))
      File.write(File.join(release, "release"), (index + 1).to_s)
      # Bundler names it by the directory that the symlink leads to.
      File.write(File.join(release, "Gemfile"), "")
    end
    point_to(1)
  end

  def teardown
    super
    FileUtils.remove_entry(@root)
  end

  def point_to(release)
    fresh = File.join(@root, "fresh")
    File.symlink("releases/#{release}", fresh)
    File.rename(fresh, current)
  end

  def gemfile = File.join(@root, "releases/1/Gemfile")

  def current = File.join(@root, "current")

  # A shell is in `current` and starts the server there.
  def launch(how, *arguments, env: {})
    before = ["sh", "-c", 'cd "$0" && exec "$@"', current]
    env = { "BUNDLE_GEMFILE" => gemfile }.merge(env)
    words = ["--workers", "1", *arguments]
    @server = Helper::Server.new(how, *words, before: before, env: env).ready
  end

  def deploy
    assert_equal "release 1", get.body
    point_to(2)
    FileUtils.remove_entry(File.join(@root, "releases/1")) if block_given?
    server.signal("USR2")
    wait_for_log(/generation 2 serves/)
    assert_equal "release 2", get.body
    assert_equal File.join(@root, "releases/2"), get("/who").body.split.last
    mold = server.tree.find { |entry| entry.role == "mold" && entry.generation == 2 }
    variables = File.read("/proc/#{mold.pid}/environ").split("\0")
    assert_includes variables, "BUNDLE_GEMFILE=#{current}/Gemfile"
    assert_includes variables, "PWD=#{current}"
  end

  def test_the_directory_is_resolved_anew
    launch(:oribi)
    deploy
    # Back, by the same way.
    point_to(1)
    server.signal("USR2")
    wait_for_log(/generation 3 serves/)
    assert_equal "release 1", get.body
  end

  def test_so_it_is_under_rackup
    launch(:rackup)
    deploy
  end

  def test_the_release_it_was_started_from_may_be_gone
    launch(:oribi, "--access-log", "access")
    deploy { :gone }
    server.signal("USR1")
    log = File.join(@root, "releases/2/access")
    wait_until("the access log of the new release") do
      # The first may still be a line of the old one.
      get("/again")
      File.exist?(log) && File.read(log).include?("/again")
    end
  end

  def test_chdir_names_the_symlink
    @server = Helper::Server.new(:oribi, "--workers", "1", "--chdir", current,
                                 env: { "BUNDLE_GEMFILE" => gemfile }).ready
    deploy
  end

  def test_a_directory_that_is_gone_leaves_the_old_code_serving
    launch(:oribi)
    File.unlink(current)
    server.signal("USR2")
    wait_for_log(/generation 2 did not boot: cannot run .* in #{current}: No such file/)
    assert_equal "release 1", get.body
  end
end
