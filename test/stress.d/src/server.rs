//! The server under test: started as people start it, seen from outside.

use crate::process;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wire::Segment;

/// Where it may leave files, by the options and variables that name them.
const ROOMS: [&str; 3] = ["spool", "tmp", "run"];

/// What the server is started with.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Requests per second.
    pub rate: u64,
    /// Workers.
    pub workers: u64,
    /// Threads of each.
    pub threads: u64,
    /// Further options of the server.
    pub options: &'static [&'static str],
}

impl Shape {
    /// Whether workers are replaced by themselves.
    pub fn recycles(self) -> bool {
        self.options.contains(&"--max-requests")
    }

    /// Not at the highest rate, which is there to see the server and not Rack::Lint at work.
    pub fn is_linted(self) -> bool {
        self.rate < 1_000
    }
}

/// A running server.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its log and the app's records.
    pub directory: PathBuf,
    /// Its shared memory, looked at from outside.
    pub segment: Segment,
}

/// Looks until `found` gives something; None when it has not within `limit`.
pub fn wait_for<T>(limit: Duration, mut found: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        let thing = found();
        if thing.is_some() || Instant::now() > deadline {
            return thing;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Server {
    /// Starts one and waits until it serves.
    pub fn start(root: &Path, directory: PathBuf, shape: Shape) -> Result<Server, String> {
        let say = |error: io::Error| format!("cannot start the server: {error}");
        for name in ["records"].iter().chain(&ROOMS) {
            fs::create_dir_all(directory.join(name)).map_err(say)?;
        }
        let log = File::create(directory.join("log")).map_err(say)?;
        let mut child = Command::new(std::env::var_os("RUBY").unwrap_or("ruby".into()))
            .arg(root.join("exe/oribi"))
            .args(["--bind", "tcp://127.0.0.1:0", "--backlog", "4096"])
            .args(["--rollback-window", "0"])
            .args(["--workers", &shape.workers.to_string()])
            .args(["--threads", &shape.threads.to_string()])
            .arg("--spool-dir")
            .arg(directory.join("spool"))
            .args(shape.options)
            .arg(root.join("test/stress.d/app.ru"))
            .env("TMPDIR", directory.join("tmp"))
            .env("XDG_RUNTIME_DIR", directory.join("run"))
            .env("STRESS_RECORDS", directory.join("records"))
            .env("STRESS_LINT", if shape.is_linted() { "1" } else { "0" })
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(say)?)
            .stderr(log)
            .spawn()
            .map_err(say)?;
        let up = wait_for(Duration::from_secs(20), || {
            let text = fs::read_to_string(directory.join("log")).unwrap_or_default();
            let address = text.split("listening on http://").nth(1)?.lines().next()?.parse().ok();
            (text.contains(" worker") && child.try_wait().ok()?.is_none()).then_some(address?)
        });
        let opened = up.ok_or("it did not come up").and_then(|address| {
            let segment = open_segment(child.id()).ok_or("its segment cannot be opened")?;
            Ok((address, segment))
        });
        match opened {
            Ok((address, segment)) => Ok(Server { child, address, directory, segment }),
            Err(why) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(format!("{why}: see {}", directory.join("log").display()))
            }
        }
    }

    /// The supervisor's pid.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// The files it has made, its log not counted; folders may stay.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders: Vec<PathBuf> =
            ROOMS.iter().map(|room| self.directory.join(room)).collect();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_folder { &mut folders } else { &mut files }.push(entry.path());
            }
        }
        files.sort();
        files
    }

    /// Sends the supervisor a signal.
    pub fn signal(&self, signal: Signal) {
        // Ours to wait for, so the pid cannot be another's.
        if let Some(pid) = Pid::from_raw(self.pid()) {
            let _ = kill_process(pid, signal);
        }
    }

    /// TERM; how it ended, if it did in time.
    pub fn stop(&mut self) -> Option<std::process::ExitStatus> {
        self.signal(Signal::TERM);
        wait_for(Duration::from_secs(15), || self.child.try_wait().ok()?)
    }

    /// For a server that does not end by itself.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reaps orphans that have come to this process as their subreaper; the pids of those that live.
pub fn orphans() -> Vec<i32> {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    process::children(std::process::id() as i32)
}

fn open_segment(pid: u32) -> Option<Segment> {
    let list = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let memfd = list.filter_map(Result::ok).map(|entry| entry.path()).find(|path| {
        fs::read_link(path).is_ok_and(|link| link.to_string_lossy().starts_with("/memfd:oribi "))
    })?;
    let file = File::options().read(true).write(true).open(memfd).ok()?;
    Segment::open(file.as_fd().try_clone_to_owned().ok()?).ok()
}
