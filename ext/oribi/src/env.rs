//! A slot's request record as a Rack env: a copy of the template plus what varies.

use crate::ruby;
use crate::seat::RubySeat;
use rb_sys::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wire::request::{KEYS, Key, Pairs};

/// The interned keys of `wire::request::KEYS`.
static KEY_STRINGS: [AtomicU64; KEYS.len()] = [const { AtomicU64::new(0) }; KEYS.len()];
static RACK_INPUT: AtomicU64 = AtomicU64::new(0);
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
    remember(&QUEUE_TIME, "oribi.queue_time");
    // SAFETY: a constant path that stringio, required by lib/oribi, defines.
    let string_io = unsafe { rb_path2class(c"StringIO".as_ptr()) };
    ruby::keep(string_io);
    STRING_IO.store(string_io, Relaxed);
}

/// The env of the request the seat holds.
pub fn build(this: &RubySeat) -> VALUE {
    // SAFETY: the template is a Hash, kept alive by `seats`.
    let env = unsafe { rb_hash_dup(this.template) };
    for (key, value) in Pairs(this.seat.record()) {
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
    env
}

/// A rewindable `rack.input` with a copy of the body: the slot is needed for the reply.
fn input(this: &RubySeat) -> VALUE {
    let body = ruby::string_with_room(this.seat.body_len());
    this.seat.body_parts().for_each(|part| ruby::append(body, part));
    // SAFETY: StringIO.new(String).
    unsafe { rb_class_new_instance(1, &body, STRING_IO.load(Relaxed)) }
}
