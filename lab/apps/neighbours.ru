# frozen_string_literal: true

# Two apps in one, for servers without mounts: what `oribi-mounts` has under /a and /b. LAB_A names
# the first one.
first = File.expand_path("#{ENV.fetch("LAB_A", "sleep")}.ru", __dir__)
second = File.expand_path("sleep.ru", __dir__)

map("/a") { run Rack::Builder.new { eval(File.read(first), binding, first) }.to_app }
map("/b") { run Rack::Builder.new { eval(File.read(second), binding, second) }.to_app }
