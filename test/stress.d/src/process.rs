//! Processes as /proc shows them.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::os::fd::OwnedFd;

/// What /proc/PID/stat says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// R, S, T, Z …
    pub state: char,
    /// The parent's pid.
    pub parent: i32,
    /// When it was started: tells a process from a later one with the same pid.
    pub start: u64,
}

/// None when there is no such process.
pub fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything; what follows it does not.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

fn tasks(pid: i32) -> Vec<i32> {
    let Ok(list) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    list.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Its children, zombies included.
pub fn children(pid: i32) -> Vec<i32> {
    let of_task = |task| {
        let list = fs::read_to_string(format!("/proc/{pid}/task/{task}/children"));
        let list = list.unwrap_or_default();
        list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()
    };
    tasks(pid).into_iter().flat_map(of_task).collect()
}

/// Its children and theirs, and so on; zombies included.
pub fn below(pid: i32) -> Vec<i32> {
    let children = children(pid);
    let further: Vec<i32> = children.iter().flat_map(|child| below(*child)).collect();
    children.into_iter().chain(further).collect()
}

/// Resident memory that it shares with nobody's files and segments, KiB.
pub fn own_kib(pid: i32) -> i64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

/// What `ps` shows as its command.
pub fn title(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ").trim().into()
}

/// For each thread the nanoseconds it was ready to run and not running.
pub fn run_delays(pid: i32) -> Vec<(i32, u64)> {
    let of_task = |task: i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{task}/schedstat")).ok()?;
        Some((task, text.split_whitespace().nth(1)?.parse().ok()?))
    };
    tasks(pid).into_iter().filter_map(of_task).collect()
}

/// What its file descriptors are, sorted; sockets and pipes without their numbers.
pub fn fds(pid: i32) -> Vec<String> {
    let Ok(list) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let what = |entry: std::io::Result<fs::DirEntry>| {
        let link = fs::read_link(entry.ok()?.path()).ok()?.to_string_lossy().into_owned();
        let number = link.trim_end_matches(']').rsplit_once(":[");
        let kind = number.filter(|(_, number)| number.bytes().all(|c| c.is_ascii_digit()));
        Some(kind.map_or(link.clone(), |(kind, _)| kind.into()))
    };
    let mut fds: Vec<String> = list.filter_map(what).collect();
    fds.sort();
    fds
}

/// A process that can be signalled without hitting another that got its pid.
pub struct Target {
    /// Its pid.
    pub pid: i32,
    pidfd: OwnedFd,
}

impl Target {
    /// The process with this pid if it is still the one that was started at `start`.
    pub fn open(pid: i32, start: u64) -> Option<Target> {
        let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        (stat(pid)?.start == start).then_some(Target { pid, pidfd })
    }

    /// False when it is gone already.
    pub fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.pidfd, signal).is_ok()
    }
}
