//! The front's threads: one single-threaded runtime each, nothing shared but segments.
//!
//! The first thread also accepts, and listens to the supervisor. A thread looks at its doorbell
//! whenever it runs out of work, just before it would sleep, so that no task and no system call
//! is needed to learn of replies while there is load. The doorbell's eventfd only ends that sleep;
//! nobody reads it, for it is watched for edges, and every write is one.

use crate::accept::{self, Hands};
use crate::admin::Admin;
use crate::drain::Drain;
use crate::here::{self, Here};
use crate::pace::Pace;
use crate::sweep;
use crate::{Options, Setup, control, limits, spool, stats};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use wire::FRONTS;
use wire::counters::Counters;

/// How long a request may wait beside a sleeping worker before another one is woken for it: the
/// first may have been stopped, or be slow to get up.
const NUDGE: Duration = Duration::from_millis(4);
/// How long no request comes before memory that only long replies need is given back.
const QUIET: Duration = Duration::from_secs(10);
/// Steps on disk that a front thread has under way at once.
const DISK_STEPS: usize = 8;

/// Runs all threads; returns when the front has drained.
pub fn run(setup: Setup) -> io::Result<()> {
    let Setup { supervisor, control, bells, listeners, .. } = setup;
    let shared = Counters::open(setup.counters)?;
    let counters = shared.server();
    let count = bells.len();
    if count == 0 || count > FRONTS {
        return Err(io::Error::other(format!("{count} front threads; 1 to {FRONTS} are possible")));
    }
    // For as long as the process lives: every connection looks at them.
    let options: &'static Options = Box::leak(Box::new(setup.options));
    spool::check(&options.spool_dir);
    limits::raise_descriptors();
    let drain = Drain::new();
    let mut bells = bells.into_iter();
    let first_bell = bells.next().expect("counted above");
    let mut hands = Hands::new();
    for (index, bell) in (1..).zip(bells) {
        let (give, take) = tokio::sync::mpsc::unbounded_channel();
        hands.add(give);
        let drain = drain.clone();
        let serve = move || {
            stats::install(counters, index);
            runtime(Here::new(options, index, count))?.block_on(async {
                let _bell = control::watch(bell)?;
                tokio::spawn(tick());
                tokio::spawn(sweep::run(options, drain));
                accept::take_over(take).await;
                Ok::<_, io::Error>(())
            })
        };
        std::thread::Builder::new().name(format!("front {index}")).spawn(serve)?;
    }
    stats::install(counters, 0);
    runtime(Here::new(options, 0, count))?.block_on(async {
        let _bell = control::watch(first_bell)?;
        let admin = Admin::open(setup.admin, shared, count)?;
        tokio::spawn(tick());
        tokio::spawn(sweep::run(options, drain.clone()));
        control::run(control, supervisor, listeners, admin, hands, drain).await
    })
}

fn runtime(here: Here) -> io::Result<Runtime> {
    here::install(here);
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(DISK_STEPS)
        .on_thread_park(here::before_sleep)
        .on_thread_unpark(here::after_sleep)
        .build()
}

/// While requests are under way: looks for those that have waited too long, for one that waits
/// although a worker sleeps, and keeps the thread's pace.
async fn tick() {
    let busy: Arc<Notify> = here::with(Here::busy);
    let mut pace = Pace::new();
    loop {
        if here::with(Here::is_quiet) {
            idle(&busy).await;
        }
        tokio::time::sleep(NUDGE).await;
        here::with(|here| {
            here.tick(NUDGE);
            pace.look(here.requests());
        });
    }
}

/// Waits for the thread's next request. Memory of long replies is kept for those that come soon.
async fn idle(busy: &Notify) {
    let touched = here::with(Here::has_touched);
    if touched && tokio::time::timeout(QUIET, busy.notified()).await.is_ok() {
        return;
    }
    here::with(Here::give_back);
    busy.notified().await;
}
