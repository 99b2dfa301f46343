//! From what is to what should be.

use super::*;

impl State {
    /// Names the steps that bring the processes nearer to what is wanted. Calling it again without
    /// an event names none.
    pub(super) fn converge(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.pass_deadlines(now, actions);
        self.stop_slowly(now, actions);
        self.converge_front(now, actions);
        self.converge_mounts(now, actions);
        self.accept(actions);
        self.finish(now, actions);
    }

    fn converge_mounts(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let mut fatal = false;
        for mount in self.mounts.values_mut() {
            fatal |= mount.converge(self.phase, now, actions).is_fatal();
        }
        if fatal {
            self.kill_all(1, now, actions);
            // Molds that were absent are gone with it.
            return self.converge_mounts(now, actions);
        }
        self.mounts.retain(|id, mount| {
            if mount.is_over() {
                actions.push(Action::Forget(*id));
            }
            !mount.is_over()
        });
    }

    fn pass_deadlines(&mut self, now: Duration, actions: &mut Vec<Action>) {
        match self.phase {
            Phase::Draining { until } if now >= until => {
                actions.push(Action::Say("requests still run after shutdown_timeout".into()));
                self.leave(now);
            }
            Phase::Draining { .. } if self.is_barren() => self.leave(now),
            // Everything in this phase has a deadline of its own; this one is the last resort.
            Phase::Leaving { until } if now >= until + 2 * GRACE => self.kill_all(1, now, actions),
            _ => {}
        }
    }

    /// Whether no mount can answer anything any more. One without an app can.
    fn is_barren(&self) -> bool {
        !self.mounts.is_empty() && self.mounts.values().all(Mount::is_barren)
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

    /// The server starts whole: every mount it began with serves before anybody comes in.
    fn accept(&mut self, actions: &mut Vec<Action>) {
        let Front::Ready { since } = self.front else { return };
        let whole = self.mounts.values().all(|mount| mount.serving != 0 || mount.is_leaving());
        if !self.is_up() || (self.phase == Phase::Starting && !whole) {
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

    fn finish(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let mounts_gone = self.mounts.values().all(|mount| mount.generations.is_empty());
        let all_gone = mounts_gone && self.front == Front::Gone;
        let code = match self.phase {
            Phase::Leaving { .. } if all_gone => 0,
            Phase::Killing { until, code } if all_gone || now >= until => code,
            _ => return,
        };
        self.phase = Phase::Over;
        actions.push(Action::Exit(code));
    }
}
