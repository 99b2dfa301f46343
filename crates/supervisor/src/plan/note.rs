//! What an event changes in what is known.

use super::*;

impl State {
    /// Takes in an event.
    pub(super) fn note(&mut self, event: Event, now: Duration, actions: &mut Vec<Action>) {
        match event {
            Event::MoldReady(generation) => self.note_mold_ready(generation, now),
            Event::MoldFailed(generation, why) => {
                self.note_boot_failure(generation, &why, now, actions)
            }
            Event::MoldDied(generation, how) => {
                self.note_mold_death(generation, &how, now, actions)
            }
            Event::Forked(generation, nr) => self.note_fork(generation, nr, now, actions),
            Event::Up(generation, nr) => self.note_up(generation, nr, now),
            Event::Unfit(generation, nr, why) => {
                self.note_unfit(generation, nr, &why, now, actions)
            }
            Event::WorkerDied { generation, nr, served, failed } => {
                self.note_worker_death(generation, nr, (served, failed), now, actions)
            }
            Event::Worn { generation, nr, at_limit: true } if self.limits.fresh => {
                self.note_used(generation, nr, now)
            }
            Event::Spent(generation, nr) if self.limits.fresh => {
                self.note_answered(generation, nr, now, actions)
            }
            Event::Worn { generation, nr, at_limit } => {
                let wear = if at_limit { Wear::Nearing } else { Wear::Due };
                self.note_wear(generation, nr, wear)
            }
            Event::Spent(generation, nr) => self.note_wear(generation, nr, Wear::Due),
            Event::FrontReady if self.front == Front::Starting => {
                self.front = Front::Ready { since: now }
            }
            Event::FrontReady => {}
            Event::FrontDrained => self.note_drained(now),
            Event::FrontDied => self.note_front_death(now, actions),
            Event::Stop => self.note_stop(now, actions),
            Event::StopNow(code) => self.kill_all(code, now, actions),
            Event::Restart => self.note_restart(actions),
            Event::Rollback => self.note_rollback(actions),
            Event::Recycle => self.note_recycle(actions),
            Event::SlowStop => self.note_slow_stop(now, actions),
            Event::More => self.note_target(self.limits.workers.saturating_add(1), actions),
            Event::Fewer => self.note_target(self.limits.workers - 1, actions),
            Event::Scale(workers) => self.note_target(workers, actions),
            Event::Tick => {}
        }
    }

    fn note_mold_ready(&mut self, number: u64, now: Duration) {
        if let Some(generation) = self.generations.get_mut(&number)
            && generation.mold == Mold::Booting
        {
            generation.mold = Mold::Ready { since: now };
        }
    }

    /// The app did not load, or its mold died before it had. A first generation that cannot boot
    /// ends the server, a candidate is given up, and the mold of a generation that serves is tried
    /// again later.
    fn note_boot_failure(
        &mut self,
        number: u64,
        why: &str,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let Some(generation) = self.generations.get_mut(&number) else { return };
        if self.phase == Phase::Starting && self.serving == 0 {
            actions.push(Action::Say(format!("the app did not load: {why}")));
            self.kill_all(1, now, actions);
        } else if generation.role == Role::Candidate {
            self.give_up(number, why, actions);
        } else if generation.role == Role::Serving && generation.mold == Mold::Booting {
            generation.mold = Mold::Killed;
            actions.push(Action::KillMold(number));
            actions.push(Action::Say(format!(
                "the mold of generation {number} did not boot ({why}); its workers serve on, \
                 another try follows"
            )));
        }
    }

    fn give_up(&mut self, number: u64, why: &str, actions: &mut Vec<Action>) {
        let serving = self.serving;
        if let Some(generation) = self.generations.get_mut(&number) {
            generation.role = Role::Leaving;
            let why =
                format!("generation {number} did not boot: {why}; generation {serving} serves on");
            actions.push(Action::Say(why.clone()));
            actions.push(Action::Settled { generation: number, outcome: Err(why) });
        }
    }

    fn note_mold_death(
        &mut self,
        number: u64,
        how: &str,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let ending = self.is_ending();
        let Some(generation) = self.generations.get_mut(&number) else { return };
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
        if generation.role == Role::Leaving || ending {
            generation.mold = Mold::Gone;
            return;
        }
        let early = match before {
            Mold::Ready { since } => now.saturating_sub(since) < SHORT_LIFE,
            _ => true,
        };
        generation.mold_backoff.note(now, early);
        match (generation.role, before) {
            (Role::Candidate, Mold::Booting) => {
                let why = format!("its mold ended with {how} while loading the app");
                self.note_boot_failure(number, &why, now, actions);
                if let Some(generation) = self.generations.get_mut(&number) {
                    generation.mold = Mold::Gone;
                }
            }
            (_, Mold::Killed) => {}
            _ if self.is_up() => actions.push(Action::Say(format!(
                "the mold of generation {number} died ({how}); its workers live on, another \
                 mold is started"
            ))),
            _ => {}
        }
    }

    fn note_fork(&mut self, number: u64, nr: u16, now: Duration, actions: &mut Vec<Action>) {
        let ending = self.is_ending();
        let Some(generation) = self.generations.get_mut(&number) else { return };
        let Some(worker) = generation.workers.get_mut(&nr) else { return };
        if ending {
            worker.stage = Stage::Killed;
            actions.push(Action::Kill(number, nr));
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
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let role = self.generations.get(&number).map(|generation| generation.role);
        if self.serving == 0 || role == Some(Role::Candidate) {
            self.note_boot_failure(number, why, now, actions);
        } else {
            let line = format!("worker {nr} gen {number} did not get ready: {why}");
            actions.push(Action::Say(line));
        }
    }

    fn note_worker_death(
        &mut self,
        number: u64,
        nr: u16,
        (served, failed): (bool, bool),
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let up = self.is_up();
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
        if waits > waited && generation.role == Role::Serving && up {
            actions.push(Action::Say(format!(
                "workers of generation {number} die young ({} in a row); the next one in {:.1} s",
                generation.worker_backoff.streak(),
                waits.as_secs_f64()
            )));
        }
        if generation.role == Role::Candidate && self.serving != 0 {
            generation.stillborn += 1;
            if generation.stillborn > STILLBORN_MAX {
                self.give_up(number, "its workers died as soon as they were forked", actions);
            }
        }
    }

    fn note_drained(&mut self, now: Duration) {
        if self.front == Front::Draining {
            self.leave(now);
        }
    }

    fn note_front_death(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let before = self.front;
        match self.phase {
            Phase::Starting | Phase::Running => self.front = Front::Absent,
            _ => self.front = Front::Gone,
        }
        let early = match before {
            Front::Ready { since } | Front::Accepting { since } => {
                now.saturating_sub(since) < SHORT_LIFE
            }
            _ => true,
        };
        self.front_backoff.note(now, early);
        match self.phase {
            Phase::Draining { .. } => self.leave(now),
            Phase::Starting if self.front_backoff.streak() >= FRONT_TRIES => {
                actions.push(Action::Say("the front does not start; see above for why".into()));
                self.kill_all(1, now, actions);
            }
            _ => {}
        }
    }

    pub(super) fn note_stop(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if !self.is_up() {
            return;
        }
        self.slow_stop = None;
        self.give_up_candidates("the server is to end", actions);
        self.release_all();
        self.phase = Phase::Draining { until: now + self.limits.shutdown_timeout };
        match self.front {
            Front::Accepting { .. } => {
                self.front = Front::Draining;
                actions.push(Action::Drain);
            }
            _ => self.leave(now),
        }
    }

    fn note_restart(&mut self, actions: &mut Vec<Action>) {
        if !self.takes_restarts() {
            let starting = self.phase == Phase::Starting;
            let why = if starting { "the server is still starting" } else { "it is stopping" };
            let why = format!("restart ignored: {why}");
            actions.push(Action::Say(why.clone()));
            actions.push(Action::Settled { generation: self.newest, outcome: Err(why) });
            return;
        }
        self.give_up_candidates("another restart was asked for", actions);
        self.release_all();
        self.newest += 1;
        self.generations.insert(self.newest, Generation::new(self.limits.workers));
        actions.push(Action::Say(format!("generation {} boots", self.newest)));
    }

    fn note_target(&mut self, wanted: u16, actions: &mut Vec<Action>) {
        if !self.is_up() {
            return;
        }
        let most = self.most_workers();
        self.limits.workers = wanted.clamp(1, most);
        if self.limits.workers != wanted {
            let bound = if wanted > most { "no more" } else { "no fewer" };
            let workers = self.limits.workers;
            let plural = if workers == 1 { "" } else { "s" };
            let line = format!("{bound} than {workers} worker{plural} are possible");
            actions.push(Action::Say(line));
        }
    }

    /// Draining is over: workers and molds are next.
    pub(super) fn leave(&mut self, now: Duration) {
        if let Phase::Draining { until } = self.phase {
            self.phase = Phase::Leaving { until: until.max(now + GRACE / 2) };
            self.generations.values_mut().for_each(|g| g.role = Role::Leaving);
        }
    }

    /// Kills everything there is. The front goes last, so that no reply is lost that was complete.
    pub(super) fn kill_all(&mut self, code: u8, now: Duration, actions: &mut Vec<Action>) {
        if self.is_ending() {
            return;
        }
        self.phase = Phase::Killing { until: now + LAST_WAIT, code };
        for (number, generation) in &mut self.generations {
            generation.role = Role::Leaving;
            for (nr, worker) in &mut generation.workers {
                if !matches!(worker.stage, Stage::Forking | Stage::Killed) {
                    worker.stage = Stage::Killed;
                    actions.push(Action::Kill(*number, *nr));
                }
            }
            match generation.mold {
                Mold::Gone | Mold::Killed => {}
                Mold::Absent => generation.mold = Mold::Gone,
                _ => {
                    generation.mold = Mold::Killed;
                    actions.push(Action::KillMold(*number));
                }
            }
        }
        match self.front {
            Front::Gone | Front::Killed => {}
            Front::Absent => self.front = Front::Gone,
            _ => {
                self.front = Front::Killed;
                actions.push(Action::KillFront);
            }
        }
    }
}
