# frozen_string_literal: true

require "helper_case"
require "helper_contract"
require "helper_web_servers"
require "shellwords"

# `oribi config nginx` and its like: what is printed works, with the settings it was printed for.
class ConfigForTest < Helper::Case
  Contract = Helper::Contract

  # What `oribi` prints, and how it ended.
  def oribi(*arguments, chdir: Dir.pwd)
    words = [Oribi::Binary.environment, Oribi::Binary.path, *arguments]
    output = IO.popen([*words, { chdir: chdir, err: %i[child out] }], &:read)
    [output, $?.exitstatus] # rubocop:disable Style/SpecialGlobalVars
  end

  def printed(*arguments, **options)
    output, status = oribi("config", *arguments, **options)
    assert_equal 0, status, output
    output
  end

  # Serves, and puts the web server in front with what is printed for just these words, and for what
  # a configuration file says.
  def put_in_front(kind, name, words)
    trust = "trusted_proxies 'unix', '127.0.0.1'\nprefix '/app'\n"
    start("contract.ru", *words, "-w", "1", "-C", "oribi.rb", bind: nil, open: true,
                                                              files: { "oribi.rb" => trust })
    address = server.log[/listening on (\S+)$/, 1]
    words = ["-b", address.sub("http:", "tcp:"), *words.drop(2)] if words[1].end_with?(":0")
    listen = free_port
    text = printed(name, *words, "-C", "oribi.rb", "--listen", "127.0.0.1:#{listen}",
                   chdir: server.directory)
    refute_includes text, "TO DO"
    @web = Helper::WebServer.new(kind, text).ready(listen)
    keep(Helper::Client.tcp(listen))
  end

  def teardown
    super
    @web&.stop
  end

  UNIX = ["-b", "unix://a.sock", "--socket-mode", "0666"].freeze
  TCP = ["-b", "tcp://127.0.0.1:0"].freeze

  Helper::WebServer::COMMANDS.each_key do |kind|
    { "unix" => UNIX, "tcp" => TCP }.each do |socket, words|
      define_method("test_#{kind}_over_#{socket}_serves_with_what_is_printed") do
        client = put_in_front(kind, kind.to_s, words)
        seen = Contract.ask(client, "a query", "/app")
        told = %w[REMOTE_ADDR rack.url_scheme SCRIPT_NAME PATH_INFO HTTP_HOST]
        assert_equal ["127.0.0.1", "http", "/app", "/env", "shop.example:8042"],
                     seen.env.values_at(*told), server.log
      end
    end
  end

  def test_caddy_finds_it_in_order
    Dir.mktmpdir do |folder|
      Dir.mkdir(File.join(folder, "logs"))
      %w[tcp://127.0.0.1:9292 fastcgi://127.0.0.1:9000 unix:///a.sock].each do |bind|
        ["", "/app"].each do |prefix|
          words = prefix.empty? ? [] : ["--prefix", prefix]
          File.write(File.join(folder, "Caddyfile"), printed("caddy", "-b", bind, *words))
          valid = IO.popen(["caddy", "validate", { chdir: folder, err: %i[child out] }], &:read)
          assert_match(/Valid configuration/, valid)
          refute_match(/"level":"(warn|error)"/, valid)
        end
      end
    end
  end

  def test_what_cannot_be_printed_is_refused_in_a_line
    { %w[caddy -b scgi://127.0.0.1:4000] => /caddy does not speak SCGI/,
      %w[nginx -p 0] => /name one for a web server/,
      %w[nginx --listen here] => /write HOST:PORT/ }.each do |words, reason|
      output, status = oribi("config", *words)
      assert_equal 1, status
      assert_match(/\Aoribi: .*#{reason}.*\n\z/, output)
    end
  end

  def test_the_examples_are_what_is_printed
    check = [RbConfig.ruby, File.join(ROOT, "tools/web-server-examples"), "--check"]
    output = IO.popen([*check, { err: %i[child out] }], &:read)
    assert_empty output
  end

  # As systemd would: its words, its variables, no shell.
  def test_the_commands_of_the_unit_start_and_reload
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), Helper::Case.source("contract.ru"))
      unit = printed("systemd", "-p", "0", "-w", "1", "--chdir", folder, "--control", "c.sock")
      words = %w[ExecStart ExecReload Environment].to_h do |name|
        [name, unit.scan(/^#{name}=(.*)$/).flatten.flat_map(&:shellsplit)]
      end
      env = words["Environment"].to_h { |pair| pair.split("=", 2) }
      log = File.join(folder, "log")
      pid = Process.spawn(env, *words["ExecStart"], chdir: "/", out: log, err: %i[child out])
      wait_until("it serves") { File.read(log).include?("1 worker of") }
      assert system(env, *words["ExecReload"], chdir: "/", out: File::NULL), File.read(log)
      assert_match(/generation 2/, File.read(log))
    ensure
      Process.kill("TERM", pid)
      assert_equal 0, Process.wait2(pid).last.exitstatus
    end
  end

  if system("systemd-analyze", "--version", out: File::NULL, err: File::NULL)
    def test_systemd_accepts_the_unit
      Dir.mktmpdir do |folder|
        text = printed("systemd", "-b", "unix:///run/app/a b.sock", "-p", "80",
                       "--user", "www-data", "--chdir", folder,
                       "--access-log", "100%.log", "my app.ru")
        unit = File.join(folder, "oribi.service")
        File.write(unit, text)
        verify = ["systemd-analyze", "verify", "--man=no", unit, { err: %i[child out] }]
        complaints = IO.popen(verify, &:read).lines.grep(/oribi/)
        assert_equal [], complaints.grep_v(/is not executable/)
        assert_match(/^ExecStart=.* --chdir #{folder} .* --access-log 100%%.log "my app.ru"$/, text)
      end
    end
  end
end
