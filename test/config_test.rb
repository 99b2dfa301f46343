# frozen_string_literal: true

require "helper_case"
require "json"
require "open3"
require "oribi/config"

# The configuration file, `oribi config`, and which source of a setting wins.
class ConfigTest < Helper::Case
  # What a file of a test may name that is not ours.
  Worker = Class.new

  def setup
    @directory = File.realpath(Dir.mktmpdir("oribi-config"))
  end

  def teardown
    super
    FileUtils.remove_entry(@directory)
  end

  def path(name = "oribi.rb") = File.join(@directory, name)

  def file(text) = File.write(path, text)

  def oribi(*words, env: {}, chdir: @directory)
    env = { "RACK_ENV" => nil }.merge(env)
    out, err, status = Open3.capture3(env, RbConfig.ruby, File.join(ROOT, "exe/oribi"), *words,
                                      chdir: chdir)
    [out, err, status.exitstatus]
  end

  # Every setting: name => [values, origin].
  def explain(*words, **options)
    out, err, code = oribi("config", "--json", *words, **options)
    assert_equal ["", 0], [err, code]
    JSON.parse(out).to_h { |row| [row["name"], row.values_at("values", "origin")] }
  end

  def test_every_setting_its_value_and_its_origin
    file("# two\n\nthreads 2\nbind 'unix:///a',\n     'tcp://[::1]:1'\nqueue_timeout 0.5\n")
    found = explain("-C", "oribi.rb", "-w", "3", env: { "RACK_ENV" => "staging" })
    assert_equal [["3"], "command line"], found["workers"]
    assert_equal [["2"], "#{path}:3"], found["threads"]
    assert_equal [%w[unix:///a tcp://[::1]:1], "#{path}:4"], found["bind"]
    assert_equal [["0.5"], "#{path}:6"], found["queue_timeout"]
    assert_equal [["staging"], "RACK_ENV"], found["environment"]
    assert_equal [["30"], "default"], found["shutdown_timeout"]
    assert_equal [[], "default: reload; exit under start_server"], found["hup_action"]
    settings = Oribi::Options.table.map { |option| option["name"] }
    assert_equal settings.sort - %w[config host path port timeout], found.keys.sort
  end

  def test_as_a_table
    file("workers 7")
    out, err, code = oribi("config", "--explain", "-C", path)
    assert_equal ["", 0], [err, code]
    assert_match(/\AThe server\n  bind +tcp:\S+:9292  default\n  workers +7 +\S+rb:1\n/, out)
    assert_match(/^Limits of clients\n  uri_limit +16k +default$/, out)
    assert_match(/^Configuration file: #{path}$/, out)
  end

  def test_as_a_configuration_file_that_says_the_same
    file("bind 'unix:///it\\'s', 'unix:///\#{a}'\nsocket_mode 0640\nretry_idempotent\n" \
         "trusted_proxies 'unix', '10.0.0.0/8'\n")
    before = explain("-C", path, "-t", "3")
    out, = oribi("config", "-C", path, "-t", "3")
    File.write(path("again.rb"), out)
    after = explain("-C", "again.rb")
    assert_equal before.transform_values(&:first), after.transform_values(&:first)
    assert_equal [%w[unix 10.0.0.0/8]], after["trusted_proxies"].first(1)
  end

  def test_the_command_line_wins
    file("workers 5\nport 4000\nhost '0.0.0.0'\ntimeout 9\nhead_timeout 3\n")
    value = ->(name, *words) { explain("-C", path, *words)[name].first }
    assert_equal [["5"], ["2"]], [value["workers"], value["workers", "-w", "2"]]
    assert_equal ["tcp://0.0.0.0:4000"], value["bind"]
    assert_equal ["tcp://0.0.0.0:3000"], value["bind", "-p", "3000"]
    assert_equal ["tcp://[::1]:4000"], value["bind", "-o", "::1"]
    assert_equal ["unix:///a"], value["bind", "--path", "/a"]
    assert_equal [["9"], ["3"]], [value["body_timeout"], value["head_timeout"]]
    assert_equal ["1"], value["head_timeout", "--timeout", "1"]
  end

  def test_what_is_wrong_is_named_with_its_line
    allowed = "is not a number from 1 to 512"
    { "\n\nworkers 0" => ":3: workers: \"0\" #{allowed}",
      "[1, 2].each { |i|\n  workers i * 300 }" => ":2: workers: \"600\" #{allowed}",
      "max_workers 'x'" => ":1: workers: \"x\" #{allowed}",
      "oob_gc 'perhaps'" => ":1: oob_gc: \"perhaps\" is not true or false",
      "timeout :soon" => ":1: timeout: \"soon\" is not a number of seconds from 0 to 86400",
      "\nhup_action 'no'" => ":2: hup_action: \"no\" is not one of reload, recycle, exit",
      "before_frok { }" => ":1: no option before_frok, do you mean before_fork?",
      "max_worker 3" => ":1: no option max_worker, do you mean max_workers?",
      "after_fork" => ":1: after_fork takes a block" }.each do |text, message|
      file(text)
      assert_equal ["", "#{path}#{message}", 1],
                   oribi("config", "-C", "oribi.rb").then { |out, err, code|
                     [out, err.lines.first.chomp.delete_prefix("oribi: "), code]
                   }, text
    end
  end

  # What nobody could have meant is wrong even where something else wins.
  def test_a_value_that_does_not_hold_is_checked_too
    file("workers 'many'")
    assert_equal 1, oribi("config", "-C", path, "-w", "2").last
  end

  def test_hooks_are_kept_in_order
    file("before_fork { :one }\nworkers 2\nbefore_fork { |worker| [:two, worker] }\n" \
         "on_request_timeout ->(x) { x }\nkept = ConfigTest::Worker\nafter_fork { kept }\n")
    hooks = Oribi::Config.hooks(path)
    assert_equal %i[after_fork before_fork on_request_timeout], hooks.keys.sort
    assert_equal([:one, [:two, 1]], hooks[:before_fork].map { |hook| hook.call(1) })
    assert_equal Worker, hooks[:after_fork].first.call
  end

  def test_a_hook_may_be_wrong_in_its_own_way
    file("before_fork { no_such_method }\nafter_fork { Handler }")
    hooks = Oribi::Config.hooks(path)
    assert_match(/no_such_method/, assert_raises(NameError) { hooks[:before_fork][0].call }.message)
    # A constant of the file's is never ours.
    assert_raises(NameError) { hooks[:after_fork][0].call }
  end

  def test_mistakes_in_a_file_that_is_read_for_its_hooks
    file("workers 2\nno_such_option 1")
    error = assert_raises(Oribi::Error) { Oribi::Config.hooks(path) }
    assert_equal "#{path}:2: no option no_such_option", error.message
    File.delete(path)
    error = assert_raises(Oribi::Error) { Oribi::Config.hooks(path) }
    assert_match(/is not there any more/, error.message)
  end

  def test_a_server_with_hooks_whose_file_changes_before_a_restart
    hook = ->(text) { "workers 1\nbefore_fork { warn 'hook #{text}' }\n" }
    start("queue.ru", "-C", "oribi.rb", files: { "oribi.rb" => hook["one"] })
    assert_match(/^hook one$/, server.log)
    File.write(File.join(server.directory, "oribi.rb"), hook["two"])
    server.signal("USR2")
    wait_for_log(/^hook two$/)
    server.workers(1, generation: 2)
  end

  # Deploys move `current`: the path that was named is the one that is read again.
  def test_the_file_is_found_again_by_the_name_it_was_given
    %w[a b].each do |release|
      FileUtils.mkdir(path(release))
      text = "workers 1\nbefore_fork { warn 'hook #{release}' }\n"
      File.write(path("#{release}/oribi.rb"), text)
    end
    File.symlink("a", path("current"))
    start("queue.ru", "-C", path("current/oribi.rb"))
    File.symlink("b", path("next"))
    File.rename(path("next"), path("current"))
    server.signal("USR2")
    wait_for_log(/^hook b$/)
  end
end
