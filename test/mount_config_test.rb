# frozen_string_literal: true

require "helper"
require "json"
require "open3"
require "oribi/config"
require "rbconfig"

# Mounts as they are declared, in the Ruby file, in TOML and on the command line: what holds, who
# has said it, and what is refused.
class MountConfigTest < Minitest::Test
  include Helper

  RUBY = <<~'RUBY'
    workers 3
    queue_timeout 5
    def many = 4
    mount "/", rackup: "main.ru"
    mount "/shop/", host: ["Shop.example", "*.shop.example"], workers: many do
      rackup "shop.ru"
      threads 2; isolation :threads
      body_limit "1m"
      spawn_interval ENV["NO_SUCH_VARIABLE"]
    end
    mount "/old", name: "legacy", proxy: ["unix:/a.sock", "127.0.0.1:3000"], max: 2
  RUBY
  TOML = <<~'TOML'
    workers = 3
    queue_timeout = 5
    [[mount]]
    path = "/"
    rackup = "main.ru"
    [[mount]]
    path = "/shop/"
    host = ["Shop.example", "*.shop.example"]
    rackup = "shop.ru"
    workers = 4
    threads = 2
    isolation = "threads"
    body_limit = "1m"
    [[mount]]
    path = "/old"
    name = "legacy"
    proxy = ["unix:/a.sock", "127.0.0.1:3000"]
    max = 2
  TOML

  def setup
    @directory = File.realpath(Dir.mktmpdir("oribi-mounts"))
    %w[main.ru shop.ru].each { |name| file(name, "run ->(_) { [200, {}, []] }") }
  end

  def teardown = FileUtils.remove_entry(@directory)

  def path(name) = File.join(@directory, name)

  def file(name, text)
    FileUtils.mkdir_p(File.dirname(path(name)))
    File.write(path(name), text)
  end

  # The binary itself, as exe/oribi runs it.
  def oribi(*words, env: {}, binary: Oribi::Binary.path, **options)
    env = Oribi::Binary.environment.merge("RACK_ENV" => nil, "BUNDLE_GEMFILE" => nil,
                                          "RUBYOPT" => nil).merge(env)
    out, err, status = Open3.capture3(env, binary, *words, chdir: @directory, **options)
    [out, err, status.exitstatus]
  end

  # What holds: of the server under nil, of mounts under their names. Name => [values, origin].
  def explain(*words, **options)
    out, err, code = oribi("config", "--json", *words, **options)
    assert_equal ["", 0], [err, code]
    JSON.parse(out).group_by { |row| row["mount"] }.transform_values do |rows|
      rows.to_h { |row| [row["name"], row.values_at("values", "origin")] }
    end
  end

  def values(...) = explain(...).transform_values { |of| of.transform_values(&:first) }

  # What is said when it is not accepted.
  def refusal(*words, **options)
    out, err, code = oribi("config", *words, **options)
    assert_equal ["", 1, 1], [out, code, err.lines.size], err
    err.chomp.delete_prefix("oribi: ")
  end

  def test_each_mount_has_its_values_and_their_origins
    file("oribi.rb", RUBY)
    found = explain("-C", "oribi.rb", "-t", "1", "--request-timeout", "9")
    assert_equal [nil, "/", "shop", "legacy"], found.keys
    root, shop, legacy = found.values_at("/", "shop", "legacy")
    line = ->(number) { "#{path('oribi.rb')}:#{number}" }

    assert_equal [["/"], line[4]], root["path"]
    assert_equal [["3"], line[1]], root["workers"]
    assert_equal [["1"], "command line"], root["threads"]
    assert_equal [["9"], "command line"], root["request_timeout"]
    assert_equal [["100"], "default"], root["weight"]
    assert_equal [["4"], line[5]], shop["workers"]
    assert_equal [["2"], line[7]], shop["threads"], "its own word wins over the command line"
    assert_equal [["Shop.example", "*.shop.example"], line[5]], shop["host"]
    assert_equal [["5"], line[2]], shop["queue_timeout"]
    assert_equal [["0"], "default"], shop["spawn_interval"]
    assert_equal [%w[unix:/a.sock 127.0.0.1:3000], line[11]], legacy["proxy"]
    refute_includes legacy, "workers"
    refute_includes root, "bind"
    assert_equal [["3"], line[1]], found[nil]["workers"]

    table, = oribi("config", "--explain", "-C", "oribi.rb")
    assert_match(/^Mount shop \(#{line[5]}\)\n  path +\S+ +#{line[5]}\n  host /, table)
    assert_match(/^  workers +4 +#{line[5]}$/, table)
  end

  def test_what_is_printed_is_a_file_that_says_the_same
    file("oribi.rb", RUBY)
    printed, = oribi("config", "-C", "oribi.rb", "--mount", "/o'ne=one.ru")
    assert_includes printed, "mount '/shop/' do\n  host 'Shop.example', '*.shop.example'\n"
    file("again.rb", printed)
    before = values("-C", "oribi.rb", "--mount", "/o'ne=one.ru")
    assert_equal before, values("-C", "again.rb")
    assert_equal 5, before.size
  end

  # Neither a Ruby nor our Ruby files are there, and nobody looks for them.
  def test_toml_says_the_same_and_needs_no_ruby
    file("oribi.rb", RUBY)
    file("oribi.toml", TOML)
    FileUtils.mkdir(path("bare"))
    FileUtils.cp(Oribi::Binary.path, path("bare/oribi"))
    alone = { binary: path("bare/oribi"), unsetenv_others: true,
              env: { "ORIBI_RUBY" => nil, "ORIBI_LIB" => nil, "PATH" => path("bare") } }
    assert_equal values("-C", "oribi.rb"), values("-C", "oribi.toml", **alone)
    found = explain("-C", "oribi.toml", "-w", "1", **alone)
    assert_equal [["1"], "command line"], found["/"]["workers"]
    assert_equal [["4"], "#{path('oribi.toml')}:10"], found["shop"]["workers"]
    _, err, code = oribi("config", "-C", "oribi.rb", **alone)
    assert_equal 1, code
    assert_match(/cannot find lib\/oribi/, err)
  end

  def test_the_command_line_declares_mounts
    found = values("--mount", "/a=a.ru", "--mount", "*.example/b=b.ru", "main.ru", "-w", "7")
    assert_equal [nil, "a", "*.example/b", "/"], found.keys
    assert_equal [["*.example"], ["b.ru"], ["7"]],
                 found["*.example/b"].values_at("host", "rackup", "workers")
    assert_equal [["/"], ["main.ru"]], found["/"].values_at("path", "rackup")
    file("oribi.toml", TOML)
    assert_equal [nil, "/", "shop", "legacy", "a"],
                 values("-C", "oribi.toml", "--mount", "/a=a.ru").keys
  end

  def test_help_and_configurations_of_what_lies_in_front
    assert_match(/^ +--mount <\[HOST\]\/PATH=FILE>/, oribi("--help").first)
    assert_match(/^  oribi --mount \/a=one.ru --mount \/b=two.ru /, oribi("--help").first)
    file("oribi.toml", TOML)
    out, = oribi("config", "nginx", "-C", "oribi.toml")
    assert_includes out, "location / {"
    assert_includes out, "client_max_body_size #{2 << 30};"
    out, = oribi("config", "systemd", "-C", "oribi.toml", "--mount", "/a=a.ru")
    assert_match(%r{^ExecStart=.* --config #{path('oribi.toml')} .*--mount=/a=a.ru}, out)
  end

  def test_hooks_of_the_server_run_first_and_mounts_have_their_own
    file("oribi.rb", <<~'RUBY')
      mount "/shop" do
        after_fork { :shop }
        before_fork { :gate }
      end
      after_fork { :all }
      mount "/b", name: "blog", after_fork: -> { :blog }
    RUBY
    of = lambda do |mount|
      Oribi::Config.hooks(path("oribi.rb"), mount).transform_values { |all| all.map(&:call) }
    end
    assert_equal({ after_fork: %i[all shop], before_fork: [:gate] }, of["shop"])
    assert_equal({ after_fork: %i[all blog] }, of["blog"])
    assert_equal({ after_fork: [:all] }, of["/"])
  end

  # What is wrong in a Ruby file, and how it goes on after FILE:LINE.
  RUBY_REFUSALS = {
    "\nmount :shop" => "2: mount takes its path first: mount \"/shop\"",
    "mount 'shop'" => "1: mount: \"shop\" is not a path such as /shop",
    "mount '/a/../b'" => "1: mount: \"/a/../b\" is not a path such as /shop",
    "mount '/a'\n\nmount '/a/'" =>
      "3: mount /a/: there is a mount there already (FILE:1): give one of them another path " \
      "or host",
    "mount '/a', host: 'x.y'\nmount '/a', host: %w[w.v X.y]" =>
      "2: mount /a: there is a mount there of x.y already (FILE:1): give one of them another " \
      "path or host",
    "mount '/a', host: 'x.y'\nmount '/a'" => "2: mount /a: another mount is called a already " \
                                             "(FILE:1): give one of them a name of its own",
    "prefix '/app'\nmount '/a'" => "1: prefix: it is for a server without mounts: leave it out, " \
                                   "each mount has its path",
    "mount '/a' do\n  bind 'tcp://a:1'\nend" => "2: bind is the server's: say it outside of mounts",
    "rackup 'a.ru'" => "1: rackup is said of a mount",
    "mount '/a', wrokers: 2" => "1: no option wrokers, do you mean workers?",
    "mount '/a' do\n  hosts 'x'\nend" => "2: no option hosts, do you mean host?",
    "mount '/a' do\n  mount '/b'\nend" => "2: a mount within a mount: end the first one before",
    "mount '/a', path: '/b'" => "1: path is what mount begins with",
    "mount '/a' do\n  workers 0\nend" => "2: workers: \"0\" is not a number from 1 to 512",
    "mount '/a', host: 'x:80'" =>
      "1: mount /a: host: \"x:80\" is not a host such as shop.example or *.example, without a port",
    "mount '/a', name: '/b'" => "1: mount /a: name: \"/b\" is not a word such as shop, without " \
                                "blanks and not beginning with / or -",
    "threads 5\nmount '/a', isolation: :fresh" =>
      "2: mount /a: isolation is fresh, which is one request per process at a time, but threads " \
      "is 5 (FILE:1): take workers instead, or isolation threads",
    "isolation :prefork\nthreads 2" =>
      "1: isolation is prefork, which is one request per process at a time, but threads is 2 " \
      "(FILE:2): take workers instead, or isolation threads",
    "mount '/a', isolation: :fresh do\n  max_requests 5\nend" =>
      "2: mount /a: max_requests is for workers that serve more than one request, and isolation " \
      "is fresh: leave one of the two out",
    "mount '/a', proxy: 'nowhere'" => "1: proxy: \"nowhere\" is not a socket: write unix:PATH or " \
                                      "HOST:PORT",
    "mount '/a', proxy: 'a:1', workers: 2" => "1: mount /a: workers is for apps, and this is a " \
                                              "proxy: leave it out",
    "mount '/a', proxy: 'a:1' do\n  after_fork { }\nend" =>
      "2: after_fork is for apps, and this mount is a proxy",
    "mount '/a', max: 3" => "1: mount /a: max goes with proxy: an app has workers",
    "mount '/a', workers: 300, threads: 2" =>
      "1: mount /a: 300 workers of 2 threads are 600 threads; at most 512 are possible: lower " \
      "one of the two"
  }.freeze

  def test_what_a_ruby_file_may_not_say
    RUBY_REFUSALS.each do |text, message|
      file("oribi.rb", text)
      named = path("oribi.rb")
      assert_equal "#{named}:#{message.gsub('FILE', named)}", refusal("-C", "oribi.rb"), text
    end
  end

  TOML_REFUSALS = {
    "workers = 1\nwrokers = 2" => "2: no option wrokers, do you mean workers?",
    "[[mount]]\npath = \"/a\"\nwrokers = 2" => "3: no option wrokers, do you mean workers?",
    "[[mount]]\npath = \"/a\"\nport = 1" => "3: port is the server's: write it above all mounts",
    "[[mount]]\n\nworkers = \"many\"\npath = \"/\"" =>
      "3: workers: \"many\" is not a number from 1 to 512",
    "[[mount]]\nworkers = 1" => "1: mount : it has no path: write path = \"/shop\"",
    "[mount]\npath = \"/\"" => "1: mount is a list: write [[mount]] for each",
    "workers = {}" => "1: workers takes no table",
    "workers = 1 2" => "1: string values must be quoted, expected literal string"
  }.freeze

  def test_what_a_toml_file_may_not_say
    TOML_REFUSALS.each do |text, message|
      file("oribi.toml", text)
      assert_equal "#{path('oribi.toml')}:#{message}", refusal("-C", "oribi.toml"), text
    end
  end

  def test_what_the_command_line_may_not_say
    assert_equal "mount: \"shop\" is no mount: write --mount PATH=FILE or HOST/PATH=FILE, as in " \
                 "--mount /shop=shop/config.ru", refusal("--mount", "shop")
    assert_equal "mount /: there is a mount there already (command line): give one of them " \
                 "another path or host", refusal("--mount", "/=a.ru", "b.ru")
    assert_match(/\Aprefix: it is for a server without mounts/,
                 refusal("--mount", "/a=a.ru", "--prefix", "/b"))
  end

  # An app that says where it is and with what.
  APP = <<~'RUBY'
    warn [Dir.pwd, ENV["RACK_ENV"], ENV["BUNDLE_GEMFILE"], defined?(Bundler)].inspect
    run ->(_) { [200, {}, []] }
  RUBY

  def test_check_loads_each_app_where_it_is
    file("shop/config.ru", APP)
    file("shop/Gemfile", "gem 'rack'")
    file("main.ru", APP)
    file("oribi.toml", <<~'TOML')
      [[mount]]
      path = "/shop"
      chdir = "shop"
      environment = "test"
      [[mount]]
      path = "/"
      rackup = "main.ru"
      [[mount]]
      path = "/old"
      proxy = "unix:/a"
    TOML
    out, err, code = oribi("check", "-C", "oribi.toml")
    assert_equal 0, code, err
    assert_equal ["ok #{path('shop/config.ru')}", "ok #{path('main.ru')}",
                  "ok old: a proxy to unix:/a"], out.scan(/^[^(\n]+/).map(&:strip)
    assert_equal [[path("shop"), "test", path("shop/Gemfile"), "constant"].inspect,
                  [@directory, "development", nil, nil].inspect], err.lines.map(&:chomp)

    file("main.ru", "raise 'no database'")
    out, err, code = oribi("check", "-C", "oribi.toml")
    assert_equal [2, 1], [out.lines.size, code]
    assert_match(/^oribi: \S+main.ru does not load: RuntimeError: no database/, err)
  end

  def test_files_that_are_not_there
    file("oribi.toml", "[[mount]]\npath = \"/a\"\nrackup = \"none.ru\"\n")
    at = path("oribi.toml")
    missing = ->(*words) { oribi("check", *words).then { |_, err, code| [err, code] } }
    assert_equal ["oribi: #{at}:3: mount /a: none.ru is not there: name the app's rackup " \
                  "file\n", 1], missing["-C", "oribi.toml"]
    file("oribi.toml", "[[mount]]\npath = \"/a\"\nchdir = \"none\"\n")
    assert_equal ["oribi: #{at}:3: mount /a: chdir: #{path('none')} is no directory: name the " \
                  "app's\n", 1], missing["-C", "oribi.toml"]
    assert_equal ["oribi: mount /b: b.ru is not there: name the app's rackup file\n", 1],
                 missing["--mount", "/b=b.ru"]
  end

  def test_an_app_that_is_handed_over_is_the_only_one
    file("oribi.rb", "mount '/a'")
    words = ["-Eproduction", "-sOribi", path("main.ru")]
    rackup = lambda do |*options|
      env = { "RUBYLIB" => LIB, "ORIBI_MOLD" => nil }
      out, status = Open3.capture2e(env, "rackup", *words, *options, chdir: @directory)
      [out, status.exitstatus]
    end
    out, code = rackup["-O", "ConfigFile=oribi.rb"]
    assert_equal 1, code
    assert_match(/^oribi: #{path('oribi.rb')}:1: mount \/a: an app that is handed over, as/, out)
    out, code = rackup["-O", "Mount=/a"]
    assert_equal 1, code
    assert_match(/^oribi: Mount: an app that is handed over is the only one: start the server/, out)
  end
end
