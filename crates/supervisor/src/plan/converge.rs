//! From what is to what should be.

use super::*;

impl State {
    /// Names the steps that bring the processes nearer to what is wanted. Calling it again without
    /// an event names none.
    pub(super) fn converge(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.pass_deadlines(now, actions);
        self.kill_the_late(now, actions);
        self.stop_slowly(now, actions);
        self.release_held(now, actions);
        self.converge_front(now, actions);
        let numbers: Vec<u64> = self.generations.keys().copied().collect();
        for number in &numbers {
            self.converge_mold(*number, now, actions);
            self.converge_workers(*number, now, actions);
        }
        self.promote(now, actions);
        self.accept(actions);
        for number in numbers {
            self.converge_leaving(number, now, actions);
        }
        self.generations.retain(|_, generation| !generation.is_over());
        self.finish(now, actions);
    }

    fn pass_deadlines(&mut self, now: Duration, actions: &mut Vec<Action>) {
        match self.phase {
            Phase::Draining { until } if now >= until => {
                actions.push(Action::Say("requests still run after shutdown_timeout".into()));
                self.leave(now);
            }
            // Without a worker and without a mold nothing that waits can be answered any more.
            Phase::Draining { .. } if self.is_barren() => self.leave(now),
            // Everything in this phase has a deadline of its own; this one is the last resort.
            Phase::Leaving { until } if now >= until + 2 * GRACE => self.kill_all(1, now, actions),
            _ => {}
        }
    }

    /// New workers that hang in a hook or in their warm-up.
    fn kill_the_late(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let mut late = Vec::new();
        for (number, generation) in &mut self.generations {
            for (nr, worker) in &mut generation.workers {
                if matches!(worker.stage, Stage::Starting { kill_at, .. } if now >= kill_at) {
                    worker.stage = Stage::Killed;
                    actions.push(Action::Kill(*number, *nr));
                    late.push((*number, *nr));
                }
            }
        }
        for (number, nr) in late {
            let why = format!("worker {nr} was not ready within start_timeout and is killed");
            self.note_unfit(number, nr, &why, now, actions);
        }
    }

    fn is_barren(&self) -> bool {
        self.generations.get(&self.serving).is_none_or(|generation| {
            generation.workers.is_empty() && !matches!(generation.mold, Mold::Ready { .. })
        })
    }

    fn converge_front(&mut self, now: Duration, actions: &mut Vec<Action>) {
        match self.front {
            Front::Absent if self.is_up() => {
                if now >= self.front_backoff.due() {
                    self.front = Front::Starting;
                    actions.push(Action::StartFront);
                }
            }
            Front::Absent => self.front = Front::Gone,
            // A front that has drained ends by itself; one that never accepted, or has had its
            // time, is killed.
            Front::Draining if !self.front_overdue(now) => {}
            Front::Gone | Front::Killed => {}
            _ if self.is_up() || matches!(self.phase, Phase::Draining { .. }) => {}
            _ => {
                self.front = Front::Killed;
                actions.push(Action::KillFront);
            }
        }
    }

    fn front_overdue(&self, now: Duration) -> bool {
        matches!(self.phase, Phase::Leaving { until } if now >= until + GRACE)
    }

    fn converge_mold(&mut self, number: u64, now: Duration, actions: &mut Vec<Action>) {
        let up = self.is_up();
        let Some(generation) = self.generations.get_mut(&number) else { return };
        // One that is held is not loaded again: the code on disk is no longer its own.
        let wanted = up && matches!(generation.role, Role::Candidate | Role::Serving);
        if wanted && generation.mold == Mold::Absent && now >= generation.mold_backoff.due() {
            generation.mold = Mold::Booting;
            actions.push(Action::StartMold(number));
        }
    }

    fn converge_workers(&mut self, number: u64, now: Duration, actions: &mut Vec<Action>) {
        let working = self.is_up() || matches!(self.phase, Phase::Draining { .. });
        let target = usize::from(self.limits.workers);
        let timeout = self.limits.shutdown_timeout;
        let Some(generation) = self.generations.get_mut(&number) else { return };
        if !working || !matches!(generation.role, Role::Candidate | Role::Serving) {
            return;
        }
        while generation.wants_fork(target, now) {
            let Some(seat) = self.seats.take() else {
                // No room for a relief: one that is due goes first, unless a place gets free anyway.
                if generation.workers.values().all(|worker| worker.stays())
                    && let Some(nr) = generation.due()
                {
                    retire(generation, number, nr, now + timeout, actions);
                }
                break;
            };
            let nr = generation.free_nr();
            generation.workers.insert(nr, generation::Worker::asked(seat));
            generation.fork_due = now + self.limits.spawn_interval;
            actions.push(Action::Fork { generation: number, nr, seat });
        }
        while generation.living() > target
            && let Some(nr) = generation.due()
        {
            retire(generation, number, nr, now + timeout, actions);
        }
        // Not below the target, though others may be coming.
        while generation.living() > target
            && generation.staying() > target + generation.worn()
            && let Some(nr) = generation.least_needed()
        {
            retire(generation, number, nr, now + timeout, actions);
        }
        if self.limits.fresh {
            generation.open_spares(number, target, actions);
        }
    }

    /// Lets a generation serve once all its workers are ready; the very first one as soon as it has
    /// one.
    fn promote(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if !self.is_up() {
            return;
        }
        let enough = if self.serving == 0 { 1 } else { usize::from(self.limits.workers) };
        let candidate = (self.generations.iter())
            .find(|(_, g)| g.role == Role::Candidate && g.living() >= enough)
            .map(|(number, _)| *number);
        if let Some(number) = candidate {
            self.switch_to(number, now, actions);
        }
    }

    fn accept(&mut self, actions: &mut Vec<Action>) {
        let Front::Ready { since } = self.front else { return };
        if !self.is_up() || self.serving == 0 {
            return;
        }
        self.front = Front::Accepting { since };
        actions.push(Action::Accept);
        if self.slow_stop.is_some() {
            actions.push(Action::Yield);
        }
        if self.phase == Phase::Starting {
            self.phase = Phase::Running;
            actions.push(Action::Announce);
        }
    }

    /// A leaving generation's workers are retired, and its mold goes when they are gone.
    fn converge_leaving(&mut self, number: u64, now: Duration, actions: &mut Vec<Action>) {
        let until = match self.phase {
            Phase::Leaving { until } => until,
            _ => now + self.limits.shutdown_timeout,
        };
        let Some(generation) = self.generations.get_mut(&number) else { return };
        if generation.role == Role::Leaving {
            let exists = |w: &generation::Worker| {
                matches!(
                    w.stage,
                    Stage::Starting { .. } | Stage::Living { .. } | Stage::Used { .. }
                )
            };
            let living: Vec<u16> = (generation.workers.iter())
                .filter(|(_, worker)| exists(worker))
                .map(|(nr, _)| *nr)
                .collect();
            for nr in living {
                retire(generation, number, nr, until, actions);
            }
            send_mold_away(generation, number, now, actions);
        }
        for (nr, worker) in &mut generation.workers {
            if matches!(worker.stage, Stage::Retiring { kill_at } if now >= kill_at) {
                worker.stage = Stage::Killed;
                actions.push(Action::Say(format!(
                    "worker {nr} gen {number} did not leave in time and is killed"
                )));
                actions.push(Action::Kill(number, *nr));
            }
        }
    }

    fn finish(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let all_gone = self.generations.is_empty() && self.front == Front::Gone;
        let code = match self.phase {
            Phase::Leaving { .. } if all_gone => 0,
            Phase::Killing { until, code } if all_gone || now >= until => code,
            _ => return,
        };
        self.phase = Phase::Over;
        actions.push(Action::Exit(code));
    }
}

pub(super) fn retire(
    generation: &mut Generation,
    number: u64,
    nr: u16,
    kill_at: Duration,
    actions: &mut Vec<Action>,
) {
    if let Some(worker) = generation.workers.get_mut(&nr) {
        worker.stage = Stage::Retiring { kill_at };
        actions.push(Action::Retire(number, nr));
    }
}

fn send_mold_away(
    generation: &mut Generation,
    number: u64,
    now: Duration,
    actions: &mut Vec<Action>,
) {
    match generation.mold {
        Mold::Absent => generation.mold = Mold::Gone,
        Mold::Booting => {
            generation.mold = Mold::Killed;
            actions.push(Action::KillMold(number));
        }
        Mold::Ready { .. } if generation.workers.is_empty() => {
            generation.mold = Mold::Quitting { kill_at: now + GRACE };
            actions.push(Action::QuitMold(number));
        }
        Mold::Quitting { kill_at } if now >= kill_at => {
            generation.mold = Mold::Killed;
            actions.push(Action::KillMold(number));
        }
        _ => {}
    }
}
