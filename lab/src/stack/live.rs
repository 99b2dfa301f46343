//! Processes that were started for a stack, their folder and their logs; and that none of them
//! outlives it.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process_group, set_child_subreaper};
use tempfile::TempDir;

use crate::recipe::Recipe;
use crate::stack::http;
use crate::stack::tree::{MARK, Process, Tree};

/// Why a stack did not come up.
#[derive(Clone, Debug, Default)]
pub struct Failed {
    /// One line.
    pub text: String,
    /// The last lines of the log.
    pub log: Vec<String>,
}

impl From<String> for Failed {
    fn from(text: String) -> Self {
        Self { text, log: Vec::new() }
    }
}

impl From<&str> for Failed {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// What runs. Dropping the last owner kills it and removes its folder.
pub struct Live {
    /// All processes.
    pub tree: Tree,
    state: Mutex<State>,
    dir: PathBuf,
}

#[derive(Default)]
struct State {
    folder: Option<TempDir>,
    parts: Vec<Part>,
}

/// A process that was started.
struct Part {
    name: String,
    child: Child,
    log: PathBuf,
    stop: Signal,
    stop_name: String,
    front: bool,
}

static ALL: Mutex<Vec<Weak<Live>>> = Mutex::new(Vec::new());
static ABORTED: AtomicBool = AtomicBool::new(false);

const START_WITHIN: Duration = Duration::from_secs(60);
/// A server that answers, but not well, may still be on its way up; for so long.
const WELL_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// What a server leaves behind is given so long to end by itself.
const GRACE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(2);
const TAIL: usize = 12;

/// Kills every stack that runs and removes its folder: for the handler of an interrupt, from any
/// thread. Stacks that are started afterwards fail at once.
pub fn abort_all() {
    ABORTED.store(true, Ordering::SeqCst);
    let all: Vec<Weak<Live>> = std::mem::take(&mut lock(&ALL));
    for live in all.iter().filter_map(Weak::upgrade) {
        live.kill();
    }
}

impl Live {
    /// Nothing yet but a folder in `root`.
    pub fn new(root: PathBuf) -> Result<Arc<Self>, Failed> {
        let failed = |error| Failed::from(format!("{}: {error}", root.display()));
        let folder = tempfile::Builder::new().prefix("oribi-lab-").tempdir_in(&root);
        let folder = folder.map_err(failed)?;
        // Proxies started by root read it as another user.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).map_err(failed)?;
        // Orphans then belong to this process, and can neither hide nor be forgotten.
        let _ = set_child_subreaper(Some(rustix::process::getpid()));
        let dir = folder.path().to_path_buf();
        let state = Mutex::new(State { folder: Some(folder), parts: Vec::new() });
        let live = Arc::new(Self { tree: Tree::new(&dir.to_string_lossy()), state, dir });
        lock(&ALL).push(Arc::downgrade(&live));
        Ok(live)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts one more process, leader of a process group, that writes to a log in `dir`; what a
    /// reference prints goes to `said` there. Its pid.
    pub fn spawn(
        &self,
        name: String,
        recipe: &Recipe,
        dir: &Path,
        mut command: Command,
    ) -> Result<u32, Failed> {
        let log = dir.join("log");
        let failed = |error| format!("{name}: cannot be started: {error}");
        let errors = File::create(&log).map_err(failed)?;
        let output = match recipe.reference {
            true => File::create(dir.join("said")),
            false => errors.try_clone(),
        };
        command
            .env(MARK, &self.dir)
            .stdin(Stdio::null())
            .stdout(output.map_err(failed)?)
            .stderr(errors);
        let stop = match recipe.stop.as_str() {
            "QUIT" => Signal::QUIT,
            "INT" => Signal::INT,
            _ => Signal::TERM,
        };
        // Whoever aborts takes this lock after it has said so: no process slips through.
        let mut state = lock(&self.state);
        if ABORTED.load(Ordering::SeqCst) {
            return Err("interrupted".into());
        }
        let child = command.process_group(0).spawn().map_err(failed)?;
        let pid = child.id();
        self.tree.add(pid as i32);
        let (stop_name, front) = (recipe.stop.clone(), recipe.front);
        state.parts.push(Part { name, child, log, stop, stop_name, front });
        Ok(pid)
    }

    /// Waits until process `index` answers a GET of `path` at `url` with 2xx or 3xx.
    pub fn await_answer(&self, index: usize, url: &str, path: &str) -> Result<(), Failed> {
        let begun = Instant::now();
        let mut first_bad = None;
        loop {
            let name = lock(&self.state).parts[index].name.clone();
            let fail = |text: String| Err(Failed { text, log: self.log_tail() });
            match http::get(url, path, ANSWER_WITHIN) {
                Ok((200..400, _)) => return Ok(()),
                Ok((status, _)) => {
                    let since = *first_bad.get_or_insert_with(Instant::now);
                    if since.elapsed() > WELL_WITHIN {
                        return fail(format!("{name} answers GET {path} with {status}"));
                    }
                }
                Err(_) => {}
            }
            if ABORTED.load(Ordering::SeqCst) {
                return fail("interrupted".into());
            }
            if let Some(ended) = self.ended() {
                return fail(ended);
            }
            if begun.elapsed() > START_WITHIN {
                return fail(format!("{name} does not answer within {} s", START_WITHIN.as_secs()));
            }
            thread::sleep(POLL);
        }
    }

    /// The first process that has ended, and how.
    pub fn ended(&self) -> Option<String> {
        lock(&self.state).parts.iter_mut().find_map(|part| {
            let status = part.child.try_wait().ok()??;
            Some(format!("{} has ended: {status}", part.name))
        })
    }

    /// Waits for the end of the first process.
    pub fn wait(&self, at_most: Duration) -> Option<ExitStatus> {
        let mut status = None;
        wait_until(at_most, || {
            self.tree.refresh();
            status = lock(&self.state).parts.first_mut()?.child.try_wait().ok()?;
            status.map(drop)
        });
        status
    }

    /// The last lines of each log.
    pub fn log_tail(&self) -> Vec<String> {
        let state = lock(&self.state);
        let several = state.parts.len() > 1;
        let tails = state.parts.iter().flat_map(|part| {
            let text = fs::read(&part.log).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let tail = lines[lines.len().saturating_sub(TAIL)..].to_vec();
            let head = (several && !tail.is_empty()).then(|| format!("{}:", part.name));
            head.into_iter().chain(tail)
        });
        tails.collect()
    }

    /// Ends all as each wants to be ended, front first, and says what went wrong.
    pub fn stop(&self) -> Vec<String> {
        let mut complaints: Vec<String> = self.ended().into_iter().collect();
        self.tree.refresh();
        for front in [true, false] {
            complaints.extend(self.stop_parts(front));
        }
        wait_until(GRACE, || self.tree.pids().is_empty().then_some(()));
        let left = self.tree.processes();
        // After another complaint this one would only say it again.
        if !left.is_empty() && complaints.is_empty() {
            complaints.push(left_behind(&left));
        }
        self.kill();
        complaints
    }

    /// Signals those that are fronts, or those that are none, and waits for them together.
    fn stop_parts(&self, front: bool) -> Vec<String> {
        for part in lock(&self.state).parts.iter_mut().filter(|part| part.front == front) {
            // Not yet waited for, so the pid is still its own.
            if let (Ok(None), Some(pid)) = (part.child.try_wait(), pid(&part.child)) {
                let _ = rustix::process::kill_process(pid, part.stop);
            }
        }
        let rest = || -> Vec<String> {
            let mut state = lock(&self.state);
            let parts = state.parts.iter_mut().filter(|part| part.front == front);
            let live = parts.filter_map(|part| match part.child.try_wait() {
                Ok(None) => Some(format!(
                    "{} did not end within {} s of {}",
                    part.name,
                    STOP_WITHIN.as_secs(),
                    part.stop_name
                )),
                _ => None,
            });
            live.collect()
        };
        wait_until(STOP_WITHIN, || {
            self.tree.refresh();
            rest().is_empty().then_some(())
        });
        let complaints = rest();
        for part in lock(&self.state).parts.iter_mut().filter(|part| part.front == front) {
            if let (Ok(None), Some(pid)) = (part.child.try_wait(), pid(&part.child)) {
                let _ = kill_process_group(pid, Signal::KILL);
            }
        }
        complaints
    }

    /// Kills what lives, waits for it, and removes the folder.
    pub fn kill(&self) {
        let mut state = lock(&self.state);
        // What is being forked while this goes on is found in the next turn.
        for _ in 0..100 {
            for part in &mut state.parts {
                if let (Ok(None), Some(pid)) = (part.child.try_wait(), pid(&part.child)) {
                    let _ = kill_process_group(pid, Signal::KILL);
                }
            }
            if !self.tree.kill() {
                break;
            }
            thread::sleep(POLL);
        }
        for part in &mut state.parts {
            let _ = part.child.wait();
        }
        self.tree.refresh();
        state.folder = None;
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.kill();
        lock(&ALL).retain(|live| live.strong_count() > 0);
    }
}

fn left_behind(left: &[Process]) -> String {
    let titles: Vec<String> = left.iter().map(|its| format!("`{}`", its.title)).collect();
    let noun = if left.len() == 1 { "process" } else { "processes" };
    format!("left {} {noun} behind, killed now: {}", left.len(), titles.join(", "))
}

fn pid(child: &Child) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(child.id() as i32)
}

/// Polls until there is an answer or the time is over.
fn wait_until(at_most: Duration, mut done: impl FnMut() -> Option<()>) {
    let begun = Instant::now();
    while done().is_none() && begun.elapsed() < at_most {
        thread::sleep(5 * POLL);
    }
}

/// A thread that panicked while it held the lock has left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
