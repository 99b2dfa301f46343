# frozen_string_literal: true

require "helper_case"

# What a browser makes of it.
class BrowserTest < Helper::Case
  ARGUMENTS = %w[--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run
                 --disable-background-networking --disable-component-update --disable-sync].freeze

  def test_events_are_shown_as_they_come_and_web_sockets_talk
    start("browser.ru", "-w", "1", "-t", "3")
    profile = Dir.mktmpdir("oribi-browser")
    browser = Process.spawn("chromium", *ARGUMENTS, "--user-data-dir=#{profile}", url,
                            %i[out err] => File.join(profile, "log"), :pgroup => true)
    shown = wait_until("the page's report; log: #{server.log}", within: 60) do
      lines("result") unless lines("result").empty?
    end
    assert_equal ["event 0", "event 1", "event 2", "<gr\u00fc\u00dfe>", "/full 1000 true",
                  "<gr\u00fc\u00dfe>", "/partial 1000 true"], shown
  ensure
    finish(browser) if browser
    remove(profile) if profile
  end

  # With all its processes: those whose parents are gone are this process's to reap.
  def finish(browser)
    Process.kill("KILL", -browser)
    loop { Process.wait(-browser) }
  rescue Errno::ECHILD
    nil
  end

  # Its processes end one after the other, and write until they do.
  def remove(folder)
    wait_until("the browser's folder is gone") do
      FileUtils.rm_rf(folder)
      !File.exist?(folder)
    end
  end
end
