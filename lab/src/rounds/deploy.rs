//! Deploys new code while a phase runs, and looks when it answers.

use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::results::DeployResult;
use crate::rounds::interrupt;
use crate::scenario::Deploy;
use crate::stack::order::{Order, release};
use crate::stack::{Running, http};

/// A thread that deploys.
pub struct Deployer {
    stop: Sender<()>,
    thread: JoinHandle<Result<Vec<DeployResult>, String>>,
}

/// What a question gets; without an answer it is asked again.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(10);
/// A deploy is over when nothing old has answered for so long.
const SETTLED: Duration = Duration::from_secs(1);
/// A deploy that takes longer has failed.
const LONGEST: Duration = Duration::from_secs(60);

struct Work {
    url: String,
    dir: PathBuf,
    orders: Vec<Order>,
    began: Instant,
    stopped: Receiver<()>,
}

impl Deployer {
    /// Begins. What is not due before it is stopped is not done.
    pub fn start(deploy: &Deploy, running: &Running, began: Instant) -> Self {
        let (stop, stopped) = channel();
        let (url, orders, dir) = (running.url.clone(), running.orders.clone(), running.dir.clone());
        let work = Work { url, dir, orders, began, stopped };
        let due = deploy.at_ms.clone();
        Self { stop, thread: thread::spawn(move || work.all(&due)) }
    }

    /// Ends, after the deploy that is under way.
    pub fn stop(self) -> Result<Vec<DeployResult>, String> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| Err("deploy: its thread panicked".into()))
    }
}

impl Work {
    fn all(&self, due: &[u64]) -> Result<Vec<DeployResult>, String> {
        let mut done = Vec::new();
        for (index, at) in due.iter().enumerate() {
            let at = self.began + Duration::from_millis(*at);
            let wait = at.saturating_duration_since(Instant::now());
            if self.stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            // What was started with is release 1.
            let one = self.one(index as u64 + 2);
            done.push(one.map_err(|wrong| format!("deploy {}: {wrong}", index + 1))?);
            if self.stopped.try_recv() == Err(TryRecvError::Disconnected) {
                break;
            }
        }
        Ok(done)
    }

    /// Puts a release on disk, says so, and asks until nothing older answers.
    fn one(&self, number: u64) -> Result<DeployResult, String> {
        release(&self.dir, number)?;
        let begun = Instant::now();
        let mut children = Vec::new();
        for order in &self.orders {
            children.push((order, order.give()?));
        }
        let (mut first_new, mut last_old) = (None, Duration::ZERO);
        let over = loop {
            match self.ask() {
                Some(old) if old < number => last_old = begun.elapsed(),
                Some(_) => first_new = first_new.or(Some(begun.elapsed())),
                None => {}
            }
            let waiting = still_running(&mut children)?;
            let quiet = begun.elapsed().saturating_sub(last_old) > SETTLED;
            if let (Some(first), true, false) = (first_new, quiet, waiting) {
                break Ok(first);
            }
            if interrupt::seen() {
                break Err(interrupt::INTERRUPTED.into());
            }
            if begun.elapsed() > LONGEST {
                break Err(format!("no end within {} s", LONGEST.as_secs()));
            }
            thread::sleep(PAUSE);
        };
        if over.is_err() {
            end(children);
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        over.map(|first| DeployResult {
            at_ms: ms(begun.duration_since(self.began)),
            new_ms: ms(first),
            old_ms: ms(last_old),
        })
    }

    fn ask(&self) -> Option<u64> {
        let (status, body) = http::get(&self.url, "/release", PATIENCE).ok()?;
        body.trim().parse().ok().filter(|_| status == 200)
    }
}

fn still_running(children: &mut [(&Order, Child)]) -> Result<bool, String> {
    let mut any = false;
    for (order, child) in children {
        match child.try_wait().map_err(|error| error.to_string())? {
            None => any = true,
            Some(status) if status.success() => {}
            Some(status) => {
                let command = order.words.join(" ");
                return Err(format!("`{command}` has ended: {status}: {}", order.said()));
            }
        }
    }
    Ok(any)
}

fn end(children: Vec<(&Order, Child)>) {
    for (_, mut child) in children {
        let _ = child.kill();
        let _ = child.wait();
    }
}
