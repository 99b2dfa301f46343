//! Freezing and resetting: nothing that runs after the freeze survives a reset.

use mruby::{Exception, Gem, Interp, Limits};
use std::cell::Cell;
use std::rc::Rc;

struct Box1;

impl Gem for Box1 {
    const NAME: &'static str = "box1";

    fn install(interp: &Interp) -> Result<(), Exception> {
        interp.define_class("Thing", |class| class.holds_data()).map(|_| ())
    }
}

struct Counted(Rc<Cell<u32>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

fn frozen(source: &str) -> Interp {
    let mut interp = Interp::open(&Limits { memory: 32 << 20 }).unwrap();
    interp.install::<Box1>().unwrap();
    interp.scope(|| interp.eval(source, "boot.rb").map(|_| ()).unwrap());
    interp.freeze().unwrap();
    interp
}

fn int(interp: &Interp, source: &str) -> i64 {
    interp.eval(source, "test.rb").expect(source).int().expect(source)
}

#[test]
fn nothing_survives() {
    let mut interp = frozen("$g = [1]; class App; @@c = 1; X = 'x'; def m = 1; end; A = 'a' * 500");
    let dirty = "$g << 2; $n = 5; class App; @@c += 1; def m = 2; def n = 3; Y = 1; end
      class String; def size = -1; end; A << 'more'; App::X << 'y'
      def top = 1; 5000.times { |i| ('sym' + i.to_s).to_sym }; $big = 'x' * 3_000_000
      $objects = (0..20000).map { |i| [i, i.to_s] }; Integer.send(:alias_method, :plus, :+)
      ObjectSpace.count_objects[:TOTAL]";
    let look = "[$g, $n, App.class_variable_get(:@@c), App.new.m, App.new.respond_to?(:n),
      App.const_defined?(:Y), 'abc'.size, A.size, App::X, respond_to?(:top), $big.nil?, $objects.nil?,
      1.respond_to?(:plus), ObjectSpace.count_objects[:TOTAL]].inspect";
    let seen = |interp: &Interp| interp.eval(look, "look.rb").unwrap().as_text().unwrap();
    let first = seen(&interp);
    interp.reset();
    let symbols = interp.eval("'sym17'.to_sym.object_id", "s.rb").unwrap().as_int();
    interp.reset();
    for _ in 0..4 {
        int(&interp, dirty);
        assert_ne!(seen(&interp), first);
        interp.reset();
        assert_eq!(seen(&interp), first);
        interp.reset();
    }
    assert_eq!(interp.eval("'sym17'.to_sym.object_id", "s.rb").unwrap().as_int(), symbols);
    interp.reset_by_dropping();
    assert_eq!(seen(&interp), first);
}

#[test]
fn an_exhausted_interpreter_comes_back() {
    let mut interp = frozen("$g = 1");
    for _ in 0..3 {
        let error = interp.eval("a = []; loop { a << 'x' * 1000 }", "a.rb").err().unwrap();
        assert_eq!(error.class_name(), "NoMemoryError");
        drop(error);
        assert!(interp.is_exhausted());
        interp.reset();
        assert!(!interp.is_exhausted());
        assert_eq!(int(&interp, "$g += 1; 'x' * 1_000_000; $g"), 2);
        interp.reset();
    }
    // One large object is no more than many small ones.
    assert_eq!(int(&interp, "Array.new(1_500_000, 1).size"), 1_500_000);
    interp.reset();
    // With no collector a request makes more garbage than it may have: then it collects.
    assert_eq!(int(&interp, "100.times { 'x' * 1_000_000 }; 1"), 1);
    assert!(!interp.is_exhausted());
}

#[test]
fn rust_values_are_brought_back_or_dropped() {
    let mut interp = frozen("$g = 1");
    let dropped = Rc::new(Cell::new(0));
    for round in 1..=3 {
        interp.scope(|| {
            let class = interp.class("Thing").unwrap();
            let thing = class.instance(Counted(dropped.clone())).unwrap();
            interp.set_global("$thing", thing).unwrap();
        });
        assert_eq!(dropped.get(), round - 1);
        interp.reset();
        assert_eq!(dropped.get(), round, "a request's values go with it");
    }
    drop(interp);

    let mut interp = Interp::open(&Limits::default()).unwrap();
    interp.install::<Box1>().unwrap();
    interp.scope(|| {
        let thing = interp.class("Thing").unwrap().instance(Counted(dropped.clone())).unwrap();
        interp.set_global("$thing", thing).unwrap();
    });
    interp.freeze().unwrap();
    for _ in 0..3 {
        interp.set_global("$thing", interp.nil()).unwrap();
        interp.collect_garbage(true);
        interp.full_gc();
        assert_eq!(dropped.get(), 3, "the image's are not dropped by a request");
        interp.reset();
        assert!(interp.global("$thing").unwrap().data::<Counted>().is_some());
    }
    drop(interp);
    assert_eq!(dropped.get(), 4);
}

#[test]
fn what_was_kept_before_the_freeze_stays_and_later_things_go() {
    let mut interp = Interp::open(&Limits::default()).unwrap();
    let app = interp.eval("->(n) { n + 1 }", "a.rb").unwrap().keep().unwrap();
    interp.freeze().unwrap();
    for round in 0..10 {
        let later = interp.eval("'later'", "b.rb").unwrap().keep().unwrap();
        let n = interp.int(round).unwrap();
        assert_eq!(app.get(&interp).unwrap().call("call", &[n]).unwrap().as_int(), Some(round + 1));
        interp.reset();
        assert!(later.get(&interp).is_none());
    }
}

/// A fork has the image at the same place, and its own copies of what it writes.
#[test]
fn the_image_cannot_be_written() {
    let interp = frozen("$g = 1");
    assert!(interp.is_frozen() && interp.image() > 100_000, "{}", interp.image());
}
