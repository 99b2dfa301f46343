//! The interpreter from Rust: values, calls, exceptions, gems, memory.

use mruby::{Call, Exception, Gem, Interp, Kind, Limits, Value};
use std::cell::Cell;
use std::rc::Rc;

fn open() -> Interp {
    Interp::open(&Limits::default()).expect("an interpreter opens")
}

fn int(interp: &Interp, source: &str) -> i64 {
    interp.eval(source, "test.rb").expect(source).int().expect(source)
}

fn raised(interp: &Interp, source: &str) -> Exception {
    interp.eval(source, "test.rb").err().expect(source)
}

#[test]
fn values_pass_both_ways() {
    let interp = open();
    let eval = |source: &str| interp.eval(source, "test.rb").unwrap();
    assert_eq!(eval("1 + 2").as_int(), Some(3));
    assert_eq!(eval("1 << 62").as_int(), Some(1 << 62));
    assert_eq!(eval("0.5").as_float(), Some(0.5));
    assert_eq!(eval("\"a\\0b\"").as_bytes().as_deref(), Some(b"a\0b".as_slice()));
    assert_eq!(eval(":name").as_text().as_deref(), Some("name"));
    assert_eq!((eval("true").as_bool(), eval("nil").as_bool()), (Some(true), None));
    assert!(eval("nil").is_nil() && !eval("false").is_nil() && !eval("false").truthy());
    assert_eq!(eval("[1, [2]]").items()[1].entry(0).as_int(), Some(2));
    let pairs = eval("{ a: 1, 'b' => 2 }").pairs().unwrap();
    let text = |value: Value| value.to_s().unwrap();
    let pairs: Vec<String> = pairs.iter().map(|(k, v)| text(*k) + "=" + &text(*v)).collect();
    assert_eq!(pairs, ["a=1", "b=2"]);
    let kinds = ["nil", "1", "1.5", ":a", "''", "[]", "{}", "proc {}", "String", "Object.new"];
    let kinds: Vec<Kind> = kinds.iter().map(|source| eval(source).kind()).collect();
    use Kind::*;
    assert_eq!(kinds, [Nil, Int, Float, Symbol, Str, Array, Hash, Proc, Class, Object]);

    let hash = interp.hash().unwrap();
    let list = interp.array(&[interp.int(1).unwrap(), interp.bool(false)]).unwrap();
    list.push(interp.float(2.5).unwrap()).unwrap();
    hash.set(interp.str("key").unwrap(), list).unwrap();
    hash.set(interp.symbol("name").unwrap(), interp.nil()).unwrap();
    interp.set_global("$it", hash).unwrap();
    assert_eq!(int(&interp, "$it == { 'key' => [1, false, 2.5], name: nil } ? 1 : 0"), 1);
    assert_eq!(interp.global("$it").unwrap().call("size", &[]).unwrap().as_int(), Some(2));
}

#[test]
fn mistakes_are_exceptions_not_jumps() {
    let interp = open();
    let error = raised(&interp, "def a = raise(ArgumentError, 'no')\n\n\na");
    assert_eq!((error.class_name(), error.message()), ("ArgumentError", "no"));
    assert_eq!(error.backtrace()[0], "test.rb:1:in a");
    assert_eq!(error.full(), "test.rb:1:in a: no (ArgumentError)\n\tfrom test.rb:4");
    assert_eq!(raised(&interp, "x = (").class_name(), "SyntaxError");
    assert!(raised(&interp, "\n\n)").message().starts_with("test.rb:3: "));
    let one = interp.int(1).unwrap();
    assert_eq!(one.call("nothing", &[]).err().unwrap().class_name(), "NoMethodError");
    assert_eq!(one.text().err().unwrap().to_string(), "Integer is not a String (TypeError)");
    assert_eq!(one.push(one).err().unwrap().class_name(), "TypeError");
    assert_eq!(one.set_ivar("@a", one).err().unwrap().class_name(), "TypeError");
    assert!(interp.class("No::Such").is_err());
    // An exception whose message is one.
    let odd = "class Odd < StandardError; def message = raise('again'); end; raise Odd";
    assert_eq!(raised(&interp, odd).class_name(), "Odd");
    // It goes on.
    assert_eq!(int(&interp, "40 + 2"), 42);
}

struct Sample;

struct Noisy(Rc<Cell<u32>>);

impl Drop for Noisy {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

fn each_twice<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let block = call.block().ok_or_else(|| Exception::new("ArgumentError", "no block"))?;
    for item in call.arg(0).items() {
        block.call("call", &[item])?;
        block.call("call", &[item])?;
    }
    Ok(call.this())
}

impl Gem for Sample {
    const NAME: &'static str = "sample";

    fn install(interp: &Interp) -> Result<(), Exception> {
        interp.define_module("Sample", |module| {
            module.singleton_method("each_twice", 1..=1, each_twice)?;
            module
                .singleton_method("any", .., |call| call.interp().int(call.args().len() as i64))?;
            module.singleton_method("fail", 0..=1, |call| {
                let class = if call.arg(0).is_nil() { "Sample::Error" } else { "Unknown" };
                Err(Exception::new(class, "as told"))
            })?;
            module.singleton_method("panic", 0..=0, |_| panic!("a panic on purpose"))?;
            module.singleton_method("pass", 0..=0, |call| call.this().call("oops", &[]))?;
            module.constant("ANSWER", interp.int(42)?)
        })?;
        let standard = interp.class("StandardError")?;
        interp.define_class_of("Sample::Error", Some(&standard), |_| Ok(()))?;
        interp.define_class("Sample::Thing", |class| class.holds_data())?;
        Ok(())
    }
}

#[test]
fn methods_are_written_in_rust() {
    let interp = open();
    interp.install::<Sample>().unwrap();
    assert_eq!(int(&interp, "n = 0; Sample.each_twice([1, 2, 3]) { |i| n += i }; n"), 12);
    assert_eq!(int(&interp, "Sample::ANSWER"), 42);
    assert_eq!(int(&interp, "Sample.any + Sample.any(1, 2, a: 3)"), 3);
    assert_eq!(int(&interp, "begin; Sample.fail; rescue Sample::Error; 1; end"), 1);
    assert_eq!(raised(&interp, "Sample.fail(1)").class_name(), "RuntimeError");
    let count = raised(&interp, "Sample.each_twice");
    assert_eq!(
        count.to_string(),
        "wrong number of arguments (given 0, expected 1) (ArgumentError)"
    );
    // What a block raises passes Rust as what it is, and comes out with its ivars.
    let through = "class Mine < StandardError; attr_accessor :x; end
      begin; Sample.each_twice([1]) { e = Mine.new('a'); e.x = 7; raise e }; rescue Mine => e; e.x; end";
    assert_eq!(int(&interp, through), 7);
    let through = raised(&interp, "def Sample.oops = raise('deep')\nSample.pass");
    assert_eq!(through.backtrace()[0], "test.rb:1:in oops");
    // Jumps out of a block over a frame of Rust's.
    assert_eq!(int(&interp, "Sample.each_twice([1, 2]) { |i| break i + 8 }"), 9);
    std::panic::set_hook(Box::new(|_| {}));
    assert!(raised(&interp, "Sample.panic").message().contains("panicked"));
    let _ = std::panic::take_hook();
    assert_eq!(int(&interp, "1"), 1);
}

#[test]
fn rust_values_live_as_long_as_their_objects() {
    let interp = open();
    interp.install::<Sample>().unwrap();
    let dropped = Rc::new(Cell::new(0));
    interp.scope(|| {
        let class = interp.class("Sample::Thing").unwrap();
        for _ in 0..1000 {
            let thing = class.instance(Noisy(dropped.clone())).unwrap();
            assert!(thing.data::<Noisy>().is_some() && thing.data::<u32>().is_none());
        }
        interp.set_global("$thing", class.instance(Noisy(dropped.clone())).unwrap()).unwrap();
        // An object has one value for ever.
        let thing = interp.eval("Sample::Thing.new", "test.rb").unwrap();
        assert!(thing.data::<Noisy>().is_none());
        thing.set_data(Noisy(dropped.clone())).unwrap();
        assert_eq!(thing.set_data(Noisy(dropped.clone())).err().unwrap().class_name(), "TypeError");
        assert_eq!(dropped.get(), 1, "the second one is dropped at once");
        assert!(interp.int(1).unwrap().set_data(1).is_err());
    });
    interp.full_gc();
    interp.full_gc();
    assert!(dropped.get() > 990, "{}", dropped.get());
    drop(interp);
    assert_eq!(dropped.get(), 1003);
}

#[test]
fn what_is_kept_stays() {
    let interp = open();
    let kept = interp.scope(|| interp.eval("'kept' * 100", "test.rb").unwrap().keep().unwrap());
    interp.scope(|| interp.eval("10000.times { 'x' * 100 }", "test.rb").map(|_| ()).unwrap());
    interp.full_gc();
    assert_eq!(kept.get(&interp).unwrap().as_text().unwrap(), "kept".repeat(100));
    let other = open();
    assert!(kept.get(&other).is_none(), "it belongs to one interpreter");
    drop(interp);
    assert!(kept.get(&other).is_none());
}

#[test]
fn programs_run_in_any_interpreter() {
    let program = open().compile(b"def twice(x) = x * 2\n$n = ($n || 0) + 1\ntwice($n)", "p.rb");
    let program = program.unwrap();
    let (one, two) = (open(), open());
    assert_eq!(one.run(&program).unwrap().as_int(), Some(2));
    assert_eq!(one.run(&program).unwrap().as_int(), Some(4));
    assert_eq!(two.run(&program).unwrap().as_int(), Some(2));
    let error = two.eval("twice(nil)", "q.rb").err().unwrap();
    assert_eq!(error.backtrace(), ["p.rb:1:in twice", "q.rb:1"]);
}

#[test]
fn memory_has_a_limit() {
    let interp = Interp::open(&Limits { memory: 16 << 20 }).unwrap();
    for source in
        ["a = []; loop { a << 'x' * 1000 }", "s = 'x'; loop { s << s }", "'x' * (1 << 40)"]
    {
        let interp = Interp::open(&Limits { memory: 16 << 20 }).unwrap();
        assert_eq!(raised(&interp, source).class_name(), "NoMemoryError", "{source}");
        assert!(interp.is_exhausted());
        // What the app does about it works.
        let rescued = format!("begin; {source}; rescue NoMemoryError => e; e.message.size; end");
        assert!(int(&interp, &rescued) > 0);
    }
    // Garbage is no reason.
    int(&interp, "200.times { |i| 'x' * 1_000_000 }");
    let interp = Interp::open(&Limits { memory: 16 << 20 }).unwrap();
    int(&interp, "s = ''; 3.times { s << 'x' * 1_000_000 }; s.size");
    assert!(!interp.is_exhausted());
    let interp = Interp::open(&Limits { memory: 64 << 20 }).unwrap();
    assert_eq!(int(&interp, "Array.new(3_000_000, 1).size"), 3_000_000);
    assert_eq!(int(&interp, "('x' * 3_000_000).bytes.size"), 3_000_000);
}

#[test]
fn recursion_has_an_end() {
    let interp = open();
    for source in [
        "def a = a\na",
        "def a(n) = [n].each { |i| a(i + 1) }\na(0)",
        "def a(n) = [2, 1].sort { |x, y| a(n) }\na(0)",
        "class A; def to_s = \"#{self}\"; end\nA.new.to_s",
        "class B; def method_missing(name, *args) = oops(name); end\nB.new.x",
        "def h = Hash.new { |hash, key| hash[key] }[1]\nh",
        "def s = send(:s)\ns",
        "def i = instance_eval { i }\ni",
        "def e = begin; e; ensure; 1; end\ne",
        "l = -> { l.call }\nl.call",
    ] {
        let error = raised(&interp, source);
        let expected = ["SystemStackError", "NoMemoryError"];
        assert!(expected.contains(&error.class_name()), "{source}: {error}");
    }
    assert_eq!(int(&interp, "2"), 2);
}
