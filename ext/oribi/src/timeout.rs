//! The part of `Oribi::Native::Seat` that `Oribi::Timeout` and `Oribi::Alarm` are made of. Any
//! thread of the app's may call it, also while the seat's own thread waits.

use crate::ruby::{self, Method};
use crate::{gvl, seat};
use rb_sys::VALUE;
use std::time::Duration;
use wire::doorbell;
use wire::sync::Ordering::Acquire;
use worker::Timeouts;

/// Seconds beyond which a timeout is as good as none: thirty years, which every clock here holds.
const LONGEST: f64 = 1e9;

/// Defines the methods.
pub fn define(class: VALUE) {
    ruby::define_method(class, c"timeouts", Method::M2(timeouts));
    ruby::define_method(class, c"limit", Method::M2(limit));
    ruby::define_method(class, c"prolong", Method::M1(prolong));
    ruby::define_method(class, c"remaining", Method::M0(remaining));
    ruby::define_method(class, c"age", Method::M0(age));
    ruby::define_method(class, c"alarmed", Method::M0(alarmed));
    ruby::define_method(class, c"alarms", Method::M0(alarms));
    ruby::define_method(class, c"wait_for_alarm", Method::M1(wait_for_alarm));
}

/// A worker's first seat, and the alarms it has seen there.
struct Seen(&'static doorbell::Seat, u32);

/// Seconds; nil, zero and less are none.
fn duration(seconds: VALUE) -> Option<Duration> {
    let seconds = if seconds == ruby::nil() { 0.0 } else { ruby::real(seconds) };
    (seconds > 0.0).then(|| Duration::from_secs_f64(seconds.min(LONGEST)))
}

/// `timeouts(hard, soft)`: seconds that each request has from the next one on, or none.
unsafe extern "C" fn timeouts(object: VALUE, hard: VALUE, soft: VALUE) -> VALUE {
    let timeouts = Timeouts { hard: duration(hard), soft: duration(soft) };
    seat::of(object).seat.set_timeouts(timeouts);
    ruby::nil()
}

/// `limit(hard, soft)`: seconds that the present request has from now, or none.
unsafe extern "C" fn limit(object: VALUE, hard: VALUE, soft: VALUE) -> VALUE {
    let timeouts = Timeouts { hard: duration(hard), soft: duration(soft) };
    seat::shared(object).seat.limit(timeouts);
    ruby::nil()
}

/// `prolong(seconds)`: the present request gets so much more, where it is limited.
unsafe extern "C" fn prolong(object: VALUE, seconds: VALUE) -> VALUE {
    if let Some(by) = duration(seconds) {
        seat::shared(object).seat.extend(by);
    }
    ruby::nil()
}

/// `remaining -> Float | nil`: seconds until the present request's time is up.
unsafe extern "C" fn remaining(object: VALUE) -> VALUE {
    let left = seat::shared(object).seat.remaining();
    left.map_or(ruby::nil(), |left| ruby::float(left.as_secs_f64()))
}

/// `age -> Float`: seconds since the present request was taken.
unsafe extern "C" fn age(object: VALUE) -> VALUE {
    ruby::float(seat::shared(object).seat.age().as_secs_f64())
}

/// `alarmed -> env | nil`: the present request's env, once, when its backtrace is wanted.
unsafe extern "C" fn alarmed(object: VALUE) -> VALUE {
    let this = seat::shared(object);
    if this.seat.take_alarm() { this.env } else { ruby::nil() }
}

/// `alarms -> Integer`: to be asked of a worker's first seat before `alarmed` of all its seats.
unsafe extern "C" fn alarms(object: VALUE) -> VALUE {
    let alarms = seat::shared(object).seat.alarms();
    ruby::number(alarms.alarms.load(Acquire).into())
}

/// `wait_for_alarm(alarms)`: sleeps until there are more of them; may return early.
unsafe extern "C" fn wait_for_alarm(object: VALUE, seen: VALUE) -> VALUE {
    let seen = Seen(seat::shared(object).seat.alarms(), ruby::integer(seen) as u32);
    gvl::without(&seen, |seen| seen.0.wait_for_alarm(seen.1), |seen| seen.0.ring_alarm());
    ruby::nil()
}
