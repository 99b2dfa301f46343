//! What an event changes in what is known.

use super::*;

impl State {
    /// Takes in an event.
    pub(super) fn note(&mut self, event: Event, now: Duration, actions: &mut Vec<Action>) {
        match event {
            Event::Mount(id, tag, limits) => self.note_mount(id, tag, limits),
            Event::Unmount(id) => self.note_unmount(id, now, actions),
            Event::Unmounted(id) => {
                if let Some(mount) = self.mounts.get_mut(&id).filter(|mount| mount.is_leaving()) {
                    mount.leave(now);
                }
            }
            Event::FrontReady if self.front == Front::Starting => {
                self.front = Front::Ready { since: now }
            }
            Event::FrontReady => {}
            Event::FrontDrained => self.note_drained(now),
            Event::FrontDied => self.note_front_death(now, actions),
            Event::Stop => self.note_stop(now, actions),
            Event::StopNow(code) => self.kill_all(code, now, actions),
            Event::SlowStop => self.note_slow_stop(now, actions),
            Event::Restart(id) if !self.takes_restarts() => self.ignore_restart(id, actions),
            Event::Tick => {}
            other => self.note_of_mount(other, now, actions),
        }
    }

    /// What concerns one mount is its own to take in.
    fn note_of_mount(&mut self, event: Event, now: Duration, actions: &mut Vec<Action>) {
        let Some(mount) = event.mount().and_then(|id| self.mounts.get_mut(&id)) else { return };
        let phase = mount.phase(self.phase);
        if mount.happens(event, phase, now, actions).is_fatal() {
            self.kill_all(1, now, actions);
        }
    }

    fn note_mount(&mut self, id: MountId, tag: String, limits: Limits) {
        if self.is_up() {
            self.mounts.entry(id).or_insert_with(|| Mount::new(id, tag, limits));
        }
    }

    fn note_unmount(&mut self, id: MountId, now: Duration, actions: &mut Vec<Action>) {
        if !self.is_up() {
            return;
        }
        let Some(mount) = self.mounts.get_mut(&id) else { return };
        // Another front is not told of it.
        let is_known = matches!(self.front, Front::Starting | Front::Ready { .. })
            || matches!(self.front, Front::Accepting { .. });
        if mount.unroute(now, actions) && !is_known {
            mount.leave(now);
        }
    }

    fn ignore_restart(&self, id: MountId, actions: &mut Vec<Action>) {
        let Some(mount) = self.mounts.get(&id) else { return };
        let starting = self.phase == Phase::Starting;
        let why = if starting { "the server is still starting" } else { "it is stopping" };
        let why = format!("restart ignored: {why}");
        actions.push(mount.say(&why));
        let generation = mount.which(mount.newest);
        actions.push(Action::Settled { generation, outcome: Err(why) });
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
        // With it went every request that a leaving mount still had.
        self.mounts.values_mut().filter(|mount| mount.is_leaving()).for_each(|m| m.leave(now));
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
        for mount in self.mounts.values_mut() {
            mount.give_up_candidates("the server is to end", actions);
            mount.release_all();
        }
        self.phase = Phase::Draining { until: now + self.shutdown_timeout };
        match self.front {
            Front::Accepting { .. } => {
                self.front = Front::Draining;
                actions.push(Action::Drain);
            }
            _ => self.leave(now),
        }
    }

    /// The last worker does not leave by itself: the front drains, as in any other stop.
    fn note_slow_stop(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if !self.is_up() || self.slow_stop.is_some() {
            return;
        }
        self.slow_stop = Some(now);
        if matches!(self.front, Front::Accepting { .. }) {
            actions.push(Action::Yield);
        }
        for mount in self.mounts.values_mut() {
            mount.give_up_candidates("the server is to end", actions);
        }
        actions.push(Action::Say(format!(
            "workers leave one after the other, {} s apart, then the server ends",
            self.slow_interval().as_secs_f64()
        )));
    }

    fn slow_interval(&self) -> Duration {
        let intervals = self.mounts.values().map(|mount| mount.limits.spawn_interval);
        intervals.max().unwrap_or_default()
    }

    pub(super) fn stop_slowly(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.slow_stop.is_none_or(|due| now < due) || !self.is_up() {
            return;
        }
        let interval = self.slow_interval();
        let mut many = self.mounts.values_mut().filter(|mount| mount.limits.workers > 1).peekable();
        if many.peek().is_some() && !interval.is_zero() {
            many.for_each(|mount| mount.limits.workers -= 1);
            self.slow_stop = Some(now + interval);
        } else {
            self.slow_stop = None;
            self.note_stop(now, actions);
        }
    }

    /// Draining is over: workers and molds are next.
    pub(super) fn leave(&mut self, now: Duration) {
        if let Phase::Draining { until } = self.phase {
            self.phase = Phase::Leaving { until: until.max(now + GRACE / 2) };
            self.mounts.values_mut().for_each(Mount::make_leave);
        }
    }

    /// Kills everything there is. The front goes last, so that no reply is lost that was complete.
    pub(super) fn kill_all(&mut self, code: u8, now: Duration, actions: &mut Vec<Action>) {
        if self.is_ending() {
            return;
        }
        self.phase = Phase::Killing { until: now + LAST_WAIT, code };
        self.mounts.values_mut().for_each(|mount| mount.kill_all(actions));
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

impl Event {
    /// The mount it concerns, if it is one.
    fn mount(&self) -> Option<MountId> {
        match self {
            Event::MoldReady(generation)
            | Event::MoldFailed(generation, _)
            | Event::MoldDied(generation, _)
            | Event::Forked(generation, _)
            | Event::Up(generation, _)
            | Event::Unfit(generation, ..)
            | Event::WorkerDied { generation, .. }
            | Event::Worn { generation, .. }
            | Event::Spent(generation, _) => Some(generation.mount),
            Event::Mount(id, ..)
            | Event::Unmount(id)
            | Event::Unmounted(id)
            | Event::Restart(id)
            | Event::Rollback(id)
            | Event::Recycle(id)
            | Event::More(id)
            | Event::Fewer(id)
            | Event::Scale(id, _)
            | Event::Limit(id, _) => Some(*id),
            _ => None,
        }
    }
}
