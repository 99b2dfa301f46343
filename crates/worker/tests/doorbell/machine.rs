//! How long this machine kept our threads from running: a long wait is no lost wake if nobody could
//! run.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::Duration;
use wire::now_ns;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(2);

/// What was seen of it.
#[derive(Default)]
pub struct Machine {
    stopped: AtomicBool,
    /// At each look: the time, and how long threads were ready to run but did not, so far, all of
    /// them and this one's oversleeping added up, ns.
    starved: Mutex<Vec<(u64, u64)>>,
}

impl Machine {
    /// Looks until it is stopped.
    pub fn watch(&self) {
        let (mut delays, mut total) = (HashMap::new(), 0);
        while !self.stopped.load(Relaxed) {
            let due = now_ns() + LOOK.as_nanos() as u64;
            std::thread::sleep(LOOK);
            total += now_ns().saturating_sub(due);
            for (thread, delay) in run_delays() {
                let before: u64 = delays.insert(thread, delay).unwrap_or(0);
                total += delay.saturating_sub(before);
            }
            self.starved.lock().expect("nobody panics with it").push((now_ns(), total));
        }
    }

    /// Ends `watch`.
    pub fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// The longest of the spans, each without what our threads were starved meanwhile.
    pub fn worst<'a>(&self, spans: impl Iterator<Item = &'a (u64, u64)>) -> u64 {
        let starved = self.starved.lock().expect("as above");
        let at =
            |index: usize| starved.get(index).or(starved.last()).map_or(0, |(_, total)| *total);
        let upto = |time: u64| starved.partition_point(|(look, _)| *look <= time);
        let clean = |(from, to): &(u64, u64)| {
            // The look after the end may be the first to show what was before it.
            let before = upto(*from).checked_sub(1).map_or(0, at);
            (to - from).saturating_sub(at(upto(*to)) - before)
        };
        spans.map(clean).max().unwrap_or(0)
    }
}

fn run_delays() -> Vec<(String, u64)> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let of_task = |task: std::io::Result<std::fs::DirEntry>| {
        let task = task.ok()?.path();
        let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
        Some((task.to_str()?.into(), text.split_whitespace().nth(1)?.parse().ok()?))
    };
    tasks.filter_map(of_task).collect()
}
