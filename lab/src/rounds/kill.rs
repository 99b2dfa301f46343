//! Kills workers while a phase runs.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::scenario::Kill;
use crate::stack::Running;
use crate::stack::http;

/// A thread that kills.
pub struct Killer {
    stop: Sender<()>,
    thread: JoinHandle<Vec<f64>>,
}

const PATIENCE: Duration = Duration::from_secs(2);

impl Killer {
    /// Begins; the first kill comes after one interval.
    pub fn start(kill: &Kill, running: &Running, began: Instant) -> Result<Self, String> {
        let signal = signal(&kill.signal)?;
        let every = Duration::from_millis(kill.every_ms.max(1));
        let (url, tree) = (running.url.clone(), running.tree.clone());
        let (stop, stopped) = channel();
        let thread = thread::spawn(move || {
            let mut kills = Vec::new();
            let mut next = began + every;
            loop {
                let wait = next.saturating_duration_since(Instant::now());
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return kills;
                }
                next += every;
                // Whoever answers is a worker; only one of this very server is killed.
                let Some(worker) = worker(&url).filter(|pid| tree.pids().contains(pid)) else {
                    continue;
                };
                let at = began.elapsed().as_secs_f64() * 1e3;
                if Pid::from_raw(worker).is_some_and(|pid| kill_process(pid, signal).is_ok()) {
                    kills.push(at);
                }
            }
        });
        Ok(Self { stop, thread })
    }

    /// Ends, and says when it killed, in milliseconds since the phase began.
    pub fn stop(self) -> Vec<f64> {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

fn worker(url: &str) -> Option<i32> {
    match http::get(url, "/pid", PATIENCE) {
        Ok((200, body)) => body.trim().parse().ok(),
        _ => None,
    }
}

fn signal(name: &str) -> Result<Signal, String> {
    Ok(match name.trim_start_matches("SIG") {
        "KILL" => Signal::KILL,
        "TERM" => Signal::TERM,
        "SEGV" => Signal::SEGV,
        "ABRT" => Signal::ABORT,
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        _ => return Err(format!("kill: no signal {name}: KILL, TERM, SEGV, ABRT, INT or QUIT")),
    })
}
