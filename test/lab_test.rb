# frozen_string_literal: true

require "helper"
require "fileutils"
require "json"
require "open3"
require "rbconfig"

# The command `oribi lab`, as people meet it. What the lab computes is tested beside it.
class LabTest < Minitest::Test
  include Helper

  MANIFEST = File.join(ROOT, "lab/Cargo.toml")
  BUILT = File.join(ENV.fetch("CARGO_TARGET_DIR", File.join(ROOT, "lab/target")), "debug/oribi-lab")
  # A scenario takes its time, and so do servers that start on a busy machine.
  LONG = 120

  TINY = <<~TOML
    name = "tiny"
    title = "As short as can be"
    app = "apps/hello.ru"
    workers = 1
    servers = ["oribi", "puma"]
    listen = "unix"
    warmup_seconds = 0.1
    show = ["load.rps", "load.failed"]
    [[phase]]
    name = "load"
    kind = "closed"
    connections = 2
    seconds = 0.5
    [[target]]
    label = "answers"
    metric = "load.rps"
    of = "oribi"
    at_least = %d
  TOML

  # Nothing to do when it is fresh, and never an old one.
  def self.binary
    @binary ||= begin
      built = system("cargo", "build", "--locked", "--quiet", "--manifest-path", MANIFEST)
      built ? BUILT : raise("the lab does not build")
    end
  end

  def setup
    @directory = Dir.mktmpdir("oribi-lab-test")
  end

  def teardown
    FileUtils.remove_entry(@directory)
  end

  def path(name) = File.join(@directory, name)

  def write(name, text, mode: 0o644)
    FileUtils.mkdir_p(File.dirname(path(name)))
    File.write(path(name), text, perm: mode)
  end

  # Both streams together, and the exit status.
  def lab(*arguments, env: { "ORIBI_LAB_BINARY" => self.class.binary }, root: ROOT)
    command = [RbConfig.ruby, File.join(root, "exe/oribi"), "lab", *arguments]
    Open3.popen2e(env, *command, chdir: @directory, pgroup: true) do |_, out, waiter|
      reader = Thread.new { out.read }
      unless waiter.join(LONG)
        Process.kill("KILL", -waiter.pid)
        flunk "#{command.join(' ')} does not end; it said: #{reader.value}"
      end
      [reader.value, waiter.value.exitstatus]
    end
  end

  # Quick ones do not wait for the connections of earlier tests to be forgotten.
  def run_tiny(*options)
    lab("run", path("tiny.toml"), "--quick", "--out", path("runs"), *options)
  end

  def test_help_and_list
    out, code = lab("--help")
    assert_equal 0, code
    assert_match(/^Usage: oribi lab /, out)
    out, code = lab("list")
    assert_equal 0, code
    Dir[File.join(ROOT, "lab/scenarios/*.toml")].each do |file|
      assert_match(/^\W*#{File.basename(file, '.toml')}\b/, out)
    end
    out, code = lab("run", "helo")
    assert_equal 2, code
    assert_match(/helo.*hello/m, out)
  end

  def test_a_run_leaves_its_report_and_says_whether_targets_were_kept
    write("tiny.toml", format(TINY, 1))
    out, code = run_tiny("--name", "first")
    assert_equal 0, code, out
    assert_match(/oribi.*puma/m, out)
    files = Dir.children(path("runs/first"))
    assert_empty %w[run.json cells.csv report.html] - files
    run = JSON.parse(File.read(path("runs/first/run.json")))
    cells = run["cases"][0]["rounds"][0]
    assert_equal %w[oribi puma], cells.map { |cell| cell["contender"] }.sort
    cells.each { |cell| assert_operator cell["metrics"]["load.rps"], :>, 0, cell.inspect }
    # It is this server that took part.
    command = run["cases"][0]["contenders"].find { |one| one["name"] == "oribi" }["commands"][0]
    assert_match(/oribi.* -w 1 /, command)
  end

  def test_a_missed_target_shows_in_the_exit_status
    write("tiny.toml", format(TINY, 1_000_000_000))
    out, code = run_tiny("--servers", "oribi")
    assert_equal 1, code, out
    assert_match(/missed/, out)
  end

  def test_a_binary_that_is_not_there
    out, code = lab("list", env: { "ORIBI_LAB_BINARY" => path("none") })
    message = "oribi lab: #{path('none')} is not there: ORIBI_LAB_BINARY names it\n"
    assert_equal [message, 1], [out, code]
    out, code = lab("list", env: { "ORIBI_LAB_BINARY" => nil, "CARGO_TARGET_DIR" => @directory })
    assert_equal 1, code
    assert_match(/\Aoribi lab: .* is not there: run `make lab-build` in #{ROOT}$/, out)
  end

  def test_a_gem_builds_it_once
    env = gem_without_a_lab
    out, code = lab("list", env: env, root: @directory)
    assert_equal 0, code, out
    assert_equal ["oribi lab: building it, once; this takes a minute or two", "cargo",
                  "#{path('lab')} list"], out.lines(chomp: true)
    assert_equal "#{path('lab')} list\n", lab("list", env: env, root: @directory).first
    write("lab/src/main.rs", "fn main() { /* of another version */ }")
    assert_match(/building it/, lab("list", env: env, root: @directory).first)
    write("bin/cargo", "#!/bin/sh\nexit 1\n", mode: 0o755)
    write("lab/src/main.rs", "fn main() { /* that does not build */ }")
    out, code = lab("list", env: env, root: @directory)
    assert_equal 1, code
    assert_match(/^oribi lab: it does not build/, out)
  end

  # An installed gem has no Makefile; its cargo is a stub.
  def gem_without_a_lab
    FileUtils.cp_r([File.join(ROOT, "exe"), LIB], @directory)
    write("lab/Cargo.toml", "")
    write("lab/src/main.rs", "fn main() {}")
    write("bin/cargo", <<~'SH', mode: 0o755)
      #!/bin/sh
      while [ "$1" != --target-dir ]; do shift; done
      echo cargo
      mkdir "$2/release" && cd "$2/release" || exit
      printf '#!/bin/sh\necho "$ORIBI_LAB_HOME" "$@"\n' >oribi-lab && chmod +x oribi-lab
    SH
    { "ORIBI_LAB_BINARY" => nil, "XDG_CACHE_HOME" => path("cache"),
      "PATH" => "#{path('bin')}:#{ENV.fetch('PATH')}" }
  end
end
