//! The gems while memory is short-lived: collections in every block, exceptions and jumps through
//! methods written in Rust, interpreters that are brought back, and values that are dropped once.

use mruby::{Call, Exception, Gem, Interp, Limits, Value, gems};
use std::cell::Cell;
use std::collections::HashSet;

fn open() -> Interp {
    let interp = Interp::open(&Limits::default()).expect("there is memory");
    gems::install(&interp).expect("the gems can be installed");
    interp
}

fn text(interp: &Interp, source: &str) -> String {
    let value = interp.eval(source, "storm.rb").unwrap_or_else(|error| panic!("{}", error.full()));
    value.to_s().expect("it has a to_s")
}

#[test]
fn a_collection_in_every_block_does_no_harm() {
    let interp = open();
    let source = r##"
        class Loud
          def to_json(*) = (GC.start; { loud: "x" * 50 }.to_json)
          def to_s = (GC.start; "loud" * 10)
          def to_str = (GC.start; "a1")
        end
        10.times do |round|
          GC.start
          text = "key#{round}=value, " * 20
          out = text.gsub(/(?<k>\w+)=(\w+)/) { GC.start; $~[:k].upcase + text.scan(/,/).size.to_s }
          raise out unless out.start_with?("KEY#{round}20, KEY")
          seen = []
          text.scan(/(\w)(\d+)=/) { |a, b| GC.start; seen << a << b }
          raise seen.inspect unless seen.size == 40 && seen[1] == round.to_s
          raise "hash" unless "abc".gsub(/./, Hash.new { |h, k| GC.start; h[k] = k * 2 }) == "aabbcc"
          json = JSON.generate("a" * 100 => [Loud.new, { nil => Loud.new }, [text] * 3], Loud.new => 1)
          back = JSON.parse(json)
          raise back.inspect unless back.keys == ["a" * 100, "loud" * 10] && back["a" * 100][0]["loud"].size == 50
          page = ERB.new("<% 5.times do |i| GC.start %><%= Loud.new %><%= i %><% end %>").result
          raise page unless page.size == 205
          raise "union" unless Regexp.union(Loud.new, /b/, "c" * round) =~ "xxb"
          raise "time" unless Time.at(round).utc.strftime("%S").to_i == round
        end
        "done""##;
    assert_eq!(text(&interp, source), "done");
}

#[test]
fn many_values_are_let_go_on_the_way() {
    let interp = open();
    text(&interp, "GC.start; 1");
    let before = interp.full_gc();
    let source = r##"
        list = JSON.parse("[" + (["{\"a\":[1,\"x\"]}"] * 5_000).join(",") + "]")
        words = ("word " * 5_000).scan(/\w+/).size + ("a," * 5_000).split(/,/).size
        1000.times { |i| Regexp.new("a#{i}b") =~ "a#{i}b" }
        "#{list.size} #{words}""##;
    assert_eq!(text(&interp, source), "5000 10000");
    text(&interp, "/x/ =~ nil; nil");
    let after = interp.full_gc();
    assert!(after < before + 2_000, "{before} objects have become {after}");
}

/// A loop over matches takes no more than the text and a little for each of them.
#[test]
fn matches_share_their_text() {
    let interp = Interp::open(&Limits { memory: 32 << 20 }).expect("there is memory");
    gems::install(&interp).expect("the gems can be installed");
    let source = r##"
        text = "word " * 12_000
        raise "slow" unless text.rindex(/x/).nil? && text.rindex(/w./) == text.size - 5
        kept = []
        text.gsub(/w(o)/) { kept << $~ if kept.size < 500; "W" }.size.to_s + kept[9].post_match.size.to_s"##;
    assert_eq!(text(&interp, source), "4800059953");
    let long = "begin; ('a' * 15_000).gsub(/a/, 'b' * 10_000); rescue NoMemoryError; 'no'; end";
    assert_eq!(text(&interp, long), "no");
}

#[test]
fn exceptions_and_jumps_pass_through_rust() {
    let interp = open();
    let lines = [
        // Through the block, through JSON's walk, through a Hash's default, through to_str.
        ("begin; 'abc'.gsub(/b/) { raise IOError, 'a' }; rescue IOError => e; e.message; end", "a"),
        (
            "class A; def to_json(*) = raise(IOError, 'b'); end
             begin; [{ x: A.new }].to_json; rescue IOError => e; e.message; end",
            "b",
        ),
        (
            "begin; 'a'.gsub(/a/, Hash.new { raise IOError, 'c' }); rescue IOError => e; e.message; end",
            "c",
        ),
        (
            "class B; def to_str = raise(IOError, 'd'); end
             begin; Regexp.new(B.new); rescue IOError => e; e.message; end",
            "d",
        ),
        ("'abc'.gsub(/b/) { break 'e' }", "e"),
        ("'abc'.scan(/./) { |x| break x + 'f' }", "af"),
        ("def g = 'abc'.gsub(/b/) { return 'g' }; g", "g"),
        ("catch = [1].each { 'a'.gsub(/a/) { next 'h' } }; 'a'.gsub(/a/) { next 'h' }", "h"),
        ("ERB.new('<% 3.times do |i| %><% break if i == 1 %><%= i %><% end %>i').result", "0i"),
        (
            "begin; 'a'.gsub(/a/) { 'b'.gsub(/b/) { JSON.parse('{') } }; rescue JSON::ParserError => e; 'j'; end",
            "j",
        ),
        ("begin; ('a' * 3000) =~ /(a*)*\\1b/; rescue Regexp::TimeoutError; 'k'; end", "k"),
    ];
    for (source, want) in lines {
        for _ in 0..3 {
            assert_eq!(text(&interp, source), want, "{source}");
        }
    }
}

thread_local! {
    static ALIVE: Cell<i32> = const { Cell::new(0) };
}

struct Counted;

impl Counted {
    fn new() -> Counted {
        ALIVE.set(ALIVE.get() + 1);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Twice would make it negative in the end.
        ALIVE.set(ALIVE.get() - 1);
    }
}

struct Things;

impl Gem for Things {
    const NAME: &'static str = "things";

    fn install(interp: &Interp) -> Result<(), Exception> {
        interp.define_class("Thing", |class| {
            class.holds_data()?;
            class.method("initialize", 0..=1, initialize)
        })?;
        Ok(())
    }
}

fn initialize<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    call.this().set_data(Counted::new())?;
    if call.arg(0).truthy() {
        return Err(Exception::new("IOError", "not this one"));
    }
    Ok(call.this())
}

#[test]
fn rust_values_are_dropped_once() {
    let interp = open();
    interp.install::<Things>().unwrap();
    text(&interp, "$kept = Thing.new; 500.times { Thing.new }; 'ok'");
    let twice = "thing = Thing.new; begin; thing.send(:initialize); rescue TypeError; 'no'; end";
    assert_eq!(text(&interp, twice), "no");
    text(&interp, "100.times { begin; Thing.new(true); rescue IOError; end }; thing = nil; 'ok'");
    text(&interp, "Thing.allocate rescue nil; GC.start; 'ok'");
    interp.full_gc();
    assert!((1..10).contains(&ALIVE.get()), "{}", ALIVE.get());
    drop(interp);
    assert_eq!(ALIVE.get(), 0);
}

/// The same after a reset: what was made before the freeze stays, what came later goes.
#[test]
fn patterns_outlive_a_reset_and_those_of_a_request_do_not() {
    let mut interp = open();
    interp.install::<Things>().unwrap();
    text(
        &interp,
        r##"PATTERN = /(?<word>\w+)@(\w+)/; $thing = Thing.new; TEMPLATE = ERB.new("<%= PATTERN.source.size %>,<%= SecureRandom.hex(8) %>")
           def request(n)
             own = Regexp.new("x#{n}y(?<z>.)")
             own =~ "x#{n}yz" or raise
             100.times { Thing.new }
             GC.start
             raise unless PATTERN.match("a@b")[:word] == "a" && $~.nil? == false
             [own.source, $~.pre_match, TEMPLATE.result, JSON.parse("[1]"), SecureRandom.uuid, rand].inspect
           end
           TEMPLATE.result"##,
    );
    assert!(!interp.has_outside(), "the gems would make fresh slow");
    assert_eq!(ALIVE.get(), 1);
    interp.freeze().expect("it can be frozen");
    let mut seen = HashSet::new();
    for n in 0..60 {
        assert_eq!(text(&interp, "[$~, $1].inspect"), "[nil, nil]");
        assert!(seen.insert(text(&interp, &format!("request({n})"))), "two requests said the same");
        interp.reset();
        assert_eq!(ALIVE.get(), 1, "after request {n}");
    }
    drop(interp);
    assert_eq!(ALIVE.get(), 0);
}

/// Random values of requests that start from the same memory.
#[test]
fn requests_of_one_image_draw_different_numbers() {
    let mut interp = open();
    interp.freeze().expect("it can be frozen");
    let sources = [
        "SecureRandom.hex",
        "SecureRandom.uuid",
        "SecureRandom.random_number(1 << 60)",
        "SecureRandom.alphanumeric",
        "SecureRandom.base64",
        "SecureRandom.random_number",
    ];
    for source in sources {
        let mut seen = HashSet::new();
        for _ in 0..50 {
            assert!(seen.insert(text(&interp, source)), "{source} says the same again");
            interp.reset();
        }
    }
}
