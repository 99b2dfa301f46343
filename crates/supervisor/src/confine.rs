//! What the molds and workers of a mount may do: as whom they run, how much of the machine they may
//! use, what share of the processors they get. It is taken on in our own binary, before that
//! becomes Ruby, so that nothing an app does comes before it or undoes it.

use crate::options::{Engine, Mount, Rlimits};
use crate::privileges::Identity;
use nix::unistd::Uid;
use rustix::process::{
    Resource, Rlimit, getpriority_process, getrlimit, setpriority_process, setrlimit,
};
use rustix::thread::set_no_new_privs;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io;

/// The variable that tells a process of ours its confinement, as JSON.
pub const CONFINEMENT: &str = "ORIBI_CONFINEMENT";

/// Descriptors that a mold has open before it forks its first worker, and some for its app.
const FILES_OF_A_MOLD: u64 = 64;
/// Those that each worker costs it.
const FILES_OF_A_WORKER: u64 = 3;

/// The weight that changes nothing.
const USUAL: u32 = 100;
/// From one nice value to the next the kernel gives a quarter more or less (sched(7)).
const STEP: f64 = 1.25;

/// What one mount's processes may do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Confinement {
    identity: Option<Identity>,
    rlimits: Rlimits,
    /// None: that of the server.
    nice: Option<i32>,
}

impl Confinement {
    /// What the mount's settings ask for, if this process can give it.
    pub fn of(mount: &Mount) -> Result<Confinement, String> {
        let identity = Identity::find(mount.user.as_deref(), mount.group.as_deref())?;
        let root = Uid::effective().is_root();
        let mut rlimits = mount.rlimits;
        if mount.engine == Engine::Mruby {
            // The engine holds an interpreter to it, whose memory is a file that is mapped.
            (rlimits.memory, rlimits.file_size) = (0, 0);
        }
        if rlimits.processes > 0 && root && identity.is_none() {
            return Err("limit_processes: root has no such limit: name a user too".into());
        }
        let least = FILES_OF_A_MOLD + FILES_OF_A_WORKER * u64::from(mount.workers);
        if (1..least).contains(&rlimits.files) {
            return Err(format!(
                "limit_files: {} are too few for a mold of {} workers: say at least {least}",
                rlimits.files, mount.workers
            ));
        }
        if mount.weight > USUAL && !root {
            return Err(format!(
                "weight: {} is more than usual, which only root can give: start the server as root, \
                 or give the other mounts less than {USUAL}",
                mount.weight
            ));
        }
        let step = nice_step(mount.weight);
        let nice = (step != 0)
            .then(|| -> io::Result<i32> { Ok((getpriority_process(None)? + step).clamp(-20, 19)) });
        let nice = nice.transpose().map_err(|error| format!("weight: {error}"))?;
        Ok(Confinement { identity, rlimits, nice })
    }

    /// Whether there is anything to take on.
    pub fn is_none(&self) -> bool {
        *self == Confinement::default()
    }

    /// For another process of ours, and for a mold that a calling process has forked.
    pub fn to_json(&self) -> Value {
        let Rlimits { memory, cpu, files, processes, file_size } = self.rlimits;
        json!({
            "identity": self.identity.as_ref().map(Identity::to_json),
            "rlimits": { "memory": memory, "cpu": cpu, "files": files, "processes": processes,
                         "file_size": file_size },
            "nice": self.nice,
        })
    }

    /// What `to_json` has made.
    fn from_json(value: &Value) -> Option<Confinement> {
        let identity = match &value["identity"] {
            Value::Null => None,
            identity => Some(Identity::from_json(identity)?),
        };
        let limit = |name: &str| value["rlimits"][name].as_u64();
        let rlimits = Rlimits {
            memory: limit("memory")?,
            cpu: limit("cpu")?,
            files: limit("files")?,
            processes: limit("processes")?,
            file_size: limit("file_size")?,
        };
        let nice = value["nice"].as_i64().and_then(|nice| i32::try_from(nice).ok());
        Some(Confinement { identity, rlimits, nice })
    }

    /// What programs go by that ask who runs them.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        self.identity.iter().flat_map(Identity::variables)
    }

    /// Makes the calling process, which has one thread, live by it for ever.
    fn take_on(&self) -> Result<(), String> {
        let wrong = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
        // What only root may do comes before it is root no more.
        if let Some(nice) = self.nice {
            setpriority_process(None, nice).map_err(|error| wrong("weight")(error.into()))?;
        }
        let Rlimits { memory, files, processes, file_size, .. } = self.rlimits;
        // Not the address space: the segment alone takes gigabytes of that, and no memory. `limit_cpu`
        // is the workers' to set: a mold has all its life for what it does.
        for (what, resource, limit) in [
            ("limit_memory", Resource::Data, memory),
            ("limit_files", Resource::Nofile, files),
            ("limit_processes", Resource::Nproc, processes),
            ("limit_file_size", Resource::Fsize, file_size),
        ] {
            if limit > 0 {
                lower(resource, limit).map_err(wrong(what))?;
            }
        }
        if let Some(identity) = &self.identity {
            identity.assume().map_err(wrong("user"))?;
            // Nor does a program with the setuid bit lead back.
            set_no_new_privs(true).map_err(|error| wrong("user")(error.into()))?;
        }
        self.enclose()
    }

    /// The place for what a sandbox adds: namespaces, Landlock, seccomp and cgroups, in this order,
    /// as the last needs the files that the second takes away.
    fn enclose(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Both limits, which nobody can raise again but root. One that is lower already stays.
fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
    setrlimit(resource, Rlimit { current: Some(maximum), maximum: Some(maximum) })?;
    Ok(())
}

/// How far from the server's nice value a weight is: one for each factor of 1.25.
fn nice_step(weight: u32) -> i32 {
    -(f64::from(weight) / f64::from(USUAL)).log(STEP).round() as i32
}

/// What this process has been told, if anything.
pub fn take_on() -> Result<(), String> {
    let Ok(json) = std::env::var(CONFINEMENT) else { return Ok(()) };
    let told = serde_json::from_str(&json).ok();
    let confinement = told.and_then(|told| Confinement::from_json(&told));
    confinement.ok_or("its confinement is not described")?.take_on()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_a_nice_value_of_the_kernels_steps() {
        let steps = [(100, 0), (80, 1), (125, -1), (10, 10), (1000, -10), (50, 3), (200, -3)];
        for (weight, step) in steps {
            assert_eq!(nice_step(weight), step, "{weight}");
        }
        assert!(nice_step(1) > 19 && nice_step(10_000) < -19);
    }

    #[test]
    fn what_is_told_is_what_was_meant() {
        let rlimits = Rlimits { memory: 1 << 30, cpu: 5, files: 100, processes: 9, file_size: 7 };
        let identity = Identity::find(Some("daemon"), None).ok().flatten();
        for nice in [None, Some(-3)] {
            let confinement = Confinement { identity: identity.clone(), rlimits, nice };
            assert_eq!(Confinement::from_json(&confinement.to_json()), Some(confinement));
        }
        assert!(Confinement::default().is_none());
    }
}
