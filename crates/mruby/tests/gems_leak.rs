//! Opening, using and closing an interpreter leaves nothing: no byte, no mapping, no descriptor.

use mruby::{Interp, Limits, gems};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::fs;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const APP: &str = r##"
  text = "a=1, b=2".gsub(/(?<k>\w)=(\d)/) { "#{$~[:k]}:#{$2}" }
  begin; JSON.parse("{"); rescue JSON::ParserError; end
  begin; "x".gsub(/x/) { raise "no" }; rescue RuntimeError; end
  "x".gsub(/x/) { break }
  page = ERB.new("<%= a %>").result_with_hash(a: JSON.generate("t" => [text, 1.5, nil]))
  100.times { |i| Regexp.new("own#{i % 7}").match("own3") }
  page + SecureRandom.uuid + Time.now.utc.httpdate + Oribi.counter(:leaks).get.to_s
"##;

fn live_bytes() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn lines(path: &str) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, |list| list.count())
}

fn round(resets: bool) {
    let mut interp = Interp::open(&Limits::default()).expect("there is memory");
    gems::install(&interp).expect("the gems can be installed");
    interp.eval(APP, "app.rb").expect("it runs");
    if resets {
        interp.freeze().expect("it can be frozen");
        for _ in 0..3 {
            interp.eval(APP, "app.rb").expect("it runs");
            interp.reset();
        }
    }
}

/// One test alone: another one's memory would be counted, too.
#[test]
fn nothing_is_left() {
    for resets in [false, true] {
        // Patterns and bytecode are kept once; the zone's data, too.
        (0..3).for_each(|_| round(resets));
        let before = (live_bytes(), lines("/proc/self/maps"), descriptors());
        (0..15).for_each(|_| round(resets));
        let after = (live_bytes(), lines("/proc/self/maps"), descriptors());
        assert_eq!(after, before, "bytes, mappings, descriptors");
    }
}
