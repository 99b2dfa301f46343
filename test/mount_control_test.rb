# frozen_string_literal: true

require "helper_server"
require "json"
require "open3"

# Commands for one mount among others, and settings that are read anew.
class MountControlTest < Minitest::Test
  include Helper

  APP = <<~'RUBY'
    raise "no database here" if File.exist?(File.join(__dir__, "broken"))

    release = File.exist?("#{__dir__}/release") ? File.read("#{__dir__}/release") : "first"
    use Rack::Lint
    run(lambda do |env|
      File.read(File.join(__dir__, "fifo")) if env["PATH_INFO"] == "/hold"
      words = [ENV["RACK_ENV"], release, Process.pid, env["SCRIPT_NAME"], env["PATH_INFO"]]
      [200, { "content-type" => "text/plain" }, [words.join(" ")]]
    end)
  RUBY

  TWO = <<~RUBY
    workers 1
    mount "/shop", rackup: "app.ru", workers: 2
    mount "/blog", rackup: "app.ru"
  RUBY

  def setup
    files = { "app.ru" => APP, "oribi.rb" => TWO }
    @server = Server.new(:oribi, "-C", "oribi.rb", "--rollback-window", "60",
                         app: nil, files: files).ready
  end

  def teardown
    @server.signal("KILL") unless @server.ended?
    @server.wait
    @server.clean_up
  end

  def oribi(*words)
    env = { "ORIBI_RUNTIME_DIR" => File.join(@server.directory, "control"), "RUBYLIB" => LIB }
    output, status = Open3.capture2e(env, Oribi::Binary.path, *words.map(&:to_s), chdir: "/")
    [output, status.exitstatus]
  end

  def done(*words)
    output, status = oribi(*words)
    assert_equal 0, status, output
    output
  end

  def refused(*words)
    output, status = oribi(*words)
    assert_equal 1, status, output
    output
  end

  def status = JSON.parse(done("status", "--json"))["mounts"]

  def named(name) = status.select { |one| one["name"] == name }

  def mount(name) = named(name).first

  def write(name, text) = File.write(File.join(@server.directory, name), text)

  # Environment, release, pid, SCRIPT_NAME and PATH_INFO, as the app at this path says them.
  def ask(path) = @server.get(path).split

  def test_each_mount_is_restarted_scaled_and_rolled_back_by_itself
    assert_equal([["shop", "/shop", "serving", 2], ["blog", "/blog", "serving", 1]],
                 status.map { |one| one.values_at("name", "path", "state", "workers") })
    shop, blog = %w[/shop/a /blog/b].map { |path| ask(path) }
    assert_equal([%w[/shop /a], %w[/blog /b]], [shop, blog].map { |words| words.last(2) })
    assert_equal "404", @server.response("/shopping").code

    write("release", "second")
    assert_match(/^shop: generation 2 serves \(booted/, done("restart", "shop"))
    assert_equal "second", ask("/shop/")[1]
    assert_equal blog, ask("/blog/b"), "the other has not noticed"
    assert_equal([2, 1], [mount("shop"), mount("blog")].map { |one| one["serving"] })
    assert_match(/generation 1 serves again/, done("rollback", "/shop"))
    assert_equal "first", ask("/shop/")[1]
    assert_match(/shop.*blog/, refused("rollback"))

    assert_match(/3 workers, before 1/, done("scale", "blog", 3))
    assert_equal([2, 3], [mount("shop"), mount("blog")].map { |one| one["workers"] })
    assert_match(/name the mount.*shop, blog/, refused("scale", 3))
    assert_match(/no mount nowhere: there are shop, blog/, refused("restart", "nowhere"))

    write("broken", "")
    assert_match(/no database here.*generation 1 serves on/, refused("restart", "shop"))
    assert_equal "first", ask("/shop/")[1]
    File.delete(File.join(@server.directory, "broken"))
    output = done("restart")
    assert_match(/shop: generation \d serves.*; blog: generation 2 serves|blog: .*; shop: /, output)
    assert_equal(%w[second second], %w[/shop /blog].map { |path| ask(path)[1] })
    assert_stops
  end

  def test_mounts_come_and_go_while_the_others_serve
    blog = ask("/blog/b")
    output = done("mount", "/news=app.ru")
    assert_match(/news: generation 1 serves/, output)
    assert_equal %w[/news /c], ask("/news/c").last(2)
    refute_equal blog[2], ask("/news/c")[2]

    # What it has is finished, and nothing new goes there.
    held = Thread.new { @server.response("/news/hold").body }
    fifo = Helper.wait_until("it is held") do
      File.open(File.join(@server.directory, "fifo"), File::WRONLY | File::NONBLOCK)
    rescue Errno::ENXIO
      nil
    end
    stopping = Thread.new { done("stop", "news") }
    Helper.wait_until("it leaves") { mount("news")["state"] == "leaving" }
    Helper.wait_until("nothing goes there") { @server.response("/news/c").code == "404" }
    fifo.close
    assert_match(%r{/news /hold\z}, held.value)
    assert_match(/news: the mount is gone/, stopping.value)
    assert_equal(%w[shop blog], status.map { |one| one["name"] })

    write("broken", "")
    assert_match(/news: the app did not load: .*no database here.*taken back/,
                 refused("mount", "/news=app.ru"))
    assert_equal(%w[shop blog], status.map { |one| one["name"] })
    assert_equal blog, ask("/blog/b")
    done("stop", "shop")
    assert_match(/the only mount: `oribi stop` ends the server/, refused("stop", "blog"))
    assert_equal blog, ask("/blog/b")
    assert_stops
  end

  def test_a_reload_does_what_has_changed_and_nothing_else
    shop, blog = %w[/shop/a /blog/b].map { |path| ask(path) }
    assert_equal "done", done("reload").lines.last.chomp
    assert_equal blog, ask("/blog/b")

    write("oribi.rb", "#{TWO.sub('workers: 2', 'workers: 1')}mount \"/news\", rackup: \"app.ru\"\n")
    assert_match(/news: generation 1 serves/, done("reload"))
    assert_equal %w[/news /c], ask("/news/c").last(2)
    assert_equal [1, 1], mount("shop").values_at("workers", "serving")
    assert_equal blog, ask("/blog/b")

    # Another environment is another generation; another name is another mount.
    write("oribi.rb", <<~RUBY)
      workers 1
      mount "/shop", rackup: "app.ru", workers: 1, environment: "test"
      mount "/blog", rackup: "app.ru"
      mount "/papers", rackup: "app.ru"
    RUBY
    done("reload")
    assert_equal ["test", 2], [ask("/shop/a").first, mount("shop")["serving"]]
    assert_equal blog, ask("/blog/b")
    assert_equal "404", @server.response("/news/c").code
    assert_equal %w[/papers /c], ask("/papers/c").last(2)

    # Seats of another number are another mount in the same place, and no request is lost between.
    asking = Thread.new do
      answers = Hash.new(0)
      answers[@server.response("/blog/x").code] += 1 until Thread.current[:enough]
      answers
    end
    write("oribi.rb", File.read(File.join(@server.directory, "oribi.rb"))
                          .sub('"/blog", rackup: "app.ru"', '\0, threads: 2, isolation: :threads'))
    done("reload")
    Helper.wait_until("the one before is gone") { named("blog").one? }
    asking[:enough] = true
    assert_equal ["200"], asking.value.keys
    assert_equal [2, "threads"], mount("blog").values_at("threads", "isolation")
    refute_equal shop, ask("/shop/a")
    assert_stops
  end

  # What did not come to serve is a change still to be made.
  def test_one_laid_out_otherwise_that_does_not_load_can_be_tried_again
    before = ask("/blog/b")
    write("oribi.rb", TWO.sub('"/blog", rackup: "app.ru"', '\0, threads: 2'))
    write("broken", "")
    assert_match(/no database here/, refused("reload"))
    Helper.wait_until("it is gone") { named("blog").one? }
    assert_equal [before, 1], [ask("/blog/b"), mount("blog")["threads"]]
    File.unlink(File.join(@server.directory, "broken"))
    assert_match(/blog: generation 1 serves/, done("reload"))
    Helper.wait_until("the one before is gone") { named("blog").one? }
    assert_equal [2, before[1]], [mount("blog")["threads"], ask("/blog/b")[1]]
    assert_equal "done", done("reload").lines.last.chomp
    assert_stops
  end

  # Who waits for settings that are never read through can give up.
  def test_a_file_that_never_ends_holds_up_no_later_reload
    write("oribi.rb", "#{TWO}sleep\n")
    env = { "ORIBI_RUNTIME_DIR" => File.join(@server.directory, "control"), "RUBYLIB" => LIB }
    asking = Process.spawn(env, Oribi::Binary.path, "reload", chdir: "/", %i[out err] => File::NULL)
    reading = -> { @server.tree.select { |entry| entry.title.include?("Config.dump") } }
    Helper.wait_until("it is read") { reading.call.any? }
    assert_match(/are being read already/, refused("reload"))
    Process.kill("INT", asking)
    Process.wait(asking)
    Helper.wait_until("nobody reads") { reading.call.empty? }
    write("oribi.rb", TWO.sub("workers: 2", "workers: 1"))
    done("reload")
    assert_equal 1, mount("shop")["workers"]
    assert_stops
  end

  def test_what_is_wrong_changes_nothing
    before = status.map { |one| one.values_at("name", "serving", "workers") }
    blog = ask("/blog/b")
    {
      "#{TWO}mount \"/news\", rackup: \"nowhere.ru\"\n" => /nowhere\.ru is not there/,
      "#{TWO}wrokers 3\n" => /not accepted|wrokers/,
      "backlog 7\n#{TWO}" => /backlog has changed, which needs a restart of the whole server/,
      "#{TWO}mount \"/blog\", rackup: \"app.ru\"\n" => /blog/
    }.each do |text, why|
      write("oribi.rb", text)
      output = refused("reload")
      assert_match why, output
      assert_match(/everything stays as it was/, output)
    end
    assert_equal before, (status.map { |one| one.values_at("name", "serving", "workers") })
    assert_equal blog, ask("/blog/b")
    assert_stops
  end

  def assert_stops
    done("stop")
    assert_equal 0, @server.wait
    refute_match(/panicked/, @server.log)
    assert_empty @server.left_over
  end
end
