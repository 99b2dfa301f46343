//! Whose turn it is: one queue for a mount, first come, first served across all front threads, and
//! how many requests each backend has.
//!
//! Behind a lock, which is held for a few map operations: a proxied request costs system calls by
//! the dozen, so this is not where its time goes.

use crate::refuse::Refusal;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Requests of a mount that may wait: as many as a segment has slots.
pub const WAITING: usize = 4096;
/// How long requests wait although no backend is up: time enough to restart one.
pub const DARK: Duration = Duration::from_secs(5);
/// An idle connection that is older is not used again: its backend may be about to close it, and a
/// request sent at that moment would be lost.
const FRESH: Duration = Duration::from_secs(1);

/// The queue of a mount; `C` is a connection that is kept for a backend's next request.
pub struct Queue<C> {
    state: Mutex<State<C>>,
    /// Requests that a backend has at once, at most.
    max: usize,
}

struct State<C> {
    backends: Vec<Backend<C>>,
    /// By their numbers, which are given in the order of arrival.
    waiting: BTreeMap<u64, oneshot::Sender<Granted<C>>>,
    /// The next number.
    next: u64,
    /// Turns that have ended.
    ended: i64,
    /// Since when no backend is up.
    dark: Option<Instant>,
}

type Granted<C> = Result<Turn<C>, Refusal>;

struct Backend<C> {
    up: bool,
    in_flight: usize,
    /// The value of `State::ended` when it last ended a request; negative if it did not answer.
    used: i64,
    kept: Vec<(C, Instant)>,
}

/// What can be seen of a backend.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// It could be reached when that was tried last.
    pub up: bool,
    /// Requests it has.
    pub in_flight: usize,
}

/// How a turn has ended.
enum End<C> {
    /// With an answer, or in vain; the connection is kept if there is one.
    Good(Option<C>),
    /// The backend has not answered.
    Lost,
    /// It could not be reached.
    Unreachable,
}

/// The right to send one request to one backend, until it is dropped.
pub struct Turn<C> {
    /// None once it has been given back.
    queue: Option<Arc<Queue<C>>>,
    /// Whose turn it is: its index.
    pub backend: usize,
    /// The request's number, under which it may ask again.
    pub number: u64,
    kept: Option<C>,
}

/// A request in the queue; dropped, it leaves it.
pub struct Waiting<C> {
    queue: Arc<Queue<C>>,
    number: u64,
    granted: oneshot::Receiver<Granted<C>>,
}

/// What comes of asking for a turn.
pub enum Asked<C> {
    /// A backend is free.
    Turn(Turn<C>),
    /// All are busy.
    Waits(Waiting<C>),
}

impl<C> Queue<C> {
    /// For so many backends, which are taken to be up, with at most `max` requests each.
    pub fn new(backends: usize, max: usize) -> Arc<Queue<C>> {
        let backend = |_| Backend { up: true, in_flight: 0, used: 0, kept: Vec::new() };
        let backends = (0..backends).map(backend).collect();
        let (waiting, dark) = (BTreeMap::new(), None);
        let state = State { backends, waiting, next: 0, ended: 0, dark };
        Arc::new(Queue { state: Mutex::new(state), max: max.max(1) })
    }

    /// Nothing panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a turn. `number`: that of a request that has had one in vain, and so keeps its place.
    pub fn ask(self: &Arc<Self>, number: Option<u64>) -> Result<Asked<C>, Refusal> {
        let mut state = self.lock();
        let number = number.unwrap_or_else(|| {
            state.next += 1;
            state.next
        });
        if state.dark.is_some_and(|since| since.elapsed() >= DARK) {
            return Err(Refusal::NoBackend);
        }
        // A request that asks again stands before all who have not had a turn yet.
        let first = state.waiting.first_key_value().is_none_or(|(first, _)| number < *first);
        if let (true, Some(backend)) = (first, state.free(self.max)) {
            return Ok(Asked::Turn(self.grant(&mut state, backend, number)));
        }
        if state.waiting.len() >= WAITING {
            return Err(Refusal::Overloaded);
        }
        let (grants, granted) = oneshot::channel();
        state.waiting.insert(number, grants);
        Ok(Asked::Waits(Waiting { queue: self.clone(), number, granted }))
    }

    fn grant(self: &Arc<Self>, state: &mut State<C>, index: usize, number: u64) -> Turn<C> {
        let backend = &mut state.backends[index];
        backend.in_flight += 1;
        // The youngest: if that is too old, so are the others.
        let kept = backend.kept.pop().filter(|(_, since)| since.elapsed() < FRESH);
        if kept.is_none() {
            backend.kept.clear();
        }
        let kept = kept.map(|(connection, _)| connection);
        Turn { queue: Some(self.clone()), backend: index, number, kept }
    }

    /// Gives turns to those who wait, for as long as a backend is free.
    fn serve(self: &Arc<Self>, state: &mut State<C>) {
        while !state.waiting.is_empty()
            && let Some(backend) = state.free(self.max)
            && let Some((number, grants)) = state.waiting.pop_first()
        {
            let turn = self.grant(state, backend, number);
            if let Err(Ok(mut turn)) = grants.send(Ok(turn)) {
                // Its client has just left. What is locked here must not be asked for by a drop.
                turn.queue = None;
                let backend = &mut state.backends[backend];
                backend.in_flight -= 1;
                backend.kept.extend(turn.kept.take().map(|kept| (kept, Instant::now())));
            }
        }
    }

    /// True: the backend could be reached until now.
    fn give_back(self: &Arc<Self>, index: usize, end: End<C>) -> bool {
        let mut state = self.lock();
        state.ended += 1;
        let ended = state.ended;
        let backend = &mut state.backends[index];
        backend.in_flight -= 1;
        let goes_down = backend.up && matches!(end, End::Unreachable);
        match end {
            End::Good(kept) => {
                backend.used = ended;
                // One that is down has been restarted, perhaps: its connections are of the past.
                let kept = kept.filter(|_| backend.up);
                backend.kept.extend(kept.map(|kept| (kept, Instant::now())));
            }
            // Whoever answers at once that it cannot, would get all requests.
            End::Lost => backend.used = -ended,
            End::Unreachable => {
                backend.up = false;
                backend.kept.clear();
            }
        }
        if goes_down && !state.backends.iter().any(|backend| backend.up) {
            state.dark = Some(Instant::now());
        }
        self.serve(&mut state);
        goes_down
    }

    /// The backend can be reached again.
    pub fn comes_up(self: &Arc<Self>, index: usize) {
        let mut state = self.lock();
        state.backends[index].up = true;
        state.dark = None;
        self.serve(&mut state);
    }

    /// Refuses those who wait if no backend has been up for `DARK`; true if that is so.
    pub fn refuse_in_the_dark(&self) -> bool {
        let mut state = self.lock();
        let dark = state.dark.is_some_and(|since| since.elapsed() >= DARK);
        if dark {
            for (_, grants) in std::mem::take(&mut state.waiting) {
                let _ = grants.send(Err(Refusal::NoBackend));
            }
        }
        dark
    }

    /// Each backend, and how many requests wait.
    #[cfg(test)]
    pub fn look(&self) -> (Vec<Seen>, usize) {
        let state = self.lock();
        let seen = |backend: &Backend<C>| Seen { up: backend.up, in_flight: backend.in_flight };
        (state.backends.iter().map(seen).collect(), state.waiting.len())
    }
}

impl<C> State<C> {
    /// The backend that is to have the next request: one with the fewest, and of these the one that
    /// was used last, whose caches are warm and whose connection is open.
    fn free(&self, max: usize) -> Option<usize> {
        let free = |(_, backend): &(usize, &Backend<C>)| backend.up && backend.in_flight < max;
        let backends = self.backends.iter().enumerate().filter(free);
        let best = backends.min_by_key(|(_, b)| (b.in_flight, std::cmp::Reverse(b.used)));
        best.map(|(index, _)| index)
    }
}

impl<C> Turn<C> {
    /// The connection that was kept for it, if there is one.
    pub fn take_kept(&mut self) -> Option<C> {
        self.kept.take()
    }

    /// The request has ended, and its connection can be used again.
    pub fn keep(mut self, connection: C) {
        if let Some(queue) = self.queue.take() {
            queue.give_back(self.backend, End::Good(Some(connection)));
        }
    }

    /// The backend has not answered: others come first the next time.
    pub fn has_lost(mut self) {
        if let Some(queue) = self.queue.take() {
            queue.give_back(self.backend, End::Lost);
        }
    }

    /// The backend cannot be reached. True: it could be until now.
    pub fn has_failed(mut self) -> bool {
        self.queue.take().is_some_and(|queue| queue.give_back(self.backend, End::Unreachable))
    }
}

impl<C> Drop for Turn<C> {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            queue.give_back(self.backend, End::Good(self.kept.take()));
        }
    }
}

impl<C> Waiting<C> {
    /// Waits for the turn, for ever if `timeout` is zero.
    pub async fn turn(mut self, timeout: Duration) -> Granted<C> {
        let granted = match timeout {
            Duration::ZERO => (&mut self.granted).await,
            _ => tokio::time::timeout(timeout, &mut self.granted)
                .await
                .map_err(|_| Refusal::WaitedTooLong)?,
        };
        // Nobody drops the other end but with the queue.
        granted.unwrap_or(Err(Refusal::NoBackend))
    }
}

impl<C> Drop for Waiting<C> {
    fn drop(&mut self) {
        self.queue.lock().waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
