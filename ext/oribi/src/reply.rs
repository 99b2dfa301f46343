//! A Rack response as reply frames: status, headers, then the body as it comes.

use crate::gvl;
use crate::ruby::{self, Method};
use crate::seat::{self, RubySeat};
use rb_sys::*;
use std::ffi::{c_int, c_void};
use wire::frame;
use worker::Seat;

/// Defines the replying methods of `Oribi::Native::Seat`.
pub fn define(class: VALUE) {
    ruby::define_method(class, c"reply", Method::M3(reply));
    ruby::define_method(class, c"reply_file", Method::M4(reply_file));
    ruby::define_method(class, c"write", Method::M1(write));
    ruby::define_method(class, c"finish", Method::M0(finish));
    ruby::define_method(class, c"cut", Method::M0(cut));
    ruby::define_method(class, c"reply_started?", Method::M0(reply_started));
}

/// `reply(status, headers, body)`: true when the reply is complete; false when the head has gone
/// out and the body, not a plain Array, is to be written part by part.
unsafe extern "C" fn reply(object: VALUE, status: VALUE, headers: VALUE, body: VALUE) -> VALUE {
    let this = seat::of(object);
    // SAFETY: the type is checked; subclasses may have an `each` of their own, so they stream.
    let plain = unsafe { RB_TYPE_P(body, RUBY_T_ARRAY) && rb_obj_class(body) == rb_cArray };
    // SAFETY: a constant name; asks the object, which may raise. Asked before the head goes out.
    if !plain && unsafe { rb_respond_to(body, rb_intern(c"each".as_ptr())) } == 0 {
        // SAFETY: a static of Ruby's.
        ruby::raise(unsafe { rb_eTypeError }, "the app's body has no method each");
    }
    head(this, status, headers);
    write_head(this);
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
    head(this, status, headers);
    write_head(this);
    let payload = frame::file(offset, length);
    write_all(this, &frame::header(frame::FILE, payload.len()));
    write_all(this, &payload);
    end(this);
    ruby::boolean(true)
}

/// `write(part)`: one part of the body, published at once; false when nobody wants the rest.
unsafe extern "C" fn write(object: VALUE, part: VALUE) -> VALUE {
    let this = seat::of(object);
    write_part(this, part);
    this.seat.publish();
    ruby::boolean(!this.seat.cancelled())
}

/// `finish`: the reply is whole.
unsafe extern "C" fn finish(object: VALUE) -> VALUE {
    end(seat::of(object));
    ruby::nil()
}

/// `cut`: the reply ends here and is not whole; the front cuts the connection.
unsafe extern "C" fn cut(object: VALUE) -> VALUE {
    seat::of(object).seat.finish();
    ruby::nil()
}

/// `reply_started?`: whether the front may already have relayed a part of the reply.
unsafe extern "C" fn reply_started(object: VALUE) -> VALUE {
    ruby::boolean(seat::of(object).seat.reply_started())
}

fn end(this: &mut RubySeat) {
    write_all(this, &frame::header(frame::END, 0));
    this.seat.finish();
}

fn head(this: &mut RubySeat, status: VALUE, headers: VALUE) {
    let status = ruby::integer(status);
    // SAFETY: statics of Ruby's, and a type check.
    let (argument_error, is_hash) = unsafe { (rb_eArgError, RB_TYPE_P(headers, RUBY_T_HASH)) };
    // Below 200 a client waits on for the real answer.
    if !(200..=999).contains(&status) {
        ruby::raise(argument_error, "the app's status is not between 200 and 999");
    }
    if !is_hash {
        ruby::raise(argument_error, "the app's headers are not a Hash");
    }
    this.seat.start_head(status as u16);
    ruby::each_pair(headers, field, (&raw mut this.seat).cast());
}

/// Visits one header pair; a value with newlines is several headers.
unsafe extern "C" fn field(name: VALUE, value: VALUE, context: VALUE) -> c_int {
    // SAFETY: the context is the seat that `head` passed and holds exclusively.
    let seat = unsafe { &mut *(context as *mut c_void).cast::<Seat>() };
    let name_bytes = ruby::bytes(name).unwrap_or_else(|| not_a_string("name", name));
    if name_bytes.starts_with(b"rack.") {
        return 0;
    }
    let value_bytes = ruby::bytes(value).unwrap_or_else(|| not_a_string("value", value));
    for line in value_bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        if !seat.push_field(name_bytes, line) {
            // SAFETY: a static of Ruby's.
            ruby::raise(
                unsafe { rb_eArgError },
                "a header of the app's is longer than 65535 bytes",
            );
        }
    }
    if value_bytes.is_empty() {
        seat.push_field(name_bytes, b"");
    }
    0
}

fn not_a_string(what: &str, object: VALUE) -> ! {
    // SAFETY: any object has a class, every class a name; the message is made by Ruby, so nothing
    // of ours is skipped by the jump.
    unsafe {
        let (what, class) = (ruby::string(what.as_bytes()), rb_obj_classname(object));
        rb_raise(
            rb_eTypeError,
            c"a header %s of the app's is a %s, not a String".as_ptr(),
            RSTRING_PTR(what),
            class,
        )
    }
}

fn write_part(this: &mut RubySeat, part: VALUE) {
    let Some(bytes) = ruby::bytes(part) else {
        // SAFETY: any object has a class, every class a name.
        unsafe {
            let class = rb_obj_classname(part);
            rb_raise(
                rb_eTypeError,
                c"a part of the app's body is a %s, not a String".as_ptr(),
                class,
            )
        }
    };
    let mut offset = 0;
    while offset < bytes.len() {
        let length = (bytes.len() - offset).min(frame::PAYLOAD_MAX);
        write_all(this, &frame::header(frame::BODY, length));
        let mut left = length;
        while left > 0 {
            // Read anew each time: while this thread waits for room another may change the string.
            let Some(rest) = ruby::bytes(part).and_then(|b| b.get(offset..offset + left)) else {
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

/// The HEAD frame. The head lies in the seat itself, so it is written by index.
fn write_head(this: &mut RubySeat) {
    let length = this.seat.head().len();
    write_all(this, &frame::header(frame::HEAD, length));
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
    gvl::without(&this.seat, Seat::wait_for_room, Seat::stop_waiting_for_room);
    true
}
