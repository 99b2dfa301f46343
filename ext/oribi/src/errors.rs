//! What `Oribi::Errors` is made of: `rack.errors` as frames beside the reply.

use crate::reply;
use crate::ruby::{self, Method};
use crate::seat::{self, RubySeat, Stage};
use rb_sys::VALUE;
use wire::frame;

/// Bytes of errors that wait for the front to look by itself; for more it is woken.
const QUIET: usize = 64 * 1024;

/// Defines the methods.
pub fn define(class: VALUE) {
    ruby::define_method(class, c"errors", Method::M2(errors));
    ruby::define_method(class, c"flush_errors", Method::M0(flush_errors));
}

/// `errors(text, patient)`: true when the text goes with the reply of the request being served;
/// false when it cannot: the door has no way for it, the reply is over, or another thread has just
/// begun something. Only the seat's own thread may be patient, for it then waits for room.
unsafe extern "C" fn errors(object: VALUE, text: VALUE, patient: VALUE) -> VALUE {
    let this = seat::of(object);
    let length = ruby::bytes(text).map_or(0, <[u8]>::len);
    if !may_write(this) || !(patient == ruby::boolean(true) || this.seat.has_room(length + 8)) {
        return ruby::boolean(false);
    }
    reply::write_string(this, frame::ERRORS, text);
    show(this);
    if length > QUIET {
        this.seat.publish();
    }
    ruby::boolean(true)
}

/// `flush_errors`: they need not wait for the reply.
unsafe extern "C" fn flush_errors(object: VALUE) -> VALUE {
    let this = seat::of(object);
    if may_write(this) {
        this.seat.publish();
    }
    ruby::nil()
}

fn may_write(this: &RubySeat) -> bool {
    this.has_errors && !this.within_frame && !this.seat.cancelled()
}

/// Should the process be killed, these are said all the same; and they need not wake the front.
fn show(this: &mut RubySeat) {
    match this.stage {
        Stage::Open => this.seat.show_interim(),
        _ => this.seat.show(),
    }
}
