//! Oribi's engine for CRuby, loaded as `oribi/native`.
//!
//! `Oribi::Native::Seat#take` turns a request into a Rack env, `#reply` a Rack response into reply
//! frames. The loop between them is Ruby's (`lib/oribi/worker.rb`).
//!
//! Ruby's exceptions leave by longjmp, which skips destructors: no Rust frame that a Ruby call can
//! unwind through owns anything.

mod counters;
mod env;
mod errors;
mod garbage;
mod gvl;
mod head;
mod process;
mod reply;
mod ruby;
mod seat;
mod timeout;

/// Called by Ruby when the extension is loaded.
#[unsafe(no_mangle)]
pub extern "C" fn Init_native() {
    let oribi = ruby::define_module(None, c"Oribi");
    let native = ruby::define_module(Some(oribi), c"Native");
    process::define(native);
    counters::define(oribi, native);
    head::define(oribi, native);
    env::remember_keys();
    let seat = seat::define(native);
    reply::define(seat);
    errors::define(seat);
    timeout::define(seat);
}
