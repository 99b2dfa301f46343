//! What the kernel knows about a server: all processes that stem from those that were started.
//!
//! A process belongs to it if its parent does; if it was seen before (its parent may have died
//! since); if its process group or session was founded by one that belongs; or if it is an orphan
//! that came to this process and carries the tree's mark in its environment.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use procfs::process::{Process as Proc, Stat};
use procfs::{FromRead, ProcError};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal, waitpid,
};

/// The environment variable that carries a tree's mark.
pub const MARK: &str = "ORIBI_LAB_STACK";

/// A server's processes; clones are the same tree, so that a sampler may hold one.
#[derive(Clone, Debug)]
pub struct Tree(Arc<Mutex<State>>);

/// One process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Its pid.
    pub pid: i32,
    /// Its title, as `ps` shows it.
    pub title: String,
    /// CPU seconds of its own, without its children's.
    pub cpu: f64,
    /// Voluntary context switches of all threads it has now.
    pub voluntary: u64,
    /// Involuntary ones.
    pub involuntary: u64,
}

/// Pids come again; a pid and its moment of birth do not.
type Key = (i32, u64);

#[derive(Debug, Default)]
struct State {
    mark: String,
    roots: HashSet<i32>,
    known: BTreeMap<Key, Known>,
    most: u64,
    switches: HashMap<(Key, i32), (u64, u64)>,
}

/// What was last seen of a process; times in ticks.
#[derive(Debug, Default)]
struct Known {
    parent: Option<Key>,
    own: u64,
    /// Of the children it waited for.
    reaped: u64,
    /// It is there, if only as a zombie.
    there: bool,
    zombie: bool,
}

impl Tree {
    /// Nothing yet; orphans are recognised by `mark` in [`MARK`].
    pub fn new(mark: &str) -> Self {
        Self(Arc::new(Mutex::new(State { mark: mark.into(), ..State::default() })))
    }

    /// One more root: a child of this process that somebody else will wait for.
    pub fn add(&self, root: i32) {
        let mut state = self.lock();
        state.roots.insert(root);
        if let Some(stat) = stat(root) {
            state.known.insert((root, stat.starttime), Known::default());
        }
    }

    /// Looks around: who is new, who is gone, what they used.
    pub fn refresh(&self) {
        self.lock().refresh();
    }

    /// CPU seconds since the start of the whole tree, ended processes included; never less than
    /// the last answer.
    pub fn cpu(&self) -> f64 {
        let mut state = self.lock();
        state.refresh();
        state.most = state.most.max(state.total());
        state.most as f64 / procfs::ticks_per_second() as f64
    }

    /// Megabytes; a page that several processes share counts in parts (PSS). None if the kernel
    /// does not say it for all of them.
    pub fn pss_mb(&self) -> Option<f64> {
        let mut bytes = 0;
        for pid in self.pids() {
            match Proc::new(pid).and_then(|process| process.smaps_rollup()) {
                Ok(rollup) => {
                    let maps = rollup.memory_map_rollup.0;
                    bytes +=
                        maps.iter().filter_map(|map| map.extension.map.get("Pss")).sum::<u64>();
                }
                Err(error) if gone(&error) => {}
                Err(_) => return None,
            }
        }
        Some(bytes as f64 / 1e6)
    }

    /// Open file descriptors of all that let us see them: those of the same user.
    pub fn fds(&self) -> u64 {
        let folders = self.pids().into_iter().map(|pid| fs::read_dir(format!("/proc/{pid}/fd")));
        folders.flatten().map(|entries| entries.count() as u64).sum()
    }

    /// Pids that live now.
    pub fn pids(&self) -> Vec<i32> {
        let mut state = self.lock();
        state.refresh();
        state.living().map(|key| key.0).collect()
    }

    /// Context switches (voluntary, involuntary) of all threads seen so far, never going backwards.
    pub fn switches(&self) -> (u64, u64) {
        let mut state = self.lock();
        state.refresh();
        let living: Vec<Key> = state.living().collect();
        for key in living {
            for (thread, now) in threads(key.0) {
                let seen = state.switches.entry((key, thread)).or_default();
                *seen = (seen.0.max(now.0), seen.1.max(now.1));
            }
        }
        sum(state.switches.values().copied())
    }

    /// The processes that live now, in detail.
    pub fn processes(&self) -> Vec<Process> {
        let mut state = self.lock();
        state.refresh();
        let hertz = procfs::ticks_per_second() as f64;
        let described = state.living().map(|key| {
            let (voluntary, involuntary) = sum(threads(key.0).into_iter().map(|its| its.1));
            let cpu = state.known[&key].own as f64 / hertz;
            Process { pid: key.0, title: title(key.0), cpu, voluntary, involuntary }
        });
        described.collect()
    }

    /// Kills whoever lives; true if there was anybody.
    pub fn kill(&self) -> bool {
        let mut state = self.lock();
        state.refresh();
        let living: Vec<Key> = state.living().collect();
        for key in &living {
            // The handle comes first: once we hold it, the pid cannot become somebody else's unseen.
            let handle = Pid::from_raw(key.0).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
            let Some(Ok(handle)) = handle else { continue };
            if stat(key.0).is_some_and(|stat| stat.starttime == key.1) {
                let _ = pidfd_send_signal(handle, Signal::KILL);
            }
        }
        !living.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn living(&self) -> impl Iterator<Item = Key> {
        self.known.iter().filter(|(_, its)| its.there && !its.zombie).map(|(key, _)| *key)
    }

    fn refresh(&mut self) {
        let members = self.members(all());
        for known in self.known.values_mut() {
            known.there = false;
        }
        let myself = getpid().as_raw_nonzero().get();
        // Parents first: a child that dies meanwhile is then counted with itself, not twice.
        for stat in parents_first(members.values().collect()) {
            let key = (stat.pid, stat.starttime);
            let Some(now) = self::stat(stat.pid).filter(|now| now.starttime == key.1) else {
                // It ended since: what was seen a moment ago is the last there is.
                self.note(stat, &members, false);
                continue;
            };
            self.note(&now, &members, true);
            if now.state == 'Z' && now.ppid == myself && !self.roots.contains(&now.pid) {
                let _ = waitpid(Pid::from_raw(now.pid), WaitOptions::NOHANG);
            }
        }
    }

    fn note(&mut self, stat: &Stat, members: &HashMap<i32, Stat>, there: bool) {
        let parent = members.get(&stat.ppid).map(|its| (its.pid, its.starttime));
        let known = self.known.entry((stat.pid, stat.starttime)).or_default();
        known.parent = parent;
        known.own = known.own.max(stat.utime + stat.stime);
        known.reaped = known.reaped.max((stat.cutime + stat.cstime).max(0) as u64);
        known.there = there;
        known.zombie = stat.state == 'Z';
    }

    /// Those of `all` that belong to the tree, by pid.
    fn members(&self, all: HashMap<i32, Stat>) -> HashMap<i32, Stat> {
        let founders: HashMap<i32, u64> = self.known.keys().copied().collect();
        let mut members: HashSet<i32> = HashSet::new();
        loop {
            let before = members.len();
            for stat in all.values().filter(|stat| !members.contains(&stat.pid)).collect::<Vec<_>>()
            {
                // A group's number is its founder's pid, and stays taken as long as the group lives.
                let founded = |group: i32| {
                    let start = founders.get(&group);
                    let holder = all.get(&group).map(|holder| holder.starttime);
                    start.is_some_and(|start| holder.is_none_or(|holder| holder == *start))
                };
                let ours = self.known.contains_key(&(stat.pid, stat.starttime))
                    || members.contains(&stat.ppid)
                    || founded(stat.pgrp)
                    || founded(stat.session)
                    || self.stray(stat);
                if ours {
                    members.insert(stat.pid);
                }
            }
            if members.len() == before {
                break;
            }
        }
        all.into_iter().filter(|(pid, _)| members.contains(pid)).collect()
    }

    /// An orphan that left its session before anybody saw it.
    fn stray(&self, stat: &Stat) -> bool {
        if stat.ppid != getpid().as_raw_nonzero().get() || self.mark.is_empty() {
            return false;
        }
        // Not getsid(): where our session's leader is outside of our pid namespace, as in many a
        // container, the kernel says 0, which rustix's Pid cannot hold.
        let session = self::stat(stat.ppid).map_or(0, |own| own.session);
        let marked = || {
            let environment = Proc::new(stat.pid).and_then(|process| process.environ());
            environment
                .is_ok_and(|its| its.get(OsStr::new(MARK)).is_some_and(|its| *its == *self.mark))
        };
        stat.session != session && marked()
    }

    /// Ticks of all. Those of a child that was waited for are in its parent's too, unless that one
    /// ignores its children or died first: then they are only here.
    fn total(&self) -> u64 {
        let mut children: HashMap<Option<Key>, Vec<Key>> = HashMap::new();
        for (key, known) in &self.known {
            let parent = known.parent.filter(|parent| self.known.contains_key(parent));
            children.entry(parent).or_default().push(*key);
        }
        self.total_of(None, &children).1
    }

    /// Of the children of one (there, ended).
    fn total_of(&self, of: Option<Key>, children: &HashMap<Option<Key>, Vec<Key>>) -> (u64, u64) {
        let (mut there, mut ended) = (0, 0);
        for key in children.get(&of).into_iter().flatten() {
            let known = &self.known[key];
            let (below, gone) = self.total_of(Some(*key), children);
            let whole = known.own + below + gone.max(known.reaped);
            *(if known.there { &mut there } else { &mut ended }) += whole;
        }
        if of.is_none() { (0, there + ended) } else { (there, ended) }
    }
}

/// Everybody on this machine, by pid.
fn all() -> HashMap<i32, Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, stat(pid)?))).collect()
}

fn stat(pid: i32) -> Option<Stat> {
    Stat::from_read(fs::read(format!("/proc/{pid}/stat")).ok()?.as_slice()).ok()
}

fn parents_first(members: Vec<&Stat>) -> Vec<&Stat> {
    let pids: HashSet<i32> = members.iter().map(|its| its.pid).collect();
    let (mut sorted, mut rest): (Vec<&Stat>, Vec<&Stat>) =
        members.into_iter().partition(|its| !pids.contains(&its.ppid));
    let mut done = 0;
    while done < sorted.len() {
        let parent = sorted[done].pid;
        let (children, others) = rest.into_iter().partition(|its| its.ppid == parent);
        sorted.extend::<Vec<&Stat>>(children);
        rest = others;
        done += 1;
    }
    sorted
}

/// Switches of each thread a process has.
fn threads(pid: i32) -> Vec<(i32, (u64, u64))> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let each = entries.filter_map(|entry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let field = |name: &str| -> Option<u64> {
            status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
        };
        let switches = (field("voluntary_ctxt_switches:")?, field("nonvoluntary_ctxt_switches:")?);
        Some((entry.file_name().to_str()?.parse().ok()?, switches))
    });
    each.collect()
}

fn title(pid: i32) -> String {
    let words = Proc::new(pid).and_then(|process| process.cmdline()).unwrap_or_default();
    words.join(" ").trim().to_owned()
}

fn sum(pairs: impl Iterator<Item = (u64, u64)>) -> (u64, u64) {
    pairs.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
}

fn gone(error: &ProcError) -> bool {
    match error {
        ProcError::NotFound(_) => true,
        // The kernel's ESRCH: it ended while we read.
        ProcError::Io(error, _) => error.raw_os_error() == Some(3),
        _ => false,
    }
}

#[cfg(test)]
#[path = "tree_test.rs"]
mod tests;
