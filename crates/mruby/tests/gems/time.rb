Time.at(784111777).utc.strftime("%Y-%m-%d %H:%M:%S %z %Z %a %b %j %-d %e %I %p %L %s %%") # => "1994-11-06 08:49:37 +0000 UTC Sun Nov 310 6  6 08 AM 000 784111777 %"
Time.at(784111777, 123456).utc.strftime("%L %N %6N %3N") # => "123 123456000 123456 123"
Time.at(784111777).utc.httpdate # => "Sun, 06 Nov 1994 08:49:37 GMT"
Time.at(784111777).httpdate # => "Sun, 06 Nov 1994 08:49:37 GMT"
Time.at(784111777).utc.iso8601 # => "1994-11-06T08:49:37Z"
Time.at(784111777, 123456).utc.xmlschema(3) # => "1994-11-06T08:49:37.123Z"
Time.at(784111777).utc.zone # => "UTC"
Time.at(784111777).utc.utc_offset # => 0
Time.at(1.5).usec # => 500000
Time.at(1, 250, :millisecond).usec # => 250000
Time.at(1, 250_000).to_f # => 1.25
Time.at(1, 5, :nope) # raises ArgumentError
Time.at(Time.at(7)).to_i # => 7
Time.at(1, 500).nsec # => 500000
Time.iso8601("1994-11-06T08:49:37Z").to_i # => 784111777
Time.iso8601("1994-11-06T08:49:37Z").utc? # => true
Time.iso8601("1994-11-06T09:49:37.25+01:00").to_f # => 784111777.25
Time.iso8601("yesterday") # raises ArgumentError
Time.httpdate("Sun, 06 Nov 1994 08:49:37 GMT").to_i # => 784111777
Time.httpdate("Sunday, 06-Nov-94 08:49:37 GMT").utc? # => true
Time.httpdate("Sun Nov  6 08:49:37 1994").to_i # => 784111777
Time.httpdate("soon") # raises ArgumentError
Time.at(0).strftime("%H:%M %z") == Time.at(0).localtime.strftime("%H:%M %z") # => true
Time.at(0).iso8601.size >= 20 # => true
Time.now.strftime("%s").to_i - Time.now.to_i <= 1 # => true
Time.at(784111777).utc.to_json # => "\"1994-11-06 08:49:37 UTC\""
