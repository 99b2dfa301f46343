//! A Rack response as reply frames: status, headers, then the body as it comes.

use crate::gvl;
use crate::head::{self, Kind, bad};
use crate::ruby::{self, Method};
use crate::seat::{self, RubySeat, Stage};
use rb_sys::*;
use wire::frame;
use worker::Seat;

/// Defines the replying methods of `Oribi::Native::Seat`.
pub fn define(class: VALUE) {
    ruby::define_method(class, c"reply", Method::M3(reply));
    ruby::define_method(class, c"reply_file", Method::M4(reply_file));
    ruby::define_method(class, c"reply_parts", Method::M3(reply_parts));
    ruby::define_method(class, c"write", Method::M1(write));
    ruby::define_method(class, c"finish", Method::M0(finish));
    ruby::define_method(class, c"conclude", Method::M0(conclude));
    ruby::define_method(class, c"cut", Method::M0(cut));
    ruby::define_method(class, c"reply_started?", Method::M0(reply_started));
    ruby::define_method(class, c"interim", Method::M2(interim));
    ruby::define_method(class, c"hijack", Method::M1(hijack));
    ruby::define_method(class, c"hijack_with", Method::M3(hijack_with));
    ruby::define_method(class, c"hijacked?", Method::M0(hijacked));
}

/// `reply(status, headers, body)`: true when the reply is complete; false when the head has gone
/// out and the body, not a plain Array, is to be written part by part; nil, and nothing was
/// written, when it is not a plain reply and `Oribi::Reply` must see to it.
unsafe extern "C" fn reply(object: VALUE, status: VALUE, headers: VALUE, body: VALUE) -> VALUE {
    reply_with(seat::of(object), status, headers, body, true)
}

/// `reply_parts(status, headers, body)`: the same for a body that may be a file but is to be written
/// part by part.
unsafe extern "C" fn reply_parts(
    object: VALUE,
    status: VALUE,
    headers: VALUE,
    body: VALUE,
) -> VALUE {
    reply_with(seat::of(object), status, headers, body, false)
}

fn reply_with(
    this: &mut RubySeat,
    status: VALUE,
    headers: VALUE,
    body: VALUE,
    as_file: bool,
) -> VALUE {
    if this.stage == Stage::Hijacked {
        // Whatever the app returns, the connection is no longer ours.
        end(this);
        return ruby::boolean(true);
    }
    // SAFETY: type checks.
    let simple = unsafe { RB_INTEGER_TYPE_P(status) && RB_TYPE_P(headers, RUBY_T_HASH) };
    if !simple {
        return ruby::nil();
    }
    // SAFETY: the type is checked; subclasses may have an `each` of their own, so they stream.
    let plain = unsafe { RB_TYPE_P(body, RUBY_T_ARRAY) && rb_obj_class(body) == rb_cArray };
    let status = ruby::integer(status);
    let bodiless = matches!(status, 204 | 304);
    if as_file && !plain && !bodiless && responds(body, c"to_path") {
        return ruby::nil();
    }
    if status == 101 || !head::make(&mut this.seat, Kind::Reply, status, headers) {
        return ruby::nil();
    }
    // Asked before the head goes out.
    if !plain && !responds(body, c"each") && !responds(body, c"call") {
        let kind = ruby::kind(body);
        bad!("the app's body is {kind} and responds neither to each nor to call");
    }
    this.stage = Stage::Replying;
    write_head(this, frame::HEAD);
    // A HEAD's Array goes on its way, so that the front can say its length.
    if bodiless || (this.bodiless && !plain) {
        if plain {
            end(this)
        } else {
            end_of_body(this)
        }
        return ruby::boolean(true);
    }
    if !plain {
        this.seat.publish();
        return ruby::boolean(false);
    }
    let mut index = 0;
    // SAFETY: an Array; its length is read anew each time because Ruby may run in between.
    while index < unsafe { RARRAY_LEN(body) } {
        // SAFETY: as above; out of range reads as nil.
        write_part(this, unsafe { rb_ary_entry(body, index) });
        index += 1;
    }
    end(this);
    ruby::boolean(true)
}

/// `reply_file(status, headers, offset, length)`: the whole reply; its body is this part of the file
/// passed before. True.
unsafe extern "C" fn reply_file(
    object: VALUE,
    status: VALUE,
    headers: VALUE,
    offset: VALUE,
    length: VALUE,
) -> VALUE {
    let this = seat::of(object);
    let (offset, length) = (ruby::integer(offset) as u64, ruby::integer(length) as u64);
    head::make(&mut this.seat, Kind::Reply, ruby::integer(status), headers);
    this.stage = Stage::Replying;
    write_head(this, frame::HEAD);
    let payload = frame::file(offset, length);
    write_all(this, &frame::header(frame::FILE, payload.len()));
    write_all(this, &payload);
    end_of_body(this);
    ruby::boolean(true)
}

fn responds(object: VALUE, name: &std::ffi::CStr) -> bool {
    // SAFETY: a C string; asks the object, which may raise.
    unsafe { rb_respond_to(object, rb_intern(name.as_ptr())) != 0 }
}

/// `write(part)`: one part of the body, published at once; false when nobody wants the rest.
unsafe extern "C" fn write(object: VALUE, part: VALUE) -> VALUE {
    let this = seat::of(object);
    write_part(this, part);
    this.seat.publish();
    ruby::boolean(!this.seat.cancelled())
}

/// `finish`: the body is whole, and with it the reply, unless `conclude` is waited for.
unsafe extern "C" fn finish(object: VALUE) -> VALUE {
    end_of_body(seat::of(object));
    ruby::nil()
}

/// `conclude`: the body was closed, so that the reply of a request with errors of its own may end.
unsafe extern "C" fn conclude(object: VALUE) -> VALUE {
    let this = seat::of(object);
    if this.stage == Stage::Whole {
        end(this);
    }
    ruby::nil()
}

/// `cut`: the reply ends here, whole or not; if not, the front cuts the connection.
unsafe extern "C" fn cut(object: VALUE) -> VALUE {
    let this = seat::of(object);
    if this.stage == Stage::Whole {
        end(this)
    } else {
        this.seat.finish()
    }
    ruby::nil()
}

/// `reply_started?`: whether the reply is whole, or the front may already have relayed a part of it.
unsafe extern "C" fn reply_started(object: VALUE) -> VALUE {
    let this = seat::of(object);
    ruby::boolean(this.stage == Stage::Whole || this.seat.reply_started())
}

/// `interim(status, headers)`: a response before the response. Only by the seat's own thread, for
/// it may wait; false when the time for it is over.
unsafe extern "C" fn interim(object: VALUE, status: VALUE, headers: VALUE) -> VALUE {
    let this = seat::of(object);
    if this.stage != Stage::Open || this.gateway {
        return ruby::boolean(false);
    }
    head::make(&mut this.seat, Kind::Interim, ruby::integer(status), headers);
    write_head(this, frame::INTERIM);
    this.seat.publish_interim();
    ruby::boolean(true)
}

/// `hijack(fd)`: the connection goes to the app, whose end of the pair the front does not get.
/// Raises IOError when there is no request, its response has begun, or it came through a gateway.
unsafe extern "C" fn hijack(object: VALUE, fd: VALUE) -> VALUE {
    let this = seat::of(object);
    give_away(this, fd);
    this.seat.publish();
    ruby::nil()
}

/// `hijack_with(fd, status, headers)`: the same behind a head; the reply is complete with it.
unsafe extern "C" fn hijack_with(object: VALUE, fd: VALUE, status: VALUE, headers: VALUE) -> VALUE {
    let this = seat::of(object);
    if this.stage != Stage::Open || this.gateway {
        too_late(this);
    }
    head::make(&mut this.seat, Kind::Raw, ruby::integer(status), headers);
    seat::pass_fd(this, wire::exchange::Kind::Hijack, fd);
    this.stage = Stage::Hijacked;
    write_head(this, frame::INTERIM);
    write_all(this, &frame::header(frame::HIJACK, 0));
    end(this);
    ruby::nil()
}

/// `hijacked?`: whether the present request's connection was given to the app.
unsafe extern "C" fn hijacked(object: VALUE) -> VALUE {
    ruby::boolean(seat::of(object).stage == Stage::Hijacked)
}

/// Any thread of the app's may ask for this, so it must not wait.
fn give_away(this: &mut RubySeat, fd: VALUE) {
    let header = frame::header(frame::HIJACK, 0);
    let possible = this.stage == Stage::Open && this.seat.has_room(header.len());
    if !possible || this.gateway {
        too_late(this);
    }
    seat::pass_fd(this, wire::exchange::Kind::Hijack, fd);
    this.seat.write(&header);
    this.stage = Stage::Hijacked;
    // How long it lasts is the app's business now.
    this.seat.limit(worker::Timeouts::default());
}

fn too_late(this: &RubySeat) -> ! {
    let why = match this.gateway {
        true => "the request came through a gateway, which keeps its client's connection",
        false => "too late to hijack: the response has begun",
    };
    // SAFETY: a static of Ruby's.
    ruby::raise(unsafe { rb_eIOError }, why)
}

/// The reply ends here, or when it is concluded: nothing can follow the end, and the app may have
/// something for its errors when the body is closed.
fn end_of_body(this: &mut RubySeat) {
    if this.has_errors {
        this.stage = Stage::Whole;
    } else {
        end(this);
    }
}

fn end(this: &mut RubySeat) {
    write_all(this, &frame::header(frame::END, 0));
    this.seat.finish();
}

fn write_part(this: &mut RubySeat, part: VALUE) {
    if ruby::bytes(part).is_none() {
        // The front has seen nothing: something else may be answered.
        if !this.seat.reply_started() {
            this.seat.forget();
            this.stage = Stage::Open;
        }
        bad!("a part of the app's body is of class {}, not String", ruby::kind(part));
    }
    write_string(this, frame::BODY, part);
}

/// A String as frames of this kind.
pub fn write_string(this: &mut RubySeat, kind: u8, part: VALUE) {
    let bytes = ruby::bytes(part).unwrap_or_default();
    let mut offset = 0;
    while offset < bytes.len() {
        let length = (bytes.len() - offset).min(frame::PAYLOAD_MAX);
        write_all(this, &frame::header(kind, length));
        let mut left = length;
        while left > 0 {
            // Read anew each time: while this thread waits for room another may change the string.
            let Some(rest) = ruby::bytes(part).and_then(|b| b.get(offset..offset + left)) else {
                this.within_frame = true;
                // SAFETY: a static of Ruby's.
                ruby::raise(
                    unsafe { rb_eRuntimeError },
                    "a part of the body changed while it was sent",
                );
            };
            let wrote = this.seat.write(rest);
            (offset, left) = (offset + wrote, left - wrote);
            if wrote == 0 && !make_room(this) {
                return;
            }
        }
    }
}

/// Writes bytes of our own, waiting for room if need be; gives up when nobody wants them.
fn write_all(this: &mut RubySeat, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let wrote = this.seat.write(bytes);
        bytes = &bytes[wrote..];
        if wrote == 0 && !make_room(this) {
            return;
        }
    }
}

/// The head that was made last, as a frame of this kind. It lies in the seat itself, so it is
/// written by index.
fn write_head(this: &mut RubySeat, kind: u8) {
    let length = this.seat.head().len();
    write_all(this, &frame::header(kind, length));
    let mut done = 0;
    while done < this.seat.head().len() {
        let wrote = this.seat.write_head(done);
        done += wrote;
        if wrote == 0 && !make_room(this) {
            return;
        }
    }
}

/// Waits, without the GVL, for room in the reply window; false when nobody wants the rest.
fn make_room(this: &mut RubySeat) -> bool {
    if this.seat.cancelled() {
        return false;
    }
    this.seat.publish();
    // An exception may end the wait, and what was begun is then never completed.
    this.within_frame = true;
    gvl::without(&this.seat, Seat::wait_for_room, Seat::stop_waiting_for_room);
    this.within_frame = false;
    true
}
