//! A server that starts.
//!
//! A web server may lose patience and kill who waits for it, but not the server itself; whoever
//! comes next waits for the same one. So its process is noted in the file `starting`: its id, and the
//! time the kernel says it began, which tells it from a later one of that id.

use std::fs;

use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::fault::Fault;
use crate::launch;
use crate::place::Place;

/// Starts a server, unless one has been started that does not listen yet. The descriptor becomes
/// readable when its process ends. For the holder of the lock alone.
pub fn begin(place: &Place) -> Result<OwnedFd, Fault> {
    let path = place.file("starting");
    if let Some(process) = fs::read_to_string(&path).ok().and_then(|note| earlier(&note)) {
        return Ok(process);
    }
    let fault = |error: std::io::Error| {
        Fault::new("the application's server could not be started").because(error.to_string())
    };
    let pid = launch::spawn(place).map_err(fault)?;
    // Without the note another server would be started, and wait for this one's end.
    fs::write(&path, note(pid)).map_err(fault)?;
    pidfd_open(pid, PidfdFlags::empty()).map_err(|error| fault(error.into()))
}

/// It listens, or has ended.
pub fn done(place: &Place) {
    let _ = fs::remove_file(place.file("starting"));
}

fn note(pid: Pid) -> String {
    format!("{pid} {}\n", began(pid))
}

fn earlier(text: &str) -> Option<OwnedFd> {
    let pid = text.split(' ').next()?.parse().ok().and_then(Pid::from_raw)?;
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // Looked at after it has been opened: it cannot become another one meanwhile.
    (note(pid) == text).then_some(process)
}

/// The 22nd field of `/proc/PID/stat`; empty where there is no `/proc`.
fn began(pid: Pid) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split(' ').nth(20).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_more_than_its_number() {
        let own = Pid::from_raw(std::process::id() as i32).unwrap();
        assert!(began(own).parse::<u64>().unwrap() > 0);
        assert!(earlier(&note(own)).is_some());
        assert!(earlier(&format!("{own} 1\n")).is_none());
        assert!(earlier("").is_none());
        assert!(earlier("0 0\n").is_none());
    }
}
