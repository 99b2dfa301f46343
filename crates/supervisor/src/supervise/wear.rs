//! Which workers have had their day: after how many requests, with how much memory, at what age.

use super::*;
use crate::children::Worker;
use crate::memory;
use crate::options::Recycling;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::Ordering::Acquire;
use wire::counters::server::Cause;
use wire::doorbell::{SPENT, WORN};

/// How often memory and age are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Of the looks, every so many is at PSS too: the kernel walks all of a process's memory for it.
const PSS_EVERY: u32 = 5;
/// The part of its age by which a worker may leave early, so that not all leave together.
const EARLY: f64 = 0.1;

/// When to look, if at all.
pub(super) struct Watch {
    next: Option<Instant>,
    looks: u32,
}

impl Watch {
    pub(super) fn new(recycling: &Recycling, now: Instant) -> Watch {
        let nothing = recycling.max_rss == 0 && recycling.max_pss == 0;
        let idle = nothing && recycling.max_age.is_zero();
        Watch { next: (!idle).then(|| now + LOOK_EVERY), looks: 0 }
    }

    /// How long until the next look.
    pub(super) fn due_in(&self) -> Option<Duration> {
        self.next.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

/// A random number from 0 up to 1. The standard library seeds each hasher anew.
fn luck() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    (random >> 11) as f64 / (1u64 << 53) as f64
}

impl Recycling {
    /// Requests for one more worker: any number from `min_requests` to `max_requests` is as likely
    /// as any other. 0: no limit.
    pub(super) fn draw_limit(&self) -> u64 {
        limit(self.min_requests, self.max_requests, luck())
    }

    /// When one more worker is too old.
    pub(super) fn draw_age(&self) -> Option<Duration> {
        let age = self.max_age;
        (!age.is_zero()).then(|| age.mul_f64(1.0 - EARLY * luck()))
    }
}

fn limit(min: u64, max: u64, luck: f64) -> u64 {
    if min == 0 || min >= max {
        return max;
    }
    max - ((max - min + 1) as f64 * luck) as u64
}

impl Supervisor {
    /// A worker has written something into one of its seats that is for the supervisor.
    pub(super) fn hear_seats(&mut self) {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.apps.values_mut().for_each(|app| app.clocks.rung());
        let seats: Vec<_> = (self.children.workers.iter())
            .map(|((generation, nr), worker)| (*generation, *nr, worker.seat))
            .collect();
        seats.into_iter().for_each(|(generation, nr, seat)| self.hear_seat(generation, nr, seat));
    }

    /// What a worker has written into its seat, if anything. Hearing it twice does no harm.
    pub(super) fn hear_seat(&mut self, generation: GenerationId, nr: u16, seat: u16) {
        let Some(app) = self.apps.get(&generation.mount) else { return };
        match app.segment.board().seats[usize::from(seat)].wear.load(Acquire) {
            WORN => self.pending.push_back(Event::Worn { generation, nr, at_limit: true }),
            SPENT => self.pending.push_back(Event::Spent(generation, nr)),
            _ => {}
        }
    }

    /// Looks at memory and age, where it is time.
    pub(super) fn look_at_wear(&mut self) {
        let now = Instant::now();
        for (id, app) in &mut self.apps {
            if app.watch.next.is_none_or(|at| now < at) {
                continue;
            }
            app.watch.next = Some(now + LOOK_EVERY);
            app.watch.looks = app.watch.looks.wrapping_add(1);
            let mut limits = app.settings.recycling;
            if !app.watch.looks.is_multiple_of(PSS_EVERY) {
                limits.max_pss = 0;
            }
            let mine = self.children.workers.iter_mut().filter(|((g, _), _)| g.mount == *id);
            for ((generation, nr), worker) in mine.filter(|(_, worker)| !worker.is_worn) {
                let Some((cause, why)) = reason(&limits, worker) else { continue };
                let (generation, nr) = (*generation, *nr);
                worker.is_worn = true;
                worker.leaves = Some(cause);
                say(&format!(
                    "{}worker {nr} gen {} (pid {}) is replaced: {why}",
                    mount::tag(&app.settings),
                    generation.number,
                    worker.pid
                ));
                self.pending.push_back(Event::Worn { generation, nr, at_limit: false });
            }
        }
    }
}

/// Why a worker is to be replaced, if it is.
fn reason(limits: &Recycling, worker: &Worker) -> Option<(Cause, String)> {
    if worker.lives.is_some_and(|lives| worker.born.elapsed() >= lives) {
        let why = format!("max_age is {} s", limits.max_age.as_secs_f64());
        return Some((Cause::MaxAge, why));
    }
    let over = |name: &str, limit: u64, read: fn(u32) -> io::Result<u64>| {
        // Gone meanwhile, or not ours to ask about: nothing to say of it.
        let bytes = if limit == 0 { None } else { read(worker.pid).ok() };
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        bytes
            .filter(|bytes| *bytes > limit)
            .map(|bytes| format!("it has {:.1} MiB, {name} is {:.1} MiB", mib(bytes), mib(limit)))
    };
    over("max_rss", limits.max_rss, memory::rss)
        .or_else(|| over("max_pss", limits.max_pss, memory::pss))
        .map(|why| (Cause::MaxMemory, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_lie_between_their_bounds_and_reach_both() {
        assert_eq!(limit(0, 1000, 0.5), 1000);
        assert_eq!(limit(1000, 1000, 0.5), 1000);
        assert_eq!(limit(2000, 1000, 0.5), 1000);
        assert_eq!(limit(500, 0, 0.5), 0);
        assert_eq!(limit(10, 13, 0.0), 13);
        assert_eq!(limit(10, 13, 0.999_999), 10);
        assert!((0..100).all(|_| (10..=13).contains(&limit(10, 13, luck()))));
    }

    #[test]
    fn workers_do_not_all_reach_their_age_together() {
        let recycling = Recycling { max_age: Duration::from_secs(100), ..Recycling::default() };
        let ages: Vec<Duration> = (0..50).filter_map(|_| recycling.draw_age()).collect();
        assert!(ages.iter().all(|age| (90..=100).contains(&age.as_secs())), "{ages:?}");
        assert!(ages.iter().any(|age| *age != ages[0]));
        assert_eq!(Recycling::default().draw_age(), None);
    }
}
