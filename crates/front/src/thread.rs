//! The front's threads: one single-threaded runtime each, nothing shared but the segment.
//!
//! The first thread also accepts, and listens to the supervisor. A thread looks at its doorbell
//! whenever it runs out of work, just before it would sleep, so that no task and no system call
//! is needed to learn of replies while there is load. The doorbell's eventfd only ends that sleep;
//! nobody reads it, for it is watched for edges, and every write is one.

use crate::accept::{self, Hands};
use crate::drain::Drain;
use crate::exchange::Exchange;
use crate::pace::Pace;
use crate::shed::Shedder;
use crate::sweep;
use crate::table::{self, Table};
use crate::{Options, Setup, control, limits, pump, spool};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use wire::{FRONTS, Segment};

/// How long a request may wait beside a sleeping worker before another one is woken for it: the
/// first may have been stopped, or be slow to get up.
const NUDGE: Duration = Duration::from_millis(4);
/// How long no request comes before memory that only long replies need is given back.
const QUIET: Duration = Duration::from_secs(10);
/// Steps on disk that a front thread has under way at once.
const DISK_STEPS: usize = 8;

/// Runs all threads; returns when the front has drained.
pub fn run(setup: Setup) -> io::Result<()> {
    let segment = Segment::open(setup.segment)?.forever();
    let count = setup.bells.len();
    if count == 0 || count > FRONTS {
        return Err(io::Error::other(format!("{count} front threads; 1 to {FRONTS} are possible")));
    }
    if setup.exchanges.len() != count {
        return Err(io::Error::other("a front thread lacks its exchange socket"));
    }
    // For as long as the process lives: every connection looks at them.
    let options: &'static Options = Box::leak(Box::new(setup.options));
    let queue_timeout = options.mount.queue_timeout;
    spool::check(&options.spool_dir);
    limits::raise_descriptors();
    let drain = Drain::new();
    let mut ways = setup.bells.into_iter().zip(setup.exchanges);
    let (first_bell, first_exchange) = ways.next().expect("counted above");
    let mut hands = Hands::new();
    for (index, (bell, exchange)) in (1..).zip(ways) {
        let (give, take) = tokio::sync::mpsc::unbounded_channel();
        hands.add(give);
        let drain = drain.clone();
        let serve = move || {
            let exchange = Exchange::new(exchange);
            let runtime = runtime(Table::new(segment, index, count, exchange, options))?;
            runtime.block_on(async {
                let _bell = control::watch(bell)?;
                tokio::spawn(tick(queue_timeout));
                tokio::spawn(sweep::run(options, drain));
                accept::take_over(take).await;
                Ok::<_, io::Error>(())
            })
        };
        std::thread::Builder::new().name(format!("front {index}")).spawn(serve)?;
    }
    let exchange = Exchange::new(first_exchange);
    runtime(Table::new(segment, 0, count, exchange, options))?.block_on(async {
        let _bell = control::watch(first_bell)?;
        tokio::spawn(tick(queue_timeout));
        tokio::spawn(sweep::run(options, drain.clone()));
        control::run(setup.control, setup.supervisor, setup.listeners, hands, drain).await
    })
}

fn runtime(table: Table) -> io::Result<Runtime> {
    table::install(table);
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(DISK_STEPS)
        .on_thread_park(table::before_sleep)
        .on_thread_unpark(table::after_sleep)
        .build()
}

/// While requests are under way: looks for those that have waited too long, for one that waits
/// although a worker sleeps, and keeps the thread's pace.
async fn tick(queue_timeout: Duration) {
    let busy: Arc<tokio::sync::Notify> = table::with(|table| table.busy.clone());
    let mut shedder = Shedder::new(queue_timeout);
    let mut pace = Pace::new();
    loop {
        if table::with(|table| table.in_flight() == 0) && !shedder.has_unsaid() {
            idle(&busy).await;
        }
        tokio::time::sleep(NUDGE).await;
        pump::look();
        table::with(|table| {
            shedder.look(table);
            table.nudge(NUDGE);
            pace.look(table.requests());
        });
    }
}

/// Waits for the thread's next request. Memory of long replies is kept for those that come soon.
async fn idle(busy: &tokio::sync::Notify) {
    let touched = table::with(|table| table.has_touched());
    if touched && tokio::time::timeout(QUIET, busy.notified()).await.is_ok() {
        return;
    }
    table::with(Table::give_back);
    busy.notified().await;
}
