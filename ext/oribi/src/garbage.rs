//! What Ruby spends on collecting garbage, for the server's metrics: looked at between two requests,
//! and only when it has collected meanwhile.

use crate::ruby;
use rb_sys::{rb_funcall, rb_gc_count, rb_intern, rb_mGC};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wire::counters::server::Lives;

/// The numbers of this process's mount.
static LIVES: OnceLock<&'static Lives> = OnceLock::new();
/// Collections that have been counted, and their time in nanoseconds.
static RUNS: AtomicU64 = AtomicU64::new(0);
static TIME: AtomicU64 = AtomicU64::new(0);

/// From now on this process's collections are a mount's.
pub fn counts_for(lives: &'static Lives) {
    // The one mold that a process is.
    let _ = LIVES.set(lives);
}

/// A worker begins: what its mold has collected is not its own.
pub fn begin() {
    RUNS.store(runs(), Relaxed);
    TIME.store(time(), Relaxed);
}

/// Counts what has been collected since the last look.
pub fn note() {
    let runs = runs();
    let more = runs.wrapping_sub(RUNS.swap(runs, Relaxed));
    if more == 0 {
        return;
    }
    let Some(lives) = LIVES.get() else { return };
    let time = time();
    let spent = time.wrapping_sub(TIME.swap(time, Relaxed));
    lives.gc_runs.fetch_add(more, Relaxed);
    lives.gc_ns.fetch_add(spent, Relaxed);
}

fn runs() -> u64 {
    // SAFETY: reads a number.
    unsafe { rb_gc_count() as u64 }
}

/// `GC.total_time`: nanoseconds, of all collections.
fn time() -> u64 {
    // SAFETY: a module of Ruby's, and a method without arguments that it has since 3.1.
    let time = unsafe { rb_funcall(rb_mGC, rb_intern(c"total_time".as_ptr()), 0) };
    ruby::integer(time) as u64
}
