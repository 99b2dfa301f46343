# frozen_string_literal: true

# /release  the release that was on disk when this code was loaded, for scenarios that deploy
# /N        sleeps N milliseconds
#
# Loading takes BOOT_SECONDS of processor time, as the loading of real applications does.
require_relative "lab"

release = File.read(ENV.fetch("LAB_RELEASE")).strip
clock = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }
loaded = clock.call + ENV.fetch("BOOT_SECONDS", "0").to_f
nil while clock.call < loaded

run Lab.around(lambda { |env|
  path = env["PATH_INFO"]
  next Lab.answer(release) if path == "/release"

  milliseconds = path.delete("/").to_f
  sleep(milliseconds / 1_000) if milliseconds.positive?
  Lab.answer("ok")
})
