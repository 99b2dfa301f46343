//! A slot's request record as a Rack env: a copy of the template plus what varies.

use crate::seat::{self, RubySeat};
use crate::{head, ruby};
use rb_sys::*;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wire::request::{KEYS, Key, Pairs, key};
use wire::slot::door;

/// The interned keys of `wire::request::KEYS`.
static KEY_STRINGS: [AtomicU64; KEYS.len()] = [const { AtomicU64::new(0) }; KEYS.len()];
static RACK_INPUT: AtomicU64 = AtomicU64::new(0);
static RACK_PROTOCOL: AtomicU64 = AtomicU64::new(0);
static QUEUE_TIME: AtomicU64 = AtomicU64::new(0);
static STRING_IO: AtomicU64 = AtomicU64::new(0);

/// Interns the keys and keeps them; called once, from Init.
pub fn remember_keys() {
    let remember = |place: &AtomicU64, name: &str| {
        let key = ruby::interned(name.as_bytes());
        ruby::keep(key);
        place.store(key, Relaxed);
    };
    KEYS.iter().zip(&KEY_STRINGS).for_each(|(name, place)| remember(place, name));
    remember(&RACK_INPUT, "rack.input");
    remember(&RACK_PROTOCOL, "rack.protocol");
    remember(&QUEUE_TIME, "oribi.queue_time");
    // SAFETY: a constant path that stringio, required by lib/oribi, defines.
    let string_io = unsafe { rb_path2class(c"StringIO".as_ptr()) };
    ruby::keep(string_io);
    STRING_IO.store(string_io, Relaxed);
}

/// Makes the env of the request the seat holds.
pub fn build(this: &mut RubySeat) {
    this.gateway = this.seat.door() != door::HTTP;
    let template = if this.gateway { this.gateway_template } else { this.template };
    // SAFETY: the template is a Hash, kept alive by the seat.
    let env = unsafe { rb_hash_dup(template) };
    this.env = env;
    this.bodiless = false;
    for (key, value) in Pairs(this.seat.record()) {
        match key {
            Key::Known(key::REQUEST_METHOD) => this.bodiless = value == b"HEAD",
            Key::Known(key::HTTP_UPGRADE) if head::rack_is(3, 1) && !this.gateway => {
                ruby::store(env, RACK_PROTOCOL.load(Relaxed), protocols(value));
            }
            _ => {}
        }
        let key = match key {
            Key::Known(number) => KEY_STRINGS[number as usize].load(Relaxed),
            Key::Named([]) => continue,
            Key::Named(name) => ruby::interned(name),
        };
        ruby::store(env, key, ruby::string(value));
    }
    if this.seat.body_len() > 0 {
        ruby::store(env, RACK_INPUT.load(Relaxed), input(this));
    }
    let seconds = this.seat.queue_ns() as f64 / 1e9;
    ruby::store(env, QUEUE_TIME.load(Relaxed), ruby::float(seconds));
}

/// `rack.protocol`: what the client would rather speak (RFC 9110, section 7.8).
fn protocols(upgrade: &[u8]) -> VALUE {
    // SAFETY: plain constructors.
    unsafe {
        let list = rb_ary_new();
        for protocol in upgrade.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if !protocol.is_empty() {
                rb_ary_push(list, ruby::string(protocol));
            }
        }
        list
    }
}

/// A rewindable `rack.input` with a copy of the body: the slot is needed for the reply.
fn input(this: &RubySeat) -> VALUE {
    let body = ruby::string_with_room(this.seat.body_len());
    this.seat.body_parts().for_each(|part| ruby::append(body, part));
    // SAFETY: StringIO.new(String).
    unsafe { rb_class_new_instance(1, &body, STRING_IO.load(Relaxed)) }
}

/// If the body is a file: asks for it, so that it is the `rack.input`; false when it cannot be had.
/// May wait without the GVL, and run traps.
pub fn fetch_file(object: VALUE) -> bool {
    if !seat::of(object).seat.body_spooled() {
        return true;
    }
    let file = spooled_input(c"fetch", object);
    if file == ruby::nil() {
        return false;
    }
    let this = seat::of(object);
    this.has_file = true;
    ruby::store(this.env, RACK_INPUT.load(Relaxed), file);
    true
}

/// Closes the file of the last request, whatever the app has done with it.
pub fn close_file(object: VALUE) {
    if std::mem::take(&mut seat::of(object).has_file) {
        spooled_input(c"close", object);
    }
}

/// Calls a function of lib/oribi/spooled_input.rb with the seat.
fn spooled_input(name: &CStr, object: VALUE) -> VALUE {
    // SAFETY: a module that lib/oribi/worker requires; the arguments are as many as it says.
    unsafe {
        let module = rb_path2class(c"Oribi::SpooledInput".as_ptr());
        rb_funcallv(module, rb_intern(name.as_ptr()), 1, &object)
    }
}
