# frozen_string_literal: true

# Everything that a request may leave in its interpreter: `/leave/NAME` leaves it, `/see/NAME` says
# what a request finds. Each pair is two lambdas.

require "rack/lint"
require "securerandom"
require "tempfile"
require "uri"

# A place in the interpreter.
class Hoard
  @@kept = [] # rubocop:disable Style/ClassVars

  def self.kept = @@kept
end

PLACE = __dir__
MARK = File.join(PLACE, "mark")
# rubocop:disable Style/GlobalVars
LEAKS = {
  "global" => [-> { $left = 1 }, -> { $left.inspect }],
  "class_variable" => [-> { Hoard.kept << 1 }, -> { Hoard.kept.size }],
  "constant" => [-> { Object.const_set(:LEFT, 1) }, -> { Object.const_defined?(:LEFT) }],
  "method" => [-> { Integer.class_eval { def left = 1 } }, -> { 1.respond_to?(:left) }],
  "env" => [-> { ENV["LEFT"] = "1" }, -> { ENV["LEFT"].inspect }],
  "directory" => [-> { Dir.chdir("/proc") }, -> { Dir.pwd == "/proc" }],
  "umask" => [-> { File.umask(0o007) }, -> { File.umask == 0o007 }],
  "file" => [-> { $file = File.open(__FILE__) },
             -> { Dir["/proc/self/fd/*"].any? { |fd| File.identical?(fd, __FILE__) } }],
  "memory" => [-> { Hoard.kept << ("x" * (32 << 20)) },
               -> { File.read("/proc/self/status")[/RssAnon:\s+(\d+)/, 1].to_i > (32 << 10) }],
  "seed" => [-> { srand(42) }, -> { rand(1 << 60) == Random.new(42).rand(1 << 60) }],
  "feature" => [-> { require "English" }, -> { $LOADED_FEATURES.any?(/English\.rb/) }],
  "thread" => [-> { Thread.new { sleep } }, -> { Thread.list.size > 1 }],
  "trap" => [-> { trap("WINCH") { nil } }, -> { !trap("WINCH", "DEFAULT").is_a?(String) }],
  "at_exit" => [-> { at_exit { File.write(MARK, "") } }, -> { !File.exist?(MARK) }],
  "object_space" => [-> { $strings = Array.new(9) { +"left-#{_1}" } },
                     -> { ObjectSpace.each_object(String).count { _1.match?(/\Aleft-\d/) } }],
  "thread_variable" => [-> { Thread.current[:left] = 1 }, -> { Thread.current[:left].inspect }]
}.freeze
# rubocop:enable Style/GlobalVars

RANDOM = lambda do
  [rand, Random.rand, Random.bytes(8), SecureRandom.hex(8), Random.new_seed, [*1..99].shuffle,
   Dir::Tmpname.create("t") { |path| path }].map(&:inspect).join("\n")
end

use Rack::Lint
run(lambda do |env|
  _, what, name = env["PATH_INFO"].split("/")
  said = case what
         when "leave" then LEAKS.fetch(name).first.call && "left"
         when "see" then LEAKS.fetch(name).last.call.to_s
         when "names" then LEAKS.keys.join(" ")
         when "random" then RANDOM.call
         when "hold" then File.read(File.join(PLACE, name)) && "held"
         when "at_once"
           File.write(File.join(PLACE, "turns"), "+\n", mode: "a")
           sleep(0.05)
           File.write(File.join(PLACE, "turns"), "-\n", mode: "a")
           "done"
         end
  [200, { "content-type" => "text/plain", "x-pid" => Process.pid.to_s }, [said.to_s]]
end)
