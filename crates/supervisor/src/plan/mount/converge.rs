//! From what is to what should be, for one mount.

use super::*;

impl Mount {
    /// Names the steps that bring its processes nearer to what is wanted.
    pub(in super::super) fn converge(
        &mut self,
        server: Phase,
        now: Duration,
        actions: &mut Vec<Action>,
    ) -> happen::Verdict {
        self.pass_deadlines(now, actions);
        let mut phase = self.phase(server);
        let verdict = self.kill_the_late(phase, now, actions);
        // A mount that has not come is taken back.
        phase = self.phase(phase);
        self.release_held(now, actions);
        let numbers: Vec<u64> = self.generations.keys().copied().collect();
        for number in &numbers {
            self.converge_mold(*number, phase, now, actions);
            self.converge_workers(*number, phase, now, actions);
        }
        if !verdict.is_fatal() {
            self.promote(phase, now, actions);
        }
        for number in numbers {
            self.converge_leaving(number, phase, now, actions);
        }
        self.generations.retain(|_, generation| !generation.is_over());
        verdict
    }

    /// One that leaves by itself has deadlines of its own.
    fn pass_deadlines(&mut self, now: Duration, actions: &mut Vec<Action>) {
        match self.stay {
            Stay::Unrouting { until } if now >= until => {
                actions.push(self.say("requests still run after shutdown_timeout"));
                self.leave(now);
            }
            Stay::Unrouting { .. } if self.is_barren() => self.leave(now),
            // Everything in here has a deadline of its own; this one is the last resort.
            Stay::Leaving { until } if now >= until + 2 * GRACE => self.kill_all(actions),
            _ => {}
        }
    }

    /// Without a worker and without a mold nothing that waits can be answered any more.
    pub(in super::super) fn is_barren(&self) -> bool {
        let serving = self.generations.get(&self.serving);
        matches!(self.stay, Stay::Leaving { .. })
            || serving.is_none_or(|generation| {
                generation.workers.is_empty() && !matches!(generation.mold, Mold::Ready { .. })
            })
    }

    /// New workers that hang in a hook or in their warm-up.
    fn kill_the_late(
        &mut self,
        phase: Phase,
        now: Duration,
        actions: &mut Vec<Action>,
    ) -> happen::Verdict {
        let mut late = Vec::new();
        let id = self.id;
        for (number, generation) in &mut self.generations {
            for (nr, worker) in &mut generation.workers {
                if matches!(worker.stage, Stage::Starting { kill_at, .. } if now >= kill_at) {
                    worker.stage = Stage::Killed;
                    actions.push(Action::Kill(GenerationId { mount: id, number: *number }, *nr));
                    late.push((*number, *nr));
                }
            }
        }
        for (number, nr) in late {
            let why = format!("worker {nr} was not ready within start_timeout and is killed");
            if self.note_unfit(number, nr, &why, phase, now, actions).is_fatal() {
                return happen::Verdict::Fatal;
            }
        }
        happen::Verdict::Noted
    }

    fn converge_mold(
        &mut self,
        number: u64,
        phase: Phase,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let which = self.which(number);
        let Some(generation) = self.generations.get_mut(&number) else { return };
        // One that is held is not loaded again: the code on disk is no longer its own.
        let wanted = phase.is_up() && matches!(generation.role, Role::Candidate | Role::Serving);
        if wanted && generation.mold == Mold::Absent && now >= generation.mold_backoff.due() {
            generation.mold = Mold::Booting;
            actions.push(Action::StartMold(which));
        }
    }

    fn converge_workers(
        &mut self,
        number: u64,
        phase: Phase,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let working = phase.is_up() || matches!(phase, Phase::Draining { .. });
        let (target, at_once) = (self.limits.ready(), usize::from(self.limits.workers));
        let until = now + self.limits.shutdown_timeout;
        let which = self.which(number);
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
                    retire(generation, which, nr, until, actions);
                }
                break;
            };
            let nr = generation.free_nr();
            generation.workers.insert(nr, generation::Worker::asked(seat));
            generation.fork_due = now + self.limits.spawn_interval;
            actions.push(Action::Fork { generation: which, nr, seat });
        }
        while generation.living() > target
            && let Some(nr) = generation.due()
        {
            retire(generation, which, nr, until, actions);
        }
        // Not below the target, though others may be coming.
        while generation.living() > target
            && generation.staying() > target + generation.worn()
            && let Some(nr) = generation.least_needed()
        {
            retire(generation, which, nr, until, actions);
        }
        if self.limits.fresh {
            generation.open_spares(which, at_once, actions);
        }
    }

    /// Lets a generation serve once all its workers are ready; the very first one as soon as it has
    /// one.
    fn promote(&mut self, phase: Phase, now: Duration, actions: &mut Vec<Action>) {
        if !phase.is_up() {
            return;
        }
        let enough = if self.serving == 0 { 1 } else { usize::from(self.limits.workers) };
        let candidate = (self.generations.iter())
            .find(|(_, g)| g.role == Role::Candidate && g.living() >= enough)
            .map(|(number, _)| *number);
        let Some(number) = candidate else { return };
        let comes = self.serving == 0;
        self.switch_to(number, now, actions);
        // At the start nobody waits for a mount: they wait for the server.
        if comes && phase == Phase::Running {
            actions.push(Action::Settled { generation: self.which(number), outcome: Ok(()) });
        }
    }

    /// A leaving generation's workers are retired, and its mold goes when they are gone.
    fn converge_leaving(
        &mut self,
        number: u64,
        phase: Phase,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let until = match phase {
            Phase::Leaving { until } => until,
            _ => now + self.limits.shutdown_timeout,
        };
        let which = self.which(number);
        let Some(mut generation) = self.generations.remove(&number) else { return };
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
                retire(&mut generation, which, nr, until, actions);
            }
            send_mold_away(&mut generation, which, now, actions);
        }
        for (nr, worker) in &mut generation.workers {
            if matches!(worker.stage, Stage::Retiring { kill_at } if now >= kill_at) {
                worker.stage = Stage::Killed;
                let line = format!("worker {nr} gen {number} did not leave in time and is killed");
                actions.push(self.say(&line));
                actions.push(Action::Kill(which, *nr));
            }
        }
        self.generations.insert(number, generation);
    }
}

pub(super) fn retire(
    generation: &mut Generation,
    which: GenerationId,
    nr: u16,
    kill_at: Duration,
    actions: &mut Vec<Action>,
) {
    if let Some(worker) = generation.workers.get_mut(&nr) {
        worker.stage = Stage::Retiring { kill_at };
        actions.push(Action::Retire(which, nr));
    }
}

fn send_mold_away(
    generation: &mut Generation,
    which: GenerationId,
    now: Duration,
    actions: &mut Vec<Action>,
) {
    match generation.mold {
        Mold::Absent => generation.mold = Mold::Gone,
        Mold::Booting => {
            generation.mold = Mold::Killed;
            actions.push(Action::KillMold(which));
        }
        Mold::Ready { .. } if generation.workers.is_empty() => {
            generation.mold = Mold::Quitting { kill_at: now + GRACE };
            actions.push(Action::QuitMold(which));
        }
        Mold::Quitting { kill_at } if now >= kill_at => {
            generation.mold = Mold::Killed;
            actions.push(Action::KillMold(which));
        }
        _ => {}
    }
}
