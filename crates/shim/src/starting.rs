//! A server that starts.
//!
//! A web server may lose patience and kill who waits for it, but not the server itself; whoever
//! comes next waits for the same one. So its process is noted in the file `starting`: its id, and the
//! time the kernel says it began, which tells it from a later one of that id.

use std::fs;

use rustix::process::{Pid, WaitOptions, test_kill_process, waitpid};

use crate::fault::Fault;
use crate::launch;
use crate::place::Place;

/// The process of a server that does not listen yet.
pub struct Starting(Pid);

impl Starting {
    /// Starts a server, unless one has been started already. For the holder of the lock alone.
    pub fn begin(place: &Place) -> Result<Starting, Fault> {
        let path = place.file("starting");
        if let Some(earlier) = fs::read_to_string(&path).ok().and_then(|note| earlier(&note)) {
            return Ok(earlier);
        }
        let fault = |error: std::io::Error| {
            Fault::new("the application's server could not be started").because(error.to_string())
        };
        let pid = launch::spawn(place).map_err(fault)?;
        // Without the note another server would be started, and wait for this one's end.
        fs::write(&path, note(pid)).map_err(fault)?;
        Ok(Starting(pid))
    }

    /// It has ended. (No pidfd: hosts for hire have old kernels.)
    pub fn ended(&self) -> bool {
        match waitpid(Some(self.0), WaitOptions::NOHANG) {
            Ok(ended) => ended.is_some(),
            // Somebody else's child.
            Err(_) => test_kill_process(self.0).is_err(),
        }
    }

    /// It listens, or has ended.
    pub fn done(self, place: &Place) {
        let _ = fs::remove_file(place.file("starting"));
    }
}

fn note(pid: Pid) -> String {
    format!("{pid} {}\n", began(pid))
}

fn earlier(text: &str) -> Option<Starting> {
    let pid = text.split(' ').next()?.parse().ok().and_then(Pid::from_raw)?;
    let lives = test_kill_process(pid).is_ok() && note(pid) == text;
    lives.then_some(Starting(pid))
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
        assert!(!earlier(&note(own)).unwrap().ended());
        assert!(earlier(&format!("{own} 1\n")).is_none());
        assert!(earlier("").is_none());
        assert!(earlier("0 0\n").is_none());
    }

    #[test]
    #[allow(clippy::zombie_processes)] // Whether it is reaped is the question.
    fn the_end_of_a_child_is_seen() {
        let child = std::process::Command::new("true").spawn().unwrap();
        let starting = Starting(Pid::from_raw(child.id() as i32).unwrap());
        while !starting.ended() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(earlier(&note(starting.0)).is_none());
    }
}
