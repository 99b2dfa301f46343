# frozen_string_literal: true

require "helper_server"
require "digest"
require "open3"

# What people get who install the gem: built from its own sources, in a place of its own.
class GemTest < Minitest::Test
  include Helper

  PLACE = File.join(ENV.fetch("CARGO_TARGET_DIR", File.join(ROOT, "target")), "gem")
  HOME = File.join(PLACE, "home")

  def test_the_installed_gem_serves
    FileUtils.mkdir_p(PLACE)
    install unless File.exist?(stamp) && File.read(stamp) == digest
    assert_match(/\Aoribi \d/, run_command(File.join(HOME, "bin/oribi"), "--version", chdir: PLACE))
    installed = Dir[File.join(HOME, "gems/oribi-*")].first
    assert_empty Dir[File.join(installed, "**/target")], "nothing of the build is left"
    executable = File.join(HOME, "bin/oribi")
    server = Server.new(:gem, "-w", "1", executable: executable, env: environment).ready
    assert_match(/\A\d+ /, server.get)
    assert_equal 1, server.workers(1).size
    server.signal("TERM")
    assert_equal 0, server.wait
    check_the_shim(executable, server.directory)
  ensure
    server&.clean_up
  end

  # It is built with the rest, and finds its way to this gem.
  def check_the_shim(executable, app)
    run_command(executable, "cgi", "install", app, chdir: PLACE)
    Dir.mkdir(run = File.join(app, "run"), 0o700)
    env = { "ORIBI_RUNTIME_DIR" => run, "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "/index.cgi",
            "SERVER_PROTOCOL" => "HTTP/1.1", "SERVER_NAME" => "test", "SERVER_PORT" => "80" }
    out, = Open3.capture2e(env, File.join(app, "index.cgi"), unsetenv_others: true)
    assert_match(/\AStatus: 200 OK\r\n.*\r\n\r\n\d+ /m, out)
  ensure
    env = environment.merge("ORIBI_RUNTIME_DIR" => run)
    Open3.capture2e(env, executable, "cgi", "stop", app)
  end

  # The lab is built from these on the user's machine, when it is first asked for.
  def test_the_gem_carries_the_lab
    lab = Dir.glob("lab/**/*", base: ROOT).select { |file| File.file?(File.join(ROOT, file)) }
    lab.reject! { |file| file.match?(%r{\Alab/(target|tests|load/tests|load/examples)/}) }
    assert_includes lab, "lab/src/main.rs"
    assert_empty lab - files
  end

  # The build takes minutes; it is made again when any file of it has changed. The lab's are none.
  def install
    package = File.join(PLACE, "oribi.gem")
    FileUtils.rm_rf([HOME, stamp])
    run_command("gem", "build", "oribi.gemspec", "--output", package, chdir: ROOT)
    run_command("gem", "install", "--local", "--no-document", package, chdir: PLACE)
    File.write(stamp, digest)
  end

  def stamp = File.join(PLACE, "stamp")

  def digest
    built = files.reject { |file| file.start_with?("lab/") }
    sums = built.map { |file| "#{file} #{Digest::SHA256.file(File.join(ROOT, file))}\n" }
    Digest::SHA256.hexdigest(sums.join + RUBY_VERSION)
  end

  def files = Dir.chdir(ROOT) { Gem::Specification.load("oribi.gemspec").files.sort }

  # Nothing of this checkout, neither library nor binary.
  def environment
    { "GEM_HOME" => HOME, "RUBYLIB" => nil, "ORIBI_BINARY" => nil, "RUBYOPT" => nil,
      "CARGO_TARGET_DIR" => File.join(PLACE, "cargo"),
      # What is shown is that it builds and runs, not how fast it is.
      "CARGO_PROFILE_RELEASE_LTO" => "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS" => "16" }
  end

  def run_command(*words, chdir:)
    out, status = Open3.capture2e(environment, *words, chdir: chdir)
    assert status.success?, "#{words.join(' ')}: #{out}"
    out
  end
end
