//! What `fresh` costs: `cargo run --release -p mruby --example fresh`. One thread, no server.

use mruby::{App, Env, Limits, Plan, Source};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const HELLO: &str = "run ->(env) { [200, { 'content-type' => 'text/plain' }, [\"hello\\n\"]] }";
const BUSY: &str = "run ->(env) { a = (0..500).map { |i| { 'key' => i.to_s } }; \
                    [200, { 'content-type' => 'text/plain' }, [a.inspect]] }";

fn boot(source: &str) -> (Arc<Plan>, App) {
    let env = Env { multiprocess: false, run_once: true };
    let source = Source::Text("app.ru".into(), source.into());
    let plan = Plan::new(source, Limits::default(), env, None);
    let app = App::boot(&plan).expect("it boots");
    (plan, app)
}

fn call(app: &App) {
    let interp = app.interp();
    interp.scope(|| {
        let env = app.template().unwrap().call("dup", &[]).unwrap();
        env.set_texts(&[(interp.str("PATH_INFO").unwrap(), b"/")]).unwrap();
        black_box(app.app().unwrap().call("call", &[env]).unwrap().len());
    });
}

fn measure(what: &str, rounds: u32, mut round: impl FnMut()) -> f64 {
    (0..rounds / 10).for_each(|_| round());
    let began = Instant::now();
    (0..rounds).for_each(|_| round());
    let each = began.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
    println!("  {what:<44} {each:8.2} us");
    each
}

fn main() {
    for (name, source) in [("hello", HELLO), ("500 hashes and their inspect", BUSY)] {
        println!("{name}");
        let (plan, mut app) = boot(source);
        measure("call, one interpreter for all", 2000, || call(&app));
        app.freeze(false).expect("it freezes");
        println!("  image: {} KiB", app.interp().image() / 1024);
        let mut pages = 0;
        measure("call, written pages copied back", 5000, || {
            call(&app);
            pages = app.interp_mut().reset();
        });
        println!("  pages that were written: {pages}");
        measure("the same, and new random numbers", 5000, || {
            call(&app);
            app.renew().expect("it is renewed");
        });
        measure("call, written pages dropped", 2000, || {
            call(&app);
            app.interp_mut().reset_by_dropping();
        });
        measure("call, opened anew each time", 200, || {
            let app = App::boot(&plan).expect("it boots");
            call(&app);
        });
    }
}
