//! The request that a thread serves, as the app reaches it: its body, its errors, its reply.

use crate::app::Plan;
use crate::exception::Exception;
use crate::gem::Call;
use crate::interp::Interp;
use crate::value::{Kind, Value};
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use wire::frame;
use worker::Seat;

/// Bytes of errors that wait for the front to look by itself; for more it is woken.
const QUIET: usize = 64 * 1024;
/// Bytes that are read at a time to find the end of a line.
const LINE: usize = 16 * 1024;

thread_local! {
    static SERVING: RefCell<Option<Serving>> = const { RefCell::new(None) };
    static PLAN: RefCell<Option<Arc<Plan>>> = const { RefCell::new(None) };
}

/// A seat, and the request it has.
pub struct Serving {
    /// The seat.
    pub seat: Seat,
    /// The request's body.
    pub body: Body,
    /// How much of it was read.
    position: u64,
    /// Its errors go beside its reply.
    pub has_errors: bool,
    /// The head was written.
    pub replying: bool,
}

/// A request's body.
pub enum Body {
    /// Small enough for memory, or none.
    Bytes(Vec<u8>),
    /// A file without a name, and its length.
    File(File, u64),
}

impl Body {
    fn length(&self) -> u64 {
        match self {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::File(_, length) => *length,
        }
    }

    fn part(&self, from: u64, length: usize) -> Result<Vec<u8>, Exception> {
        let length = (length as u64).min(self.length().saturating_sub(from)) as usize;
        match self {
            Body::Bytes(bytes) => {
                let from = (from as usize).min(bytes.len());
                Ok(bytes[from..from + length].to_vec())
            }
            Body::File(file, _) => {
                let mut part = vec![0; length];
                file.read_exact_at(&mut part, from)
                    .map_err(|error| Exception::new("IOError", format!("rack.input: {error}")))?;
                Ok(part)
            }
        }
    }
}

impl Serving {
    /// For a seat without a request.
    pub fn new(seat: Seat) -> Serving {
        let body = Body::Bytes(Vec::new());
        Serving { seat, body, position: 0, has_errors: false, replying: false }
    }

    /// A request begins.
    pub fn begin(&mut self, body: Body, has_errors: bool) {
        (self.body, self.position) = (body, 0);
        (self.has_errors, self.replying) = (has_errors, false);
    }

    /// Bytes as frames of this kind. False: nobody wants the rest.
    pub fn write(&mut self, kind: u8, bytes: &[u8]) -> bool {
        bytes
            .chunks(frame::PAYLOAD_MAX)
            .all(|part| self.write_all(&frame::header(kind, part.len())) && self.write_all(part))
    }

    /// A frame without a payload.
    pub fn write_mark(&mut self, kind: u8) {
        self.write_all(&frame::header(kind, 0));
    }

    /// The head that was made last.
    pub fn write_head(&mut self) {
        let head = self.seat.head().to_vec();
        self.replying = true;
        self.write(frame::HEAD, &head);
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let wrote = self.seat.write(bytes);
            bytes = &bytes[wrote..];
            if wrote == 0 {
                if self.seat.cancelled() {
                    return false;
                }
                self.seat.publish();
                self.seat.wait_for_room();
            }
        }
        true
    }

    /// What goes to the web server's log. False: it has no way for it.
    pub fn errors(&mut self, text: &[u8]) -> bool {
        if !self.has_errors || self.seat.cancelled() {
            return false;
        }
        self.write(frame::ERRORS, text);
        match self.replying {
            true => self.seat.show(),
            false => self.seat.show_interim(),
        }
        if text.len() > QUIET {
            self.seat.publish();
        }
        true
    }

    fn read(&mut self, length: Option<usize>) -> Result<Vec<u8>, Exception> {
        let left = self.body.length().saturating_sub(self.position) as usize;
        let part = self.body.part(self.position, length.unwrap_or(left))?;
        self.position += part.len() as u64;
        Ok(part)
    }

    fn gets(&mut self) -> Result<Option<Vec<u8>>, Exception> {
        let mut line = Vec::new();
        loop {
            let part = self.body.part(self.position, LINE)?;
            let end = part.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            line.extend_from_slice(&part[..end.unwrap_or(part.len())]);
            self.position += end.unwrap_or(part.len()) as u64;
            if end.is_some() || part.is_empty() {
                return Ok((!line.is_empty()).then_some(line));
            }
        }
    }
}

/// What this thread serves, from now on.
pub fn set(serving: Serving) {
    SERVING.set(Some(serving));
}

/// What this thread does with its request. Not from within.
pub fn with<R>(act: impl FnOnce(&mut Serving) -> R) -> Option<R> {
    SERVING.with_borrow_mut(|serving| serving.as_mut().map(act))
}

/// Whose app this thread loads and serves.
pub fn set_plan(plan: Arc<Plan>) {
    PLAN.set(Some(plan));
}

/// The same.
pub fn plan() -> Option<Arc<Plan>> {
    PLAN.with_borrow(Clone::clone)
}

fn request<R>(act: impl FnOnce(&mut Serving) -> R) -> Result<R, Exception> {
    with(act).ok_or_else(|| Exception::new("IOError", "there is no request now"))
}

/// `Oribi.write`, `Oribi::Input` and `Oribi::Errors`, as far as they are not in the prelude.
pub fn define(interp: &Interp) -> Result<(), Exception> {
    interp.define_module("Oribi", |module| module.singleton_method("write", 1..=1, write))?;
    interp.define_class("Oribi::Input", |class| {
        class.method("read", 0..=2, read)?;
        class.method("gets", 0..=0, |call| match request(Serving::gets)?? {
            Some(line) => call.interp().str(line),
            None => Ok(call.interp().nil()),
        })?;
        class.method("rewind", 0..=0, |call| {
            request(|serving| serving.position = 0)?;
            call.interp().int(0)
        })?;
        class.method("size", 0..=0, |call| {
            call.interp().int(request(|serving| serving.body.length())? as i64)
        })?;
        class.method("eof?", 0..=0, |call| {
            let end = request(|serving| serving.position >= serving.body.length())?;
            Ok(call.interp().bool(end))
        })
    })?;
    interp.define_class("Oribi::Errors", |class| class.method("write", 1.., errors))?;
    Ok(())
}

/// `read(length = nil, buffer = nil)`, as Rack says: nil at the end if a length is asked for.
fn read<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let length = match call.arg(0) {
        nil if nil.is_nil() => None,
        length => Some(
            usize::try_from(length.int()?)
                .map_err(|_| Exception::new("ArgumentError", "a length is not negative"))?,
        ),
    };
    let part = request(|serving| serving.read(length))??;
    let interp = call.interp();
    let ended = part.is_empty() && length.is_some_and(|length| length > 0);
    let part = interp.str(part)?;
    if !call.arg(1).is_nil() {
        call.arg(1).call("replace", &[part])?;
        return Ok(if ended { interp.nil() } else { call.arg(1) });
    }
    Ok(if ended { interp.nil() } else { part })
}

/// `Oribi.write(part)`: of a body that is streamed; false when nobody wants more.
fn write<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let part = call.arg(0);
    if part.kind() != Kind::Str {
        return Err(not_a_part(part));
    }
    let bytes = part.bytes()?;
    let wanted = request(|serving| {
        serving.write(frame::BODY, &bytes);
        serving.seat.publish();
        !serving.seat.cancelled()
    })?;
    Ok(call.interp().bool(wanted))
}

/// A body that is made of something else.
pub fn not_a_part(part: Value) -> Exception {
    let class = part.class_name();
    Exception::new("TypeError", format!("a part of the app's body is of class {class}, not String"))
}

/// `rack.errors.write(text, ...)`: bytes written.
fn errors<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let mut length = 0;
    for text in call.args() {
        let text = text.to_s()?;
        length += text.len() as i64;
        let beside = with(|serving| serving.errors(text.as_bytes()));
        if beside != Some(true) {
            crate::log::raw(&text);
        }
    }
    call.interp().int(length)
}
