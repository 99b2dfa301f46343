//! What an event changes in what is known of a mount.

use super::*;

/// What an event means for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Verdict {
    /// Nothing more.
    Noted,
    /// It cannot start.
    Fatal,
}

impl Verdict {
    pub(in super::super) fn is_fatal(self) -> bool {
        self == Verdict::Fatal
    }
}

impl Mount {
    /// Takes in an event that concerns this mount, which is in `phase`.
    pub(in super::super) fn happens(
        &mut self,
        event: Event,
        phase: Phase,
        now: Duration,
        actions: &mut Vec<Action>,
    ) -> Verdict {
        match event {
            Event::MoldReady(which) => self.note_mold_ready(which.number, now),
            Event::MoldFailed(which, why) => {
                return self.note_boot_failure(which.number, &why, phase, now, actions);
            }
            Event::MoldDied(which, how) => {
                return self.note_mold_death(which.number, &how, phase, now, actions);
            }
            Event::Forked(which, nr) => self.note_fork(which.number, nr, phase, now, actions),
            Event::Up(which, nr) => self.note_up(which.number, nr, now),
            Event::Unfit(which, nr, why) => {
                return self.note_unfit(which.number, nr, &why, phase, now, actions);
            }
            Event::WorkerDied { generation, nr, served, failed } => {
                let how = (served, failed);
                self.note_worker_death(generation.number, nr, how, phase, now, actions);
            }
            Event::Worn { generation, nr, at_limit: true } if self.limits.fresh => {
                self.note_used(generation.number, nr, now)
            }
            Event::Spent(which, nr) if self.limits.fresh => {
                self.note_answered(which.number, nr, now, actions)
            }
            Event::Worn { generation, nr, at_limit } => {
                let wear = if at_limit { Wear::Nearing } else { Wear::Due };
                self.note_wear(generation.number, nr, wear)
            }
            Event::Spent(which, nr) => self.note_wear(which.number, nr, Wear::Due),
            Event::Restart(_) => self.note_restart(phase, actions),
            Event::Rollback(_) => self.note_rollback(phase, actions),
            Event::Recycle(_) => self.note_recycle(actions),
            Event::More(_) => self.note_target(self.limits.workers + 1, phase, actions),
            Event::Fewer(_) => self.note_target(self.limits.workers - 1, phase, actions),
            Event::Scale(_, workers) => self.note_target(workers, phase, actions),
            Event::Limit(_, limits) => self.note_limits(limits, phase, actions),
            _ => {}
        }
        Verdict::Noted
    }

    fn note_mold_ready(&mut self, number: u64, now: Duration) {
        if let Some(generation) = self.generations.get_mut(&number)
            && generation.mold == Mold::Booting
        {
            generation.mold = Mold::Ready { since: now };
        }
    }

    /// The app did not load, or its mold died before it had. A first generation that cannot boot
    /// ends the server, or takes back a mount that came later; a candidate is given up, and the
    /// mold of a generation that serves is tried again later.
    pub(super) fn note_boot_failure(
        &mut self,
        number: u64,
        why: &str,
        phase: Phase,
        now: Duration,
        actions: &mut Vec<Action>,
    ) -> Verdict {
        let Some(generation) = self.generations.get_mut(&number) else { return Verdict::Noted };
        if self.serving == 0 && phase == Phase::Starting {
            actions.push(self.say(&format!("the app did not load: {why}")));
            return Verdict::Fatal;
        }
        if self.serving == 0 && generation.role == Role::Candidate {
            self.take_back(number, why, now, actions);
        } else if generation.role == Role::Candidate {
            self.give_up(number, why, actions);
        } else if generation.role == Role::Serving && generation.mold == Mold::Booting {
            generation.mold = Mold::Killed;
            actions.push(Action::KillMold(self.which(number)));
            actions.push(self.say(&format!(
                "the mold of generation {number} did not boot ({why}); its workers serve on, \
                 another try follows"
            )));
        }
        Verdict::Noted
    }

    /// A mount that came while the server ran, and whose app does not load, has never been there.
    fn take_back(&mut self, number: u64, why: &str, now: Duration, actions: &mut Vec<Action>) {
        let why = format!("the app did not load: {why}; the mount is taken back");
        actions.push(self.say(&why));
        actions.push(Action::Settled { generation: self.which(number), outcome: Err(why) });
        self.leave(now);
    }

    fn give_up(&mut self, number: u64, why: &str, actions: &mut Vec<Action>) {
        let serving = self.serving;
        if let Some(generation) = self.generations.get_mut(&number) {
            generation.role = Role::Leaving;
            let why =
                format!("generation {number} did not boot: {why}; generation {serving} serves on");
            actions.push(self.say(&why));
            actions.push(Action::Settled { generation: self.which(number), outcome: Err(why) });
        }
    }

    fn note_mold_death(
        &mut self,
        number: u64,
        how: &str,
        phase: Phase,
        now: Duration,
        actions: &mut Vec<Action>,
    ) -> Verdict {
        let Some(generation) = self.generations.get_mut(&number) else { return Verdict::Noted };
        let lost: Vec<u16> = (generation.workers.iter())
            .filter(|(_, worker)| worker.stage == Stage::Forking)
            .map(|(nr, _)| *nr)
            .collect();
        for nr in lost {
            if let Some(worker) = generation.workers.remove(&nr) {
                self.seats.give_back(worker.seat);
            }
        }
        let before = std::mem::replace(&mut generation.mold, Mold::Absent);
        if generation.role == Role::Leaving || phase.is_ending() {
            generation.mold = Mold::Gone;
            return Verdict::Noted;
        }
        let early = match before {
            Mold::Ready { since } => now.saturating_sub(since) < SHORT_LIFE,
            _ => true,
        };
        generation.mold_backoff.note(now, early);
        match (generation.role, before) {
            (Role::Candidate, Mold::Booting) => {
                let why = format!("its mold ended with {how} while loading the app");
                let verdict = self.note_boot_failure(number, &why, phase, now, actions);
                if let Some(generation) = self.generations.get_mut(&number) {
                    generation.mold = Mold::Gone;
                }
                return verdict;
            }
            (_, Mold::Killed) => {}
            _ if phase.is_up() => actions.push(self.say(&format!(
                "the mold of generation {number} died ({how}); its workers live on, another \
                 mold is started"
            ))),
            _ => {}
        }
        Verdict::Noted
    }

    fn note_fork(
        &mut self,
        number: u64,
        nr: u16,
        phase: Phase,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let which = self.which(number);
        let Some(generation) = self.generations.get_mut(&number) else { return };
        let Some(worker) = generation.workers.get_mut(&nr) else { return };
        if phase.is_ending() {
            worker.stage = Stage::Killed;
            actions.push(Action::Kill(which, nr));
        } else if worker.stage == Stage::Forking {
            let patience = match self.limits.start_timeout {
                Duration::ZERO => Duration::MAX,
                patience => patience,
            };
            let kill_at = now.saturating_add(patience);
            worker.stage = Stage::Starting { since: now, kill_at };
        }
    }

    fn note_up(&mut self, number: u64, nr: u16, now: Duration) {
        let generation = self.generations.get_mut(&number);
        if let Some(worker) = generation.and_then(|g| g.workers.get_mut(&nr))
            && matches!(worker.stage, Stage::Starting { .. })
        {
            worker.stage = Stage::Living { since: now };
        }
    }

    /// An app whose workers cannot get ready has not booted.
    pub(super) fn note_unfit(
        &mut self,
        number: u64,
        nr: u16,
        why: &str,
        phase: Phase,
        now: Duration,
        actions: &mut Vec<Action>,
    ) -> Verdict {
        let role = self.generations.get(&number).map(|generation| generation.role);
        if self.serving == 0 || role == Some(Role::Candidate) {
            return self.note_boot_failure(number, why, phase, now, actions);
        }
        actions.push(self.say(&format!("worker {nr} gen {number} did not get ready: {why}")));
        Verdict::Noted
    }

    fn note_worker_death(
        &mut self,
        number: u64,
        nr: u16,
        (served, failed): (bool, bool),
        phase: Phase,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let Some(generation) = self.generations.get_mut(&number) else { return };
        let Some(worker) = generation.workers.remove(&nr) else { return };
        self.seats.give_back(worker.seat);
        let since = match worker.stage {
            Stage::Living { since } | Stage::Starting { since, .. } => since,
            // What it died of is that request's, and no reason to wait with the next.
            Stage::Used { .. } => return self.note_used_death(number, failed, now),
            // Its mold would not even fork it.
            Stage::Forking => now,
            Stage::Retiring { .. } | Stage::Killed => return,
        };
        let early = !served && now.saturating_sub(since) < YOUNG;
        if failed {
            let due = now + self.limits.err_respawn_interval;
            generation.fork_due = generation.fork_due.max(due);
        }
        let waited = generation.worker_backoff.delay();
        generation.worker_backoff.note(now, early);
        let waits = generation.worker_backoff.delay();
        let (role, streak) = (generation.role, generation.worker_backoff.streak());
        let mut stillborn = 0;
        if role == Role::Candidate && self.serving != 0 {
            generation.stillborn += 1;
            stillborn = generation.stillborn;
        }
        if waits > waited && role == Role::Serving && phase.is_up() {
            actions.push(self.say(&format!(
                "workers of generation {number} die young ({streak} in a row); the next one in \
                 {:.1} s",
                waits.as_secs_f64()
            )));
        }
        if stillborn > STILLBORN_MAX {
            self.give_up(number, "its workers died as soon as they were forked", actions);
        }
    }

    fn note_restart(&mut self, phase: Phase, actions: &mut Vec<Action>) {
        if phase != Phase::Running || self.serving == 0 {
            let why = "restart ignored: its mount comes or goes".to_string();
            actions.push(self.say(&why));
            let generation = self.which(self.newest);
            return actions.push(Action::Settled { generation, outcome: Err(why) });
        }
        self.give_up_candidates("another restart was asked for", actions);
        self.release_all();
        self.newest += 1;
        self.generations.insert(self.newest, Generation::new(self.limits.workers));
        actions.push(self.say(&format!("generation {} boots", self.newest)));
    }

    fn note_target(&mut self, wanted: u16, phase: Phase, actions: &mut Vec<Action>) {
        if !phase.is_up() {
            return;
        }
        let most = self.most_workers();
        self.limits.workers = wanted.clamp(1, most);
        if self.limits.workers != wanted {
            let bound = if wanted > most { "no more" } else { "no fewer" };
            let workers = self.limits.workers;
            let plural = if workers == 1 { "" } else { "s" };
            actions.push(self.say(&format!("{bound} than {workers} worker{plural} are possible")));
        }
    }

    /// How many seats each worker has cannot change while there are workers.
    fn note_limits(&mut self, limits: Limits, phase: Phase, actions: &mut Vec<Action>) {
        let Limits { threads, seats, workers, .. } = self.limits;
        let wanted = limits.workers;
        self.limits = Limits { threads, seats, workers, ..limits };
        self.note_target(wanted, phase, actions);
    }
}
