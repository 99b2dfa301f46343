# frozen_string_literal: true

require "helper_case"
require "helper_load"

# Files whose change means a restart.
class WatchTest < Helper::Case
  APP = <<~'RUBY'
    release = File.read(File.join(__dir__, "release"))
    raise "no such release" if release.empty?

    use Rack::Lint
    run ->(_env) { [200, { "content-type" => "text/plain" }, ["release #{release}"]] }
  RUBY

  def launch(*watched, workers: 2)
    words = watched.flat_map { |one| ["--watch", one] }
    @server = Helper::Server.new(:oribi, "-w", workers.to_s, *words,
                                 app: APP, files: { "release" => "1" }).ready
  end

  def path(name) = File.join(server.directory, name)

  def write(name, text) = File.write(path(name), text)

  # The way deploys do it: another file in its place.
  def replace(name, text)
    write("#{name}.new", text)
    File.rename(path("#{name}.new"), path(name))
  end

  def wait_for(generation)
    wait_for_log(/generation #{generation} serves/)
  end

  def generations = server.log.scan(/generation (\d+) boots/).flatten.map(&:to_i)

  def test_a_file_that_changes_loses_no_request
    launch("release")
    load = Helper::Load.new(-> { Helper::Client.tcp(port) })
    load.more(50)
    write("release", "2")
    wait_for(2)
    replace("release", "3")
    wait_for(3)
    load.more(50)
    load.stop
    assert_empty load.failures
    assert_equal ["release 1", "release 2", "release 3"], load.bodies.sort
    assert_equal [2, 3], generations
    assert_match(%r{watch: #{server.directory}/release has changed}, server.log)
  end

  def test_a_pattern_finds_what_comes_and_goes
    launch("lib/**/*.rb")
    FileUtils.mkdir_p(path("lib/deep"))
    write("lib/deep/new.rb", "")
    wait_for(2)
    write("lib/deep/readme.txt", "")
    File.unlink(path("lib/deep/new.rb"))
    wait_for(3)
    assert_equal [2, 3], generations
  end

  def test_what_does_not_boot_is_tried_again_at_the_next_change
    launch("release", workers: 1)
    write("release", "")
    wait_for_log(/generation 2 did not boot: .*no such release/)
    assert_equal "release 1", get.body
    # Until then it is left alone.
    sleep 0.7
    assert_equal [2], generations
    write("release", "3")
    wait_for(3)
    assert_equal "release 3", get.body
  end

  # One deploy writes many files, one after another: one restart.
  def test_a_restart_waits_until_the_files_are_still
    launch("release", "*.part", workers: 1)
    15.times do |index|
      write("#{index}.part", "")
      sleep 0.05
    end
    write("release", "2")
    wait_for(2)
    assert_equal "release 2", get.body
    assert_equal [2], generations
  end

  def test_a_change_while_the_app_loads_is_not_missed
    slow = "sleep 0.6 if File.exist?(File.join(__dir__, 'slow'))\n"
    @server = Helper::Server.new(:oribi, "-w", "1", "--watch", "./release",
                                 app: slow + APP, files: { "release" => "1", "slow" => "" })
    wait_until("it loads") { server.find("mold").any? }
    sleep 0.3
    write("release", "2")
    server.ready
    File.unlink(path("slow"))
    wait_for(2)
    assert_equal "release 2", get.body
  end

  # A symlink that is turned is a change too.
  def test_what_a_name_leads_to
    launch("current", workers: 1)
    File.symlink("release", path("current"))
    wait_for(2)
    write("other", "other")
    File.symlink("other", path("fresh"))
    File.rename(path("fresh"), path("current"))
    wait_for(3)
  end

  def test_so_it_is_under_rackup
    @server = Helper::Server.new(:rackup, "--workers=1", "--watch=release",
                                 app: APP, files: { "release" => "1" }).ready
    write("release", "2")
    wait_for(2)
    assert_equal "release 2", get.body
  end

  def test_a_pattern_that_is_none_is_refused
    output = IO.popen([RbConfig.ruby, File.join(Helper::ROOT, "exe/oribi"), "--watch", "lib/***",
                       { err: %i[child out] }], &:read)
    assert_match(%r{\Aoribi: watch: "lib/\*\*\*" is no pattern: }, output)
  end
end
