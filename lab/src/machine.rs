//! Facts about the machine: what figures depend on besides the server.

use crate::results::Machine;

/// All of them, now.
pub fn facts() -> Machine {
    Machine::default()
}
