#!/usr/bin/env ruby
# frozen_string_literal: true

# A script that does what its path says.
require "acgi"
require "digest"

$loaded = Process.pid
$requests = 0
ENV["OWN"] = "the script's"

# Behind whatever has been read ahead.
class Text
  def self.reply(text) = print("Content-Type: text/plain\r\n\r\n", text)
end

STEPS = {
  "/count" => ->(_) { Text.reply("#{$requests += 1} #{Process.pid} #{$loaded}") },
  "/env" => lambda do |cgi|
    ENV["LEFT"] = "behind" if cgi.params["leave"].any?
    Text.reply(Marshal.dump(ENV.to_h))
  end,
  "/params" => ->(cgi) { Text.reply(Marshal.dump(cgi.params)) },
  "/out" => lambda do |cgi|
    cookies = %w[a b].map { |name| CGI::Cookie.new(name, "1") }
    cgi.out("type" => "text/html", "cookie" => cookies) { "<p>" }
  end,
  "/head" => lambda do |_|
    print "Status: 404 Not Found\r\nX-One: 1\r\nContent-Type: text/plain\r\n\r\nno"
  end,
  "/location" => ->(_) { print "Location: /elsewhere\r\n\r\n" },
  "/empty" => ->(_) { print "Status: 204 No Content\r\nContent-Type: text/plain\r\n\r\n" },
  "/digest" => ->(_) { Text.reply(Digest::SHA256.hexdigest($stdin.read)) },
  "/cat" => lambda do |_|
    Text.reply("")
    system("cat; echo noise >&2")
  end,
  "/pull" => ->(_) { Text.reply($stdin.gets) },
  "/big" => lambda do |cgi|
    Text.reply("")
    Integer(cgi["n"]).times { |i| $stdout.write(i.to_s.rjust(1000)) }
  end,
  "/loud" => lambda do |cgi|
    Integer(cgi["n"]).times { |i| warn i.to_s.rjust(999) }
    Text.reply("quiet")
  end,
  "/exit" => lambda do |cgi|
    Text.reply("bye")
    exit(Integer(cgi["n"]))
  end,
  "/abort" => ->(_) { abort "enough" },
  "/raise" => lambda do |_|
    Text.reply("half of it")
    raise "out of order"
  end,
  "/late" => lambda do |_|
    Text.reply("x" * 200_000)
    raise "too late"
  end,
  "/nothing" => ->(_) {},
  "/prose" => ->(_) { print "Hello, World\n\nHow are you?" },
  "/close" => lambda do |_|
    Text.reply("closed")
    $stdout.close
    STDERR.close
  end,
  "/swap" => lambda do |_|
    $stdout = StringIO.new
    STDOUT.print "Content-Type: text/plain\r\n\r\nunderneath"
  end,
  "/background" => lambda do |_|
    Text.reply("at once")
    Process.detach(spawn("sleep 5; echo late"))
  end,
  "/fork" => lambda do |_|
    pid = fork
    Text.reply(pid ? "parent" : "child")
    Process.wait(pid) if pid
  end,
  "/steps" => lambda do |cgi|
    Text.reply("first\n")
    $stdout.flush
    File.read(cgi["fifo"])
    print "second\n"
  end,
  "/hold" => lambda do |cgi|
    File.read(cgi["fifo"])
    Text.reply("held by #{Process.pid}")
  end,
  "/slow" => lambda do |_|
    sleep 5
    Text.reply("slow")
  ensure
    warn "no more patience"
  end,
  "/die" => ->(_) { Process.kill("KILL", Process.pid) }
}.freeze

ACGI.each_cgi do |cgi|
  STEPS.fetch(cgi.path_info).call(cgi)
end
