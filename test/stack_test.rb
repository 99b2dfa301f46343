# frozen_string_literal: true

require "helper"
require "open3"
require_relative "../examples/stack/proof"

# examples/stack: every web server before every door; a thousand clients at once through some cells,
# where `make stack-proof` takes its time for all of them.
class StackTest < Minitest::Test
  include Helper

  SCRIPT = File.join(Helper::ROOT, "examples/stack/stack")
  SERVERS = 2
  CELLS = Stack::Proof.cells("N" => SERVERS.to_s).select { |cell| Stack::Httpd.installed?(cell) }
  # Over TCP where connections are kept, over a unix socket, by CGI.
  CROWDED = ["nginx fastcgi 2 workers tcp", "lighttpd scgi 2 instances unix",
             "apache http 2 workers unix", "lighttpd cgi 2 workers unix"].freeze
  # Enough to see who leaves sockets behind.
  REQUESTS = 500

  def setup
    @log = Dir.mktmpdir("oribi-stack")
    FileUtils.chmod(0o755, @log)
    ports = Array.new(SERVERS + 1) { TCPServer.new("127.0.0.1", 0) }
    numbers = ports.map { |server| server.addr[1] }
    ports.each(&:close)
    @env = { "STACK_LOG" => @log, "STACK_PORT" => numbers.first.to_s,
             "STACK_SERVER_PORTS" => numbers.drop(1).join(",") }
    @place = Stack::Place.new(@env)
  end

  def teardown
    processes = Stack::Processes.new(@place)
    seen = processes.all.flat_map { |entry| family(entry.pid) }
    processes.stop
    # What the script has started is an orphan, and so this process's child.
    seen.each { |entry| reap(entry.pid) if entry.same?(process(entry.pid)) }
    left = all_processes.select { |entry| entry.title.include?(@log) }
    assert_empty left.map(&:title)
  ensure
    FileUtils.remove_entry(@log)
  end

  CELLS.each do |cell|
    crowded = CROWDED.include?(cell.to_s)
    # Several servers ask more of a web server's configuration than one with several workers.
    next unless crowded || (cell.unix? && cell.mode == "instances")

    define_method("test_#{cell.to_s.tr(' ', '_')}") do
      proof = Stack::Proof.new(cell, @place, crowd: crowded ? Stack::Proof::CROWD : 20,
                                             requests: crowded ? REQUESTS : 20)
      result = proof.run
      assert result.ok?, "#{Stack::Proof::HEAD}\n#{result}"
    end
  end

  def test_a_word_that_is_wrong
    assert_equal "stack: WEB=iis: there is lighttpd, nginx, apache, none", refusal("WEB=iis")
    assert_equal "stack: DOOR=gopher: there is http, fastcgi, scgi, cgi", refusal("DOOR=gopher")
    assert_equal "stack: N=0: a number from 1 to 32", refusal("N=0")
    assert_match(/WEB=none MODE=instances: there is nobody to balance/,
                 refusal("WEB=none", "MODE=instances"))
    assert_match(/WEB=none DOOR=cgi: there is nobody to run/, refusal("WEB=none", "DOOR=cgi"))
    assert_match(/speaks to its server by a unix socket/, refusal("DOOR=cgi", "SOCKET=tcp"))
    assert_match(/unknown: DOORS; there are WEB, DOOR/, refusal("DOORS=http"))
  end

  def test_a_port_that_is_taken
    TCPServer.open("127.0.0.1", @place.port) do
      assert_match(/port #{@place.port} of 127.0.0.1 is taken: `make stack-stop`/,
                   refusal("WEB=none", "N=1"))
    end
  end

  def test_a_web_server_that_is_not_installed
    said = with_nothing_installed do
      assert_raises(Stack::Trouble) { Stack.start(cell("WEB" => "lighttpd"), @place) }.message
    end
    assert_equal "WEB=lighttpd DOOR=http: lighttpd is not installed; `apt-get install lighttpd`",
                 said
    said = with_nothing_installed("/usr/sbin/nginx") do
      assert_raises(Stack::Trouble) do
        Stack.start(cell("WEB" => "nginx", "DOOR" => "cgi"), @place)
      end.message
    end
    assert_match(/fcgiwrap is not installed: nginx runs no CGI programs by itself/, said)
  end

  def test_an_oribi_that_does_not_start
    said = refusal("WEB=none", "N=1", env: { "ORIBI_BINARY" => "/nowhere/oribi" })
    assert_match(/oribi-\d+ ended; .*says:\n.*the binary .*run `make build`/, said)
  end

  def test_start_pids_and_stop
    said = stack("start", "WEB=none", "N=1")
    assert_includes said, "http://127.0.0.1:#{@place.port}/app/"
    pid = said[/^(\d+) oribi-/, 1]
    assert_equal pid, stack("pids")[/^\d+/]
    assert_match(/a stack is running \(oribi-\d+\)/, refusal("WEB=none", "N=1"))
    assert_equal "nothing runs\n", stack("stop", "WHAT=httpd")
    assert_match(/\Aended: oribi-\d+$/, stack("stop", "WHAT=vms"))
    assert_equal "nothing runs\n", stack("pids")
  end

  # A pid file outlives its process, and another process may get the number.
  def test_a_pid_that_is_somebody_elses_now
    File.write(File.join(@log, "nginx-1.pid"), "#{Process.pid} 1\n")
    stack("stop")
    assert_empty Dir[File.join(@log, "*.pid")]
  end

  private

  def cell(words) = Stack::Cell.named(words)

  def stack(*words)
    said, status = Open3.capture2e(@env, RbConfig.ruby, SCRIPT, *words)
    assert status.success?, said
    said
  end

  # What a start that must fail says.
  def refusal(*words, env: {})
    said, status = Open3.capture2e(@env.merge(env), RbConfig.ruby, SCRIPT, "start", *words)
    refute status.success?, said
    said.strip
  end

  def with_nothing_installed(*but)
    find = Stack::Httpd.method(:find)
    replace_find { |*names| but.find { |path| names.include?(File.basename(path)) } }
    yield
  ensure
    replace_find(&find)
  end

  def replace_find(&find) = Stack::Httpd.define_singleton_method(:find, &find)

  def reap(pid)
    wait_until("process #{pid} is gone") { Process.wait(pid, Process::WNOHANG) }
  rescue Errno::ECHILD
    nil
  end
end
