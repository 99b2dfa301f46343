//! A response's status and headers, checked, as the payload of a HEAD frame.
//!
//! What HTTP does not allow is the app's mistake and said to be: it raises `Oribi::BadReply`.

use crate::ruby;
use rb_sys::*;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wire::frame;
use worker::Seat;
use worker::head::{Field, Rules, is_name, is_value_byte};

static BAD_REPLY: AtomicU64 = AtomicU64::new(0);
/// Rack's release: the major version above bit 32, the minor below. 0: not said.
static RELEASE: AtomicU64 = AtomicU64::new(0);

/// Defines `Oribi::BadReply` and `Native.rack_release`.
pub fn define(oribi: VALUE, native: VALUE) {
    // SAFETY: called from Init, with statics of Ruby's.
    let class = unsafe { rb_define_class_under(oribi, c"BadReply".as_ptr(), rb_eStandardError) };
    ruby::keep(class);
    BAD_REPLY.store(class, Relaxed);
    ruby::define_function(native, c"rack_release", ruby::Method::M2(rack_release));
}

/// `rack_release(major, minor)`: which rules hold.
unsafe extern "C" fn rack_release(_: VALUE, major: VALUE, minor: VALUE) -> VALUE {
    let (major, minor) = (ruby::integer(major) as u64, ruby::integer(minor) as u64);
    RELEASE.store(major << 32 | minor & 0xffff_ffff, Relaxed);
    ruby::nil()
}

/// Whether Rack is of this release or a later one.
pub fn rack_is(major: u64, minor: u64) -> bool {
    RELEASE.load(Relaxed) >= major << 32 | minor
}

/// Raises `Oribi::BadReply`.
macro_rules! bad {
    ($($part:tt)*) => {
        crate::head::raise_bad(format_args!($($part)*))
    };
}
pub(crate) use bad;

pub(crate) fn raise_bad(message: std::fmt::Arguments<'_>) -> ! {
    ruby::raise_with(BAD_REPLY.load(Relaxed), message)
}

/// Whose head it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A reply's: framing and connection are the front's.
    Reply,
    /// Of a reply whose connection goes to the app: all of it is the app's.
    Raw,
    /// An interim one.
    Interim,
}

/// A head being made. Plain data: exceptions pass over it.
struct Making {
    seat: *mut Seat,
    /// None: the head is the app's as it is.
    rules: Option<Rules>,
    special: bool,
}

/// Makes the head in the seat's own memory. False: it asks for more than a plain reply, which is
/// for `Oribi::Reply`: the connection itself, or a transfer coding.
pub fn make(seat: &mut Seat, kind: Kind, status: i64, headers: VALUE) -> bool {
    let rules = match kind {
        Kind::Reply => Some(Rules::new(status).unwrap_or_else(|why| bad!("{why}"))),
        _ if (100..=999).contains(&status) => None,
        _ => bad!("the app's status is {status}, not between 100 and 999"),
    };
    seat.start_head(status as u16);
    let mut making = Making { seat, rules, special: false };
    ruby::each_pair(headers, visit, (&raw mut making).cast::<c_void>());
    // SAFETY: the seat was borrowed exclusively by this function, and the visits are over.
    let length = unsafe { &*making.seat }.head().len();
    if length > frame::HEAD_MAX {
        bad!("the app's headers are {length} bytes long, {} at most", frame::HEAD_MAX);
    }
    !making.special
}

/// Visits one header pair.
unsafe extern "C" fn visit(name: VALUE, value: VALUE, context: VALUE) -> c_int {
    // SAFETY: the context is the `Making` of `make`, used by nobody else meanwhile.
    let making = unsafe { &mut *(context as *mut c_void).cast::<Making>() };
    let Some(name) = ruby::text(name) else {
        bad!("a header name of the app's is of class {}, not String", ruby::kind(name));
    };
    // SAFETY: the type is checked; the Array's length is read anew each time.
    unsafe {
        if RB_TYPE_P(value, RUBY_T_ARRAY) {
            let mut index = 0;
            while index < RARRAY_LEN(value) {
                making.values(name, rb_ary_entry(value, index));
                index += 1;
            }
            return 0;
        }
    }
    making.values(name, value);
    0
}

impl Making {
    /// One value, which Rack 2 lets be several lines.
    fn values(&mut self, name: VALUE, value: VALUE) {
        let name = ruby::bytes(name).unwrap_or_default();
        if name.starts_with(b"rack.") {
            self.special |= matches!(name, b"rack.hijack" | b"rack.protocol");
            return;
        }
        if !is_name(name) {
            bad!("the app's header name \"{}\" is not one", name.escape_ascii());
        }
        let Some(value) = ruby::text(value) else {
            let class = ruby::kind(value);
            bad!("the app's header {} is of class {class}, not String", name.escape_ascii());
        };
        let value = ruby::bytes(value).unwrap_or_default();
        if value.iter().all(|byte| is_value_byte(*byte)) {
            return self.field(name, value);
        }
        let lines = || value.split(|byte| *byte == b'\n' && !rack_is(3, 0));
        if let Some(wrong) = lines().flatten().find(|byte| !is_value_byte(**byte)) {
            let name = name.escape_ascii();
            bad!("the app's header {name} holds the character 0x{wrong:02x}");
        }
        lines().filter(|line| !line.is_empty()).for_each(|line| self.field(name, line));
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        match self.rules.as_mut().map_or(Ok(Field::Send), |rules| rules.judge(name, value)) {
            Ok(Field::Send) => {}
            Ok(Field::Drop) => return,
            Ok(Field::Coded) => return self.special = true,
            Err(why) => bad!("{why}"),
        }
        // SAFETY: `make` holds the seat exclusively, and nothing of it while pairs are visited.
        if !unsafe { &mut *self.seat }.push_field(name, value) {
            bad!("the app's header {} is longer than 65535 bytes", name.escape_ascii());
        }
    }
}
