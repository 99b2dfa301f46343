//! Which generation serves: the switch to a new one, and back to the one before, which is held for
//! a while.

use super::*;

impl Mount {
    /// One store decides who takes. The generation that served is held, if people want that.
    pub(in super::super) fn switch_to(
        &mut self,
        number: u64,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let before = std::mem::replace(&mut self.serving, number);
        let window = self.limits.rollback_window;
        for (other, generation) in &mut self.generations {
            generation.role = match *other {
                other if other == number => Role::Serving,
                other if other == before && !window.is_zero() => Role::Held { until: now + window },
                _ => Role::Leaving,
            };
        }
        actions.push(Action::Serve(self.which(number)));
        if before == 0 {
            actions.push(Action::Route(self.id));
        } else {
            let fate = if window.is_zero() {
                "leaves".into()
            } else {
                format!("is held for {} s", window.as_secs_f64())
            };
            let line = format!("generation {number} serves, generation {before} {fate}");
            actions.push(self.say(&line));
            actions.push(Action::Settled { generation: self.which(number), outcome: Ok(()) });
        }
    }

    /// A held generation leaves when its time is over.
    pub(in super::super) fn release_held(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let mut over = Vec::new();
        for (number, generation) in &mut self.generations {
            if matches!(generation.role, Role::Held { until } if now >= until) {
                generation.role = Role::Leaving;
                over.push(*number);
            }
        }
        actions.extend(over.iter().map(|number| self.say(&format!("generation {number} leaves"))));
    }

    /// Two molds with the app and two sets of workers are enough: who was held leaves for the new.
    pub(in super::super) fn release_all(&mut self) {
        for generation in self.generations.values_mut() {
            if matches!(generation.role, Role::Held { .. }) {
                generation.role = Role::Leaving;
            }
        }
    }

    pub(in super::super) fn note_rollback(&mut self, phase: Phase, actions: &mut Vec<Action>) {
        let serving = self.serving;
        let held = |g: &Generation| matches!(g.role, Role::Held { .. }) && g.living() > 0;
        let held = self.generations.iter().find(|(_, g)| held(g)).map(|(number, _)| *number);
        let Some(number) = held.filter(|_| phase == Phase::Running) else {
            let why = "no generation is held: one is for rollback_window after a restart";
            let why = format!("{why}; generation {serving} serves on");
            actions.push(self.say(&format!("rollback ignored: {why}")));
            let generation = self.which(serving);
            actions.push(Action::Settled { generation, outcome: Err(why) });
            return;
        };
        self.give_up_candidates("a rollback was asked for", actions);
        for (other, generation) in &mut self.generations {
            generation.role = if *other == number { Role::Serving } else { Role::Leaving };
        }
        self.serving = number;
        actions.push(Action::Serve(self.which(number)));
        let line = format!("generation {number} serves again, generation {serving} leaves");
        actions.push(self.say(&line));
        actions.push(Action::Settled { generation: self.which(number), outcome: Ok(()) });
    }

    /// Who still boots is not wanted any more.
    pub(in super::super) fn give_up_candidates(&mut self, why: &str, actions: &mut Vec<Action>) {
        let mut given_up = Vec::new();
        for (number, generation) in &mut self.generations {
            if generation.role == Role::Candidate {
                generation.role = Role::Leaving;
                given_up.push(*number);
            }
        }
        for number in given_up {
            let why = format!("generation {number} is given up: {why}");
            actions.push(self.say(&why));
            actions.push(Action::Settled { generation: self.which(number), outcome: Err(why) });
        }
    }
}
