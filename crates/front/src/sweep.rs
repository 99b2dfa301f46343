//! The connections of a front thread, looked at a few times a second: what is due on one, its task
//! is woken for. So timeouts cost a request no timer, only a store of a coarse clock.

use crate::drain::Drain;
use crate::link::{Due, Moment};
use crate::peer::Peer;
use crate::{Options, here, table};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use wire::{State, now_ns};

/// The longest time between two looks.
const LONGEST: Duration = Duration::from_millis(250);
/// The shortest, for timeouts that are shorter than anybody should set.
const SHORTEST: Duration = Duration::from_millis(10);

thread_local! {
    static ROUND: Round = Round::default();
}

#[derive(Default)]
struct Round {
    /// Milliseconds of the monotonic clock when it was last looked at.
    now: Cell<u64>,
    /// The time between two looks, in milliseconds.
    period: Cell<u64>,
    draining: Cell<Option<u64>>,
    places: RefCell<Vec<Option<Place>>>,
    free: RefCell<Vec<usize>>,
    arrived: Arc<Notify>,
}

struct Place {
    peer: Arc<Peer>,
    waker: Waker,
}

/// The thread's clock in milliseconds; it lags by the time between two looks.
pub fn now() -> u64 {
    ROUND.with(|round| round.now.get())
}

/// A connection that is looked at, until this is dropped.
pub struct Watched(usize);

/// Has the calling task's connection looked at from now on.
pub async fn watch(peer: Arc<Peer>) -> Watched {
    let waker = poll_fn(|context| Poll::Ready(context.waker().clone())).await;
    ROUND.with(|round| {
        let mut places = round.places.borrow_mut();
        let mut free = round.free.borrow_mut();
        if places.len() == free.len() {
            // Nobody has looked at the clock for a while.
            round.tick();
            round.arrived.notify_one();
        }
        peer.link.begin();
        let place = Some(Place { peer, waker });
        Watched(match free.pop() {
            Some(index) => {
                places[index] = place;
                index
            }
            None => {
                places.push(place);
                places.len() - 1
            }
        })
    })
}

impl Drop for Watched {
    fn drop(&mut self) {
        ROUND.with(|round| {
            round.places.borrow_mut()[self.0] = None;
            round.free.borrow_mut().push(self.0);
        });
    }
}

/// What is due on a connection of this thread.
pub fn due(peer: &Peer) -> Option<Due> {
    let queued = |mount, slot: u32, position| {
        let word = table::find(mount, |table| table.board().slots[slot as usize].word());
        word.is_some_and(|word| word.state == State::Queued && word.position == position)
    };
    peer.link.judge(ROUND.with(Round::moment), here::options(), queued)
}

impl Round {
    fn tick(&self) {
        self.now.set(now_ns() / 1_000_000);
    }

    fn moment(&self) -> Moment {
        Moment { now: self.now.get(), draining: self.draining.get(), lag: self.period.get() }
    }

    fn is_empty(&self) -> bool {
        self.places.borrow().len() == self.free.borrow().len()
    }

    fn look(&self) {
        for place in self.places.borrow().iter().flatten() {
            // An end that is hidden may have become a reset, which only its task can tell.
            if due(&place.peer).is_some() || place.peer.link.has_ended() {
                place.peer.link.mark_due();
                place.waker.wake_by_ref();
            }
        }
    }
}

/// Looks for as long as the thread lives, but only while there are connections.
pub async fn run(options: &'static Options, drain: Arc<Drain>) {
    let (period, arrived) = ROUND.with(|round| {
        let period = period(options);
        round.period.set(period.as_millis() as u64);
        (period, round.arrived.clone())
    });
    let mut begins = std::pin::pin!(drain.begins());
    loop {
        if ROUND.with(Round::is_empty) {
            arrived.notified().await;
        }
        let draining = ROUND.with(|round| round.draining.get()).is_some();
        tokio::select! {
            () = tokio::time::sleep(period) => {}
            () = &mut begins, if !draining => {}
        }
        ROUND.with(|round| {
            round.tick();
            if drain.is_draining() && round.draining.get().is_none() {
                round.draining.set(Some(round.now.get()));
            }
            round.look();
        });
    }
}

/// A quarter of the shortest timeout.
fn period(options: &Options) -> Duration {
    let timeouts = [
        options.first_byte_timeout,
        options.head_timeout,
        options.body_timeout,
        options.keep_alive_timeout,
        options.write_timeout,
        options.half_close_timeout,
    ];
    let shortest = timeouts.into_iter().filter(|timeout| !timeout.is_zero()).min();
    shortest.map_or(LONGEST, |shortest| (shortest / 4).clamp(SHORTEST, LONGEST))
}
