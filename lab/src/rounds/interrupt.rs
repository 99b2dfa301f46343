//! Ctrl-C: the servers are ended at once, and the run goes on to write what it has.

use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::stack;

static SEEN: AtomicBool = AtomicBool::new(false);

/// Why a cell that Ctrl-C ended has no figures.
pub const INTERRUPTED: &str = "interrupted";

/// The exit status of an interrupted run.
pub const STATUS: u8 = 130;

/// From now on signals end the servers instead of this process.
pub fn watch() -> Result<(), String> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| format!("signals cannot be caught: {error}"))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            SEEN.store(true, Ordering::SeqCst);
            // A server that is just being started or waited for ends its wait by this.
            stack::abort_all();
        }
    });
    Ok(())
}

/// True once a signal has come.
pub fn seen() -> bool {
    SEEN.load(Ordering::SeqCst)
}
