//! The time series of a long run: memory, fds, processes and garbage collection, beside the CPU.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::results::Sample;
use crate::stack::Running;
use crate::stack::http;
use crate::stack::tree::Tree;

/// Collects samples, one for each interval; none when the interval is 0.
pub struct Sampler {
    interval: f64,
    began: Instant,
    origin: f64,
    tree: Tree,
    collections: Arc<Mutex<Workers>>,
    ask: Option<Sender<()>>,
    samples: Vec<Sample>,
}

/// What each worker said first and last. Only what came between counts: a worker that is met late
/// would else look like a burst of collections.
type Workers = BTreeMap<i64, (Collections, Collections)>;

/// What a worker says at `/gc` about itself.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Collections {
    pid: i64,
    count: f64,
    ms: f64,
}

const PATIENCE: Duration = Duration::from_secs(2);

impl Sampler {
    /// Begins with its first sample.
    pub fn new(interval: f64, running: &Running, began: Instant) -> Self {
        let tree = running.tree.clone();
        let collections = Arc::default();
        let ask = (interval > 0.0).then(|| {
            let (ask, asked) = channel();
            let (url, found) = (running.url.clone(), Arc::clone(&collections));
            thread::spawn(move || ask_for_collections(&url, &asked, &found));
            ask
        });
        let origin = tree.cpu();
        Self { interval, began, origin, tree, collections, ask, samples: Vec::new() }
    }

    /// Takes a sample when one is due.
    pub fn tick(&mut self) {
        let at = self.began.elapsed().as_secs_f64();
        if self.interval > 0.0 && at >= self.samples.len() as f64 * self.interval {
            let (gc_count, gc_ms) = self.collected();
            self.samples.push(Sample {
                at,
                cpu: self.tree.cpu() - self.origin,
                pss_mb: self.tree.pss_mb().unwrap_or_default(),
                fds: self.tree.fds(),
                processes: self.tree.pids().len() as u64,
                gc_count,
                gc_ms,
            });
            // The answer is for the next sample: a server that is slow to give it delays nothing.
            let _ = self.ask.as_ref().map(|ask| ask.send(()));
        }
    }

    /// All of them.
    pub fn finish(self) -> Vec<Sample> {
        self.samples
    }

    fn collected(&self) -> (Option<f64>, Option<f64>) {
        let all = self.collections.lock().expect("no thread panics while it holds this");
        if all.is_empty() {
            return (None, None);
        }
        let sum = |part: fn(&Collections) -> f64| {
            Some(all.values().map(|(first, last)| part(last) - part(first)).sum())
        };
        (sum(|its| its.count), sum(|its| its.ms))
    }
}

/// Asks one worker, whichever it is, for each message; ends with the sampler, or when the
/// application has no `/gc`.
fn ask_for_collections(url: &str, asked: &Receiver<()>, found: &Mutex<Workers>) {
    while asked.recv().is_ok() {
        match http::get(url, "/gc", PATIENCE) {
            Ok((200, body)) => {
                let Ok(its) = serde_json::from_str::<Collections>(&body) else { return };
                found.lock().expect("see above").entry(its.pid).or_insert((its, its)).1 = its;
            }
            Ok(_) => return,
            // Too busy at the moment, or just restarting.
            Err(_) => {}
        }
        // Questions that piled up meanwhile are one question.
        while asked.try_recv().is_ok() {}
    }
}
