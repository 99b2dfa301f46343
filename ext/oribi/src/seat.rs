//! `Oribi::Native::Seat`: a worker thread's place at the queue, as a Ruby object.

use crate::ruby::{self, DataType, Method};
use crate::{env, garbage, gvl, process};
use rb_sys::*;
use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wire::doorbell::OPEN;
use wire::exchange::Kind;
use wire::slot::door;
use worker::{Crew, Next, Seat, Urgency};

/// What a Ruby Seat points to. It lives as long as the process: its thread may sleep in it.
pub struct RubySeat {
    /// The engine-independent part.
    pub seat: Seat,
    /// The env Hash that every request's env starts as a copy of.
    pub template: VALUE,
    /// The same for requests that come through a gateway, which can do less.
    pub gateway_template: VALUE,
    /// The Ruby object has the file that the last request's body lay in.
    pub has_file: bool,
    /// The env of the request being served, or of the last one.
    pub env: VALUE,
    /// Replies to the request have no body: it is a HEAD.
    pub bodiless: bool,
    /// The request came through a gateway, so the client's connection is not ours to give.
    pub gateway: bool,
    /// Its errors go beside its reply.
    pub has_errors: bool,
    /// A frame has begun and may not be whole: nothing else can be written now.
    pub within_frame: bool,
    /// How far its reply has come.
    pub stage: Stage,
}

/// How far a reply has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing but interim responses yet.
    Open,
    /// The head was written.
    Replying,
    /// All but the end was written, for which `conclude` is waited: there may be errors before it.
    Whole,
    /// The connection is the app's.
    Hijacked,
}

static TYPE: DataType = DataType::new(c"Oribi::Native::Seat");

/// Defines the class and `Oribi::Native.seats`.
pub fn define(native: VALUE) -> VALUE {
    let class = ruby::define_class(native, c"Seat");
    ruby::keep(class);
    ruby::define_function(native, c"seats", Method::M3(seats));
    ruby::define_method(class, c"template=", Method::M1(set_template));
    ruby::define_method(class, c"gateway_template=", Method::M1(set_gateway_template));
    ruby::define_method(class, c"gateway?", Method::M0(gateway));
    ruby::define_method(class, c"env", Method::M0(env_of));
    ruby::define_method(class, c"take", Method::M0(take));
    ruby::define_method(class, c"retire", Method::M0(retire));
    ruby::define_method(class, c"retired?", Method::M0(retired));
    ruby::define_method(class, c"pass", Method::M2(pass));
    ruby::define_method(class, c"cancelled?", Method::M0(cancelled));
    ruby::define_method(class, c"step_aside", Method::M2(step_aside));
    ruby::define_method(class, c"come_back", Method::M0(come_back));
    for (name, urgency) in
        [(c"SPARE", Urgency::Spare), (c"DUE", Urgency::Due), (c"FORCED", Urgency::Forced)]
    {
        ruby::define_number(class, name, urgency as i64);
    }
    for (name, kind) in [(c"FILE", Kind::File), (c"HIJACK", Kind::Hijack), (c"BODY", Kind::Body)] {
        ruby::define_number(class, name, kind as i64);
    }
    class
}

/// The Rust side of a Ruby Seat; raises TypeError for anything else.
///
/// The reference is exclusive in fact: a seat is used by one Ruby thread, and `gvl::without` only
/// hands out shared ones while that thread waits.
pub fn of<'a>(object: VALUE) -> &'a mut RubySeat {
    // SAFETY: the type is checked by Ruby; the data was leaked by `seats` and is never freed.
    unsafe { &mut *rb_check_typeddata(object, &raw const TYPE.0).cast::<RubySeat>() }
}

/// The same for calls from other threads than the seat's own.
pub fn shared<'a>(object: VALUE) -> &'a RubySeat {
    // SAFETY: as in `of`.
    unsafe { &*rb_check_typeddata(object, &raw const TYPE.0).cast::<RubySeat>() }
}

/// `seats(first, count, generation) -> [Seat]`: the seats of one worker process, whose templates
/// are to be set before they take anything.
unsafe extern "C" fn seats(native: VALUE, first: VALUE, count: VALUE, generation: VALUE) -> VALUE {
    let (first, count) = (ruby::integer(first) as u16, ruby::integer(count) as u16);
    let generation = ruby::integer(generation) as u64;
    let Some((segment, fronts)) = process::segment() else {
        // SAFETY: a static of Ruby's.
        ruby::raise(unsafe { rb_eRuntimeError }, "open_segment was not called");
    };
    let line = &segment.board().seats[usize::from(first)];
    garbage::begin();
    let crew = Arc::new(match line.gate.load(Relaxed) {
        OPEN => Crew::new(first, line.limit.load(Relaxed)),
        _ => Crew::once(first),
    });
    // SAFETY: plain constructors; a class defined by `define`; the boxes are leaked on purpose,
    // so the places registered with the collector stay where they are.
    unsafe {
        let list = rb_ary_new();
        let class = rb_const_get(native, rb_intern(c"Seat".as_ptr()));
        for index in first..first + count {
            let seat = Seat::new(segment, fronts, crew.clone(), index, generation);
            let data = Box::into_raw(Box::new(RubySeat {
                seat,
                template: rb_hash_new(),
                gateway_template: rb_hash_new(),
                has_file: false,
                env: ruby::nil(),
                bodiless: false,
                gateway: false,
                has_errors: false,
                within_frame: false,
                stage: Stage::Open,
            }));
            rb_gc_register_address(&raw mut (*data).template);
            rb_gc_register_address(&raw mut (*data).gateway_template);
            rb_gc_register_address(&raw mut (*data).env);
            let data = data.cast::<c_void>();
            rb_ary_push(list, rb_data_typed_object_wrap(class, data, &raw const TYPE.0));
        }
        list
    }
}

/// `template = hash`: what every env starts as.
unsafe extern "C" fn set_template(object: VALUE, template: VALUE) -> VALUE {
    // SAFETY: raises for what is no Hash.
    unsafe { rb_check_type(template, RUBY_T_HASH as i32) };
    of(object).template = template;
    template
}

/// `gateway_template = hash`: the same for requests that come through a gateway.
unsafe extern "C" fn set_gateway_template(object: VALUE, template: VALUE) -> VALUE {
    // SAFETY: raises for what is no Hash.
    unsafe { rb_check_type(template, RUBY_T_HASH as i32) };
    of(object).gateway_template = template;
    template
}

/// `gateway?`: whether the request being served came through one.
unsafe extern "C" fn gateway(object: VALUE) -> VALUE {
    ruby::boolean(of(object).gateway)
}

/// `env`: of the request being served, or of the last one.
unsafe extern "C" fn env_of(object: VALUE) -> VALUE {
    of(object).env
}

/// `take -> env | nil`: waits for a request; nil when the seat is to be given up.
unsafe extern "C" fn take(object: VALUE) -> VALUE {
    env::close_file(object);
    loop {
        let this = of(object);
        match this.seat.turn() {
            Next::Leave => {
                garbage::note();
                return ruby::nil();
            }
            Next::Sleep => gvl::without(&this.seat, Seat::sleep, Seat::ring),
            Next::Request => {
                garbage::note();
                env::build(this);
                this.stage = Stage::Open;
                (this.has_errors, this.within_frame) = (false, false);
                if !env::fetch_file(object) {
                    of(object).seat.decline();
                } else if of(object).seat.begin() {
                    let this = of(object);
                    this.has_errors = this.seat.door() == door::GATEWAY_WITH_ERRORS;
                    return this.env;
                }
            }
        }
    }
}

/// `retire`: `take` returns nil from now on. Safe in a trap.
unsafe extern "C" fn retire(object: VALUE) -> VALUE {
    of(object).seat.retire();
    ruby::nil()
}

/// `retired?`: whether the seat is to be given up.
unsafe extern "C" fn retired(object: VALUE) -> VALUE {
    ruby::boolean(of(object).seat.retired())
}

/// `step_aside(urgency, workers) -> true | false`: whether this process may collect its garbage
/// now; then `come_back` must follow.
unsafe extern "C" fn step_aside(object: VALUE, urgency: VALUE, workers: VALUE) -> VALUE {
    let urgency = match ruby::integer(urgency) {
        0 => Urgency::Spare,
        1 => Urgency::Due,
        _ => Urgency::Forced,
    };
    ruby::boolean(of(object).seat.step_aside(urgency, ruby::integer(workers) as u32))
}

/// `come_back`: the process has collected and takes requests again.
unsafe extern "C" fn come_back(object: VALUE) -> VALUE {
    of(object).seat.come_back();
    ruby::nil()
}

/// `pass(kind, fd)`: passes a copy of an fd to the front, before the frame that needs it.
unsafe extern "C" fn pass(object: VALUE, kind: VALUE, fd: VALUE) -> VALUE {
    let kind = match ruby::integer(kind) {
        1 => Kind::File,
        2 => Kind::Hijack,
        _ => Kind::Body,
    };
    pass_fd(of(object), kind, fd);
    ruby::nil()
}

/// Passes a copy of the fd of this number; raises when that fails.
pub fn pass_fd(this: &mut RubySeat, kind: Kind, fd: VALUE) {
    let fd = ruby::integer(fd) as i32;
    // SAFETY: borrowed only for the call; a number that is no fd gives EBADF.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    if let Err(error) = this.seat.pass(kind, fd) {
        ruby::raise_io(&error);
    }
}

/// `cancelled?`: whether nobody wants the reply any more.
unsafe extern "C" fn cancelled(object: VALUE) -> VALUE {
    ruby::boolean(of(object).seat.cancelled())
}
