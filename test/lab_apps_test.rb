# frozen_string_literal: true

require "minitest"
require "json"
require "rack"
require "tempfile"

# The applications that the lab serves: what they answer, behind Rack::Lint.
class LabAppsTest < Minitest::Test
  APPS = File.expand_path("../lab/apps", __dir__)

  # Each application is loaded once: Rails does not start twice in a process.
  def self.app(name)
    @apps ||= {}
    @apps[name] ||= Rack::MockRequest.new(Rack::Lint.new(load_file("#{APPS}/#{name}.ru")))
  end

  # Rack 3 answers with the application alone, Rack 2 with its options too.
  def self.load_file(file) = Array(Rack::Builder.parse_file(file)).first

  def get(name, path = "/")
    answer = self.class.app(name).get(path)
    assert_equal 200, answer.status, "#{name} #{path}: #{answer.body[0, 200]}"
    answer
  end

  def assert_lab_routes(name)
    assert_equal Process.pid.to_s, get(name, "/pid").body
    garbage = JSON.parse(get(name, "/gc").body)
    assert_equal Process.pid, garbage.fetch("pid")
    assert_kind_of Integer, garbage.fetch("count")
    assert_kind_of Integer, garbage.fetch("ms")
  end

  def test_every_application_is_here
    files = Dir["**/*.ru", base: APPS].map { |file| file.delete_suffix(".ru") }
    assert_equal %w[alloc bodies doors gc hello hello_lab neighbours rails/config release sinatra
                    sleep work], files.sort
  end

  def test_hello_is_bare
    answer = get("hello")
    assert_equal "Hello, World!", answer.body
    # Rack 2's MockResponse writes a length of its own.
    headers = answer.headers.to_h.transform_keys(&:downcase)
    assert_equal({ "content-type" => "text/plain", "content-length" => "13" }, headers)
  end

  def test_hello_with_the_lab_s_routes
    bare = get("hello")
    answer = get("hello_lab")
    assert_equal [bare.headers, bare.body], [answer.headers, answer.body]
    assert_equal 404, self.class.app("hello_lab").get("/other").status
    assert_lab_routes("hello_lab")
  end

  def test_doors
    magtag = File.expand_path("../examples/magtag/public/magtag.css", __dir__)
    assert_equal File.binread(magtag), get("doors", "/magtag.css").body
    assert_equal "Hello, World!", get("doors").body
    assert_lab_routes("doors")
  end

  def test_sleep
    begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    answer = get("sleep", "/30")
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun, :>=, 0.03
    assert_equal Process.pid.to_s, answer["X-Lab-Worker"]
    assert_equal "ok", get("sleep").body
    assert_lab_routes("sleep")
  end

  def test_neighbours_are_two_apps_in_one
    assert_equal(%w[ok ok], %w[/a/5 /b/5].map { |path| get("neighbours", path).body })
    assert_equal 404, self.class.app("neighbours").get("/c").status
  end

  def test_work_is_the_same_every_time
    first = get("work").body
    assert_operator Integer(first), :>, 0
    assert_equal first, get("work").body
    assert_lab_routes("work")
  end

  def test_sinatra
    answer = get("sinatra")
    assert_equal "Hello, World!", answer.body
    assert_equal "13", answer["content-length"]
    assert_lab_routes("sinatra")
  end

  def test_bodies
    assert_equal 100_000, get("bodies", "/bytes/100000").body.bytesize
    assert_equal 100_000, get("bodies", "/stream/100000").body.bytesize
    assert_equal "", get("bodies", "/bytes/0").body
    stream = self.class.load_file("#{APPS}/bodies.ru").call("PATH_INFO" => "/stream/20000")
    assert_equal [{ "content-type" => "text/plain" }, [16_384, 3_616]],
                 [stream[1], stream[2].map(&:bytesize)]
    assert_equal "ok", get("bodies").body
    sent = self.class.app("bodies").post("/", input: "y" * 50_000)
    assert_equal "50000", sent.body
    assert_equal 400, self.class.app("bodies").get("/bytes/99999999999").status
    assert_lab_routes("bodies")
  end

  def test_alloc_allocates
    get("alloc")
    before = GC.stat(:total_allocated_objects)
    get("alloc")
    assert_operator GC.stat(:total_allocated_objects) - before, :>, 20_000
    assert_lab_routes("alloc")
  end

  def test_gc_says_what_the_collector_did
    answer = get("gc")
    within, so_far = %w[x-gc-within x-gc-so-far].map { |name| Integer(answer[name], 10) }
    assert_includes 0..so_far, within
    assert_operator answer.body.bytesize, :>, 200_000
    assert_lab_routes("gc")
  end

  def test_release_is_the_one_that_was_loaded
    Tempfile.create do |file|
      file.write("one\n")
      file.flush
      ENV["LAB_RELEASE"] = file.path
      assert_equal "one", get("release", "/release").body
      File.write(file.path, "two\n")
      assert_equal "one", get("release", "/release").body
    end
    assert_equal "ok", get("release", "/1").body
    assert_lab_routes("release")
  ensure
    ENV.delete("LAB_RELEASE")
  end

  def test_rails
    answer = get("rails/config")
    assert_includes answer.body, "<title>Hello</title>"
    assert_includes answer.body, %(<li><a href="/?star=vega">Vega</a></li>)
    assert_equal 404, self.class.app("rails/config").get("/nowhere").status
    assert_lab_routes("rails/config")
  end
end
