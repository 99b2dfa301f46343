//! How far a connection has come, since when, and what follows from that.
//!
//! Written where bytes move and requests begin and end, with plain stores and a coarse clock, and
//! judged in the thread's sweep: no request sets a timer. A connection lives on one thread; its
//! fields are atomics only because its task must be `Send`.

use crate::Options;
use crate::sweep;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use wire::control::MountId;

/// How long a connection that has not sent a whole request yet is waited for when the front drains,
/// be it the first or the next: its client may have written it already.
const DRAIN_PATIENCE: Duration = Duration::from_millis(500);
/// How long the rest of a refused request is read, so that closing does not reset the connection
/// under the answer (RFC 9112, section 9.6).
const LINGER: Duration = Duration::from_secs(5);
/// How long a connection keeps its buffers when nothing comes.
const REST_AFTER: Duration = Duration::from_millis(250);

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Accepted; nothing has come.
    First,
    /// The first bytes of a head are there.
    Head,
    /// The head is whole, the body is not.
    Body,
    /// The request is whole; its reply has not begun.
    Waiting,
    /// The reply's head is on its way, its body is not whole.
    Replying,
    /// The reply is whole; not all of it is written.
    Flushing,
    /// Between two requests.
    Idle,
    /// Answered without having been read to its end: nothing more is served here.
    Refused,
}

const PHASES: [Phase; 8] = {
    use Phase::*;
    [First, Head, Body, Waiting, Replying, Flushing, Idle, Refused]
};

/// What is due on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Let its buffers go until something comes.
    Rest,
    /// Close it, no word about it.
    Close,
    /// Its client is too slow with a request: say so (408) and close.
    TooSlow,
    /// Its client takes nothing of its reply: cut it off.
    Stuck,
    /// Its client has closed its side and nothing moves: it counts as gone.
    Gone,
}

/// What time it is, and whether the front drains, for `Link::judge`.
#[derive(Clone, Copy)]
pub struct Moment {
    /// Milliseconds of the thread's coarse clock.
    pub now: u64,
    /// When the drain was noticed.
    pub draining: Option<u64>,
    /// How far the clock may lag.
    pub lag: u64,
}

/// The state of a connection; times are milliseconds of the sweep's clock.
pub struct Link {
    phase: AtomicU8,
    /// Since when it stands there.
    since: AtomicU64,
    /// Since when the client takes nothing; 0: it does.
    stuck: AtomicU64,
    /// When the end of the client's bytes was seen and hidden from hyper; 0: it was not.
    ended: AtomicU64,
    /// When bytes were last sent.
    sent: AtomicU64,
    /// Mount (above bit 32), slot and position of the request that waits, as `queued` takes them.
    slot: AtomicU64,
    position: AtomicU64,
    /// The request waits for a backend.
    waits: AtomicBool,
    /// The sweep has found something due.
    due: AtomicBool,
    /// Its buffers are gone.
    resting: AtomicBool,
    /// What the kernel held for the client when that was looked at last, in bytes.
    unsent: AtomicU64,
}

impl Default for Link {
    fn default() -> Link {
        Link {
            phase: AtomicU8::new(Phase::First as u8),
            since: AtomicU64::new(0),
            stuck: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            slot: AtomicU64::new(0),
            position: AtomicU64::new(0),
            waits: AtomicBool::new(false),
            due: AtomicBool::new(false),
            resting: AtomicBool::new(false),
            unsent: AtomicU64::new(0),
        }
    }
}

impl Link {
    /// Where it stands.
    pub fn phase(&self) -> Phase {
        PHASES[self.phase.load(Relaxed) as usize]
    }

    fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.since.store(sweep::now(), Relaxed);
    }

    /// It stands there, as far as it did not before. Nothing has come on it yet: that stays so.
    pub fn stands(&self, phase: Phase) {
        if self.phase() != phase && (self.phase(), phase) != (Phase::First, Phase::Idle) {
            self.enter(phase);
        }
    }

    /// The connection comes to this thread, whose clock counts from now on.
    pub fn begin(&self) {
        self.enter(Phase::First);
    }

    /// Bytes have come.
    pub fn received(&self, bytes: &[u8]) {
        // Line ends between requests are nobody's request (RFC 9112, section 2.2).
        if matches!(self.phase(), Phase::First | Phase::Idle)
            && bytes.iter().any(|byte| !matches!(byte, b'\r' | b'\n'))
        {
            self.enter(Phase::Head);
        }
    }

    /// The client has closed its sending side; hyper must not know while a request is under way
    /// whose client may still want the answer.
    pub fn end_is_hidden(&self) {
        self.ended.store(sweep::now().max(1), Relaxed);
    }

    /// The end of the client's bytes was seen, and hidden.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Relaxed) != 0
    }

    /// A request that is whole is under way. `read`: all bytes of it have been read.
    pub fn hides_end(&self, read: bool) -> bool {
        match self.phase() {
            Phase::Body => read,
            phase => matches!(phase, Phase::Waiting | Phase::Replying | Phase::Flushing),
        }
    }

    /// Of `offered` bytes the kernel took so many.
    pub fn wrote(&self, taken: usize, offered: usize) {
        self.sent.store(sweep::now(), Relaxed);
        self.stuck.store(if taken < offered { sweep::now().max(1) } else { 0 }, Relaxed);
    }

    /// The kernel takes nothing, for it still holds so much that the client has not taken.
    pub fn is_stuck(&self, unsent: u32) {
        let before = self.unsent.swap(unsent.into(), Relaxed);
        if self.stuck.load(Relaxed) == 0 || u64::from(unsent) < before {
            self.stuck.store(sweep::now().max(1), Relaxed);
        }
    }

    /// Everything buffered has been written. True: the client's side is closed, and now hyper must
    /// see it.
    pub fn flushed(&self) -> bool {
        if self.phase() != Phase::Flushing {
            return false;
        }
        self.enter(Phase::Idle);
        self.has_ended()
    }

    /// A request's head is whole; so is the request if it has no body.
    pub fn head_is_whole(&self, has_body: bool) {
        self.enter(if has_body { Phase::Body } else { Phase::Waiting });
    }

    /// The request's body is whole.
    pub fn body_is_whole(&self) {
        self.enter(Phase::Waiting);
    }

    /// The request waits in the queue.
    pub fn queues(&self, mount: MountId, slot: u32, position: u64) {
        self.slot.store(u64::from(mount.0) << 32 | u64::from(slot), Relaxed);
        self.position.store(position, Relaxed);
    }

    /// The request waits for a backend, until the guard is dropped.
    pub fn waits_for_turn(&self) -> Waits<'_> {
        self.waits.store(true, Relaxed);
        Waits(self)
    }

    /// The reply begins. To a request that was not read to its end it is the last word.
    pub fn reply_begins(&self) {
        match self.phase() {
            Phase::Body | Phase::Refused => self.enter(Phase::Refused),
            _ => self.enter(Phase::Replying),
        }
    }

    /// The reply's body is whole, or given up.
    pub fn reply_ends(&self) {
        if self.phase() == Phase::Replying {
            self.enter(Phase::Flushing);
        }
    }

    /// The connection ends with a refusal.
    pub fn refuse(&self) {
        self.enter(Phase::Refused);
    }

    /// hyper has no request of this connection in its hands, so what it writes is a refusal.
    pub fn is_between_requests(&self) -> bool {
        matches!(self.phase(), Phase::First | Phase::Head | Phase::Idle)
    }

    /// Its buffers are gone, or there again.
    pub fn rests(&self, resting: bool) {
        self.resting.store(resting, Relaxed);
    }

    /// Something is due; the task should look.
    pub fn mark_due(&self) {
        self.due.store(true, Relaxed);
    }

    /// Whether something was due since this was asked last.
    pub fn take_due(&self) -> bool {
        self.due.load(Relaxed) && {
            self.due.store(false, Relaxed);
            true
        }
    }

    /// What is due. `queued`: whether the request in that slot of that mount, put at that position,
    /// still waits.
    pub fn judge(
        &self,
        moment: Moment,
        options: &Options,
        queued: impl Fn(MountId, u32, u64) -> bool,
    ) -> Option<Due> {
        let since = self.since.load(Relaxed);
        let late = |since: u64, timeout: Duration| {
            !timeout.is_zero() && moment.age(since) >= timeout.as_millis() as u64 + moment.lag
        };
        let drained = moment.draining.is_some_and(|since| late(since, DRAIN_PATIENCE));
        match self.phase() {
            Phase::First if drained || late(since, options.first_byte_timeout) => Some(Due::Close),
            Phase::Head if drained || late(since, options.head_timeout) => Some(Due::TooSlow),
            Phase::Idle
                if moment.draining.is_some_and(|at| late(at.max(since), DRAIN_PATIENCE)) =>
            {
                Some(Due::Close)
            }
            Phase::Idle if late(since, options.keep_alive_timeout) => Some(Due::Close),
            Phase::Idle if !self.resting.load(Relaxed) && late(since, REST_AFTER) => {
                Some(Due::Rest)
            }
            Phase::Refused if drained || late(since, LINGER) => Some(Due::Close),
            // While a request waits, what does not go out is the end of the reply before it, or an
            // interim response.
            Phase::Waiting | Phase::Replying | Phase::Flushing
                if self.stands_still(&late, options) =>
            {
                Some(Due::Stuck)
            }
            Phase::Waiting if self.half_closed(&late, options) => {
                let slot = self.slot.load(Relaxed);
                let mount = MountId((slot >> 32) as u16);
                let waits = self.waits.load(Relaxed)
                    || queued(mount, slot as u32, self.position.load(Relaxed));
                waits.then_some(Due::Gone)
            }
            Phase::Replying if self.half_closed(&late, options) => Some(Due::Gone),
            _ => None,
        }
    }

    fn stands_still(&self, late: &impl Fn(u64, Duration) -> bool, options: &Options) -> bool {
        let stuck = self.stuck.load(Relaxed);
        stuck != 0 && late(stuck, options.write_timeout)
    }

    fn half_closed(&self, late: &impl Fn(u64, Duration) -> bool, options: &Options) -> bool {
        let moved = [&self.ended, &self.sent, &self.stuck].map(|since| since.load(Relaxed));
        let quiet = moved.into_iter().fold(0, u64::max);
        self.has_ended() && late(quiet, options.half_close_timeout)
    }
}

/// A request that waits for a backend.
pub struct Waits<'a>(&'a Link);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waits.store(false, Relaxed);
    }
}

impl Moment {
    fn age(self, since: u64) -> u64 {
        self.now.saturating_sub(since)
    }
}

#[cfg(test)]
mod tests;
