//! `index.cgi`: the CGI program beside an application, that hands the request to the application's
//! waiting server and starts that server when it is not there.
//!
//! A web server runs it once for each request, so what counts is how soon it is at work and gone:
//! it is linked statically, has no threads, and talks FastCGI over a unix socket. The files it
//! shares with the server are described in `place.rs`, who may start one when in `reach.rs`.

#![deny(unsafe_code)]
#![cfg_attr(not(test), no_main)]

mod body;
mod fault;
mod launch;
mod log;
mod place;
mod reach;
mod relay;
mod request;
mod starting;
mod stream;

use crate::fault::Fault;
use crate::place::Place;
use crate::relay::{Ending, Relay};
use crate::request::Request;

/// Called by the C library: what Rust's runtime does first (it parses the list of mappings to know
/// the stack, and sets up signal handlers) takes longer than all that is done here.
// SAFETY: the name is C's for the function that a program begins with, and there is no other.
#[allow(unsafe_code)]
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn main() -> i32 {
    stream::fill_gaps();
    // Never by an argument: a web server makes a query without `=` into arguments (RFC 3875, 4.4).
    if let Some(dir) = launch::asked() {
        return launch::become_server(dir);
    }
    serve().unwrap_or_else(|fault| fault.answer())
}

/// Answers the request of this process; its exit status.
fn serve() -> Result<i32, Fault> {
    let request = Request::from_environment()?;
    let place = Place::find()?;
    // A server that died before it took the request in costs nothing but a second way to it.
    let mut again = true;
    loop {
        let reached = reach::reach(&place)?;
        let ending = Relay::new(reached.socket, &request).run()?;
        match ending {
            Ending::Status(status) => return Ok(status),
            Ending::Unheard if again && !reached.started => again = false,
            Ending::Unheard => {
                return Err(Fault::new("the application's server ended before it answered")
                    .because(log::last_line(&place, 0)));
            }
            Ending::Died { answered: true } => return Err(Fault::cut(log::last_line(&place, 0))),
            Ending::Died { answered: false } => {
                return Err(Fault::new("the application's server died while it had this request")
                    .because(log::last_line(&place, 0)));
            }
        }
    }
}
