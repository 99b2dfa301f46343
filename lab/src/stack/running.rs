//! A contender that runs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::stack::http;
use crate::stack::live::Live;
use crate::stack::order::Order;
use crate::stack::tree::Tree;

/// A contender that runs. Dropping it kills what is left.
pub struct Running {
    /// `tcp://HOST:PORT` or `unix:///PATH`: what the generator talks to.
    pub url: String,
    /// Milliseconds from the start of the first process to the first answer of the last instance;
    /// the front not included.
    pub start_ms: f64,
    /// The commands, front first.
    pub commands: Vec<String>,
    /// All its processes.
    pub tree: Tree,
    /// How each instance is told to take up new code.
    pub orders: Vec<Order>,
    /// Its folder.
    pub dir: PathBuf,
    instances: Vec<String>,
    each: u32,
    live: Arc<Live>,
}

const WORKERS_WITHIN: Duration = Duration::from_secs(30);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

impl Running {
    /// What [`crate::stack::Blueprint::start`] has started: `each` workers in each of the
    /// `instances`.
    pub fn new(
        live: Arc<Live>,
        url: String,
        start_ms: f64,
        commands: Vec<String>,
        instances: Vec<String>,
        each: u32,
    ) -> Self {
        let tree = live.tree.clone();
        tree.refresh();
        let (orders, dir) = (Vec::new(), live.dir().to_path_buf());
        Self { url, start_ms, commands, tree, orders, dir, instances, each, live }
    }

    /// Asks `/pid` until as many workers as there are have answered with different pids, and says
    /// which.
    pub fn await_workers(&self) -> Result<BTreeSet<i32>, String> {
        let until = Instant::now() + WORKERS_WITHIN;
        let mut all = BTreeSet::new();
        for url in &self.instances {
            all.extend(self.workers_at(url, until)?);
        }
        self.tree.refresh();
        Ok(all)
    }

    /// The end of the logs of front and servers.
    pub fn log_tail(&self) -> Vec<String> {
        self.live.log_tail()
    }

    /// What is amiss right now: a process that was started and has ended. None when all live.
    pub fn ended(&mut self) -> Option<String> {
        self.live.ended()
    }

    /// Ends it, front first, and says what was not as it should be: nothing, one hopes.
    pub fn stop(self) -> Vec<String> {
        self.live.stop()
    }

    fn workers_at(&self, url: &str, until: Instant) -> Result<BTreeSet<i32>, String> {
        let mut seen = BTreeSet::new();
        while seen.len() < self.each as usize {
            if Instant::now() > until {
                let (few, each) = (seen.len(), self.each);
                return Err(format!("{url}: only {few} of {each} workers answer /pid"));
            }
            if let Some(ended) = self.live.ended() {
                return Err(ended);
            }
            // More at once than there are workers, so that nobody can answer them alone.
            let answers = thread::scope(|scope| {
                let ask = || http::get(url, "/pid", ANSWER_WITHIN);
                let asked: Vec<_> = (0..2 * self.each).map(|_| scope.spawn(ask)).collect();
                asked.into_iter().map(|it| it.join().expect("asking")).collect::<Vec<_>>()
            });
            for answer in answers {
                match answer {
                    Ok((200, body)) => seen.extend(first_number(&body)),
                    Ok((404, _)) => {
                        return Err("the application does not answer GET /pid (404)".into());
                    }
                    _ => {}
                }
            }
            thread::sleep(PAUSE);
        }
        Ok(seen)
    }
}

fn first_number(text: &str) -> Option<i32> {
    let digits = text.trim_start_matches(|its: char| !its.is_ascii_digit());
    digits.split(|its: char| !its.is_ascii_digit()).next()?.parse().ok()
}
