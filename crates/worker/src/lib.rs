//! What every worker does, whatever the engine: sit down, take a request, reply, retire.
//!
//! A `Seat` is one worker thread's place at the queue, a `Crew` the seats of one process. The
//! engine (CRuby, mruby) turns records into its own requests and calls the app.

#![forbid(unsafe_code)]

mod aside;
mod child;
mod crew;
pub mod head;
pub mod holes;
mod pass;
mod reply;
mod seat;
mod timeout;

pub use aside::{Urgency, share};
pub use child::end_with;
pub use crew::Crew;
pub use seat::{Fronts, Next, Seat};
pub use timeout::Timeouts;
