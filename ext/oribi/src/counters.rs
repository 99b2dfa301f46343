//! `Oribi::Counter`, `Oribi::Gauge` and `Oribi::Histogram`: an app's metrics as Ruby objects.
//!
//! A process that is part of a server counts in the memory that all of it shares; any other (a
//! console, a test) in memory of its own. An app that was loaded before its process became part of
//! a server keeps its objects: what they have counted goes over.

use crate::garbage;
use crate::process::duplicate;
use crate::ruby::{self, DataType, Method};
use rb_sys::*;
use std::ffi::{CStr, c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};
use wire::counters::{Counter, Counters, Gauge, Histogram, Refused};

/// The memory that the server shares.
static SHARED: OnceLock<Counters> = OnceLock::new();
/// This process's own, while there is no other.
static OWN: OnceLock<Option<Counters>> = OnceLock::new();
/// All metrics that Ruby has, which move once there is something to move to.
static ALL: Mutex<Vec<&'static (dyn Movable + Sync)>> = Mutex::new(Vec::new());

/// What a Ruby object of ours points to; it lives as long as the process.
struct Handle<T> {
    name: String,
    bounds: Vec<f64>,
    /// Where it counts until there is something to share.
    own: T,
    shared: OnceLock<T>,
}

/// What the three kinds have in common.
trait Metric: Copy + Default + Send + Sync + 'static {
    const TYPE: &'static DataType;
    fn find(counters: &Counters, name: &str, bounds: &[f64]) -> Result<Self, Refused>;
    /// Adds what `from` has counted.
    fn take_over(self, from: Self);
}

trait Movable {
    fn move_to(&self, counters: &Counters);
}

impl<T: Metric> Handle<T> {
    #[inline]
    fn metric(&self) -> T {
        *self.shared.get().unwrap_or(&self.own)
    }
}

impl<T: Metric> Movable for Handle<T> {
    fn move_to(&self, counters: &Counters) {
        let to = T::find(counters, &self.name, &self.bounds).unwrap_or_default();
        to.take_over(self.own);
        let _ = self.shared.set(to);
    }
}

static COUNTER: DataType = DataType::new(c"Oribi::Counter");
static GAUGE: DataType = DataType::new(c"Oribi::Gauge");
static HISTOGRAM: DataType = DataType::new(c"Oribi::Histogram");

impl Metric for Counter {
    const TYPE: &'static DataType = &COUNTER;
    fn find(counters: &Counters, name: &str, _: &[f64]) -> Result<Self, Refused> {
        counters.counter(name)
    }
    fn take_over(self, from: Self) {
        self.increment(from.get());
    }
}

impl Metric for Gauge {
    const TYPE: &'static DataType = &GAUGE;
    fn find(counters: &Counters, name: &str, _: &[f64]) -> Result<Self, Refused> {
        counters.gauge(name)
    }
    fn take_over(self, from: Self) {
        if from.get() != 0 {
            self.set(from.get());
        }
    }
}

impl Metric for Histogram {
    const TYPE: &'static DataType = &HISTOGRAM;
    fn find(counters: &Counters, name: &str, bounds: &[f64]) -> Result<Self, Refused> {
        counters.histogram(name, bounds)
    }
    fn take_over(self, from: Self) {
        self.merge(from);
    }
}

/// Defines the three classes, and the functions of `Oribi::Native` that make their objects.
pub fn define(oribi: VALUE, native: VALUE) {
    let [counter, gauge, histogram] = [c"Counter", c"Gauge", c"Histogram"].map(|name| {
        let class = ruby::define_class(oribi, name);
        ruby::keep(class);
        class
    });
    ruby::define_method(counter, c"increment", Method::Any(counter_increment));
    ruby::define_method(counter, c"get", Method::M0(counter_get));
    ruby::define_method(gauge, c"set", Method::M1(gauge_set));
    ruby::define_method(gauge, c"increment", Method::Any(gauge_increment));
    ruby::define_method(gauge, c"decrement", Method::Any(gauge_decrement));
    ruby::define_method(gauge, c"get", Method::M0(gauge_get));
    ruby::define_method(histogram, c"observe", Method::M1(histogram_observe));
    ruby::define_method(histogram, c"count", Method::M0(histogram_count));
    ruby::define_method(histogram, c"sum", Method::M0(histogram_sum));
    ruby::define_function(native, c"counter", Method::M1(new_counter));
    ruby::define_function(native, c"gauge", Method::M1(new_gauge));
    ruby::define_function(native, c"histogram", Method::M2(new_histogram));
    ruby::define_function(native, c"open_counters", Method::M2(open_counters));
}

/// `open_counters(fd, mount)`: from now on this process counts there; once in a process.
unsafe extern "C" fn open_counters(_: VALUE, fd: VALUE, mount: VALUE) -> VALUE {
    match duplicate(fd).and_then(Counters::open) {
        Ok(counters) => {
            let counters = SHARED.get_or_init(|| counters);
            let all = std::mem::take(&mut *ALL.lock().unwrap_or_else(PoisonError::into_inner));
            all.iter().for_each(|metric| metric.move_to(counters));
            let mount = String::from_utf8_lossy(ruby::bytes(mount).unwrap_or_default());
            let server = counters.server();
            garbage::counts_for(&server.lives[server.row(&mount)]);
            ruby::nil()
        }
        Err(error) => ruby::raise_io(&error),
    }
}

/// `counter(name) -> [Oribi::Counter, line or nil]`; the line says why it counts nowhere.
unsafe extern "C" fn new_counter(_: VALUE, name: VALUE) -> VALUE {
    make::<Counter>(c"Counter", name, None)
}

/// `gauge(name) -> [Oribi::Gauge, line or nil]`.
unsafe extern "C" fn new_gauge(_: VALUE, name: VALUE) -> VALUE {
    make::<Gauge>(c"Gauge", name, None)
}

/// `histogram(name, bounds) -> [Oribi::Histogram, line or nil]`; the bounds as doubles in a String.
unsafe extern "C" fn new_histogram(_: VALUE, name: VALUE, bounds: VALUE) -> VALUE {
    make::<Histogram>(c"Histogram", name, Some(bounds))
}

/// What is owned on the way is gone before anything can raise.
fn make<T: Metric>(class: &CStr, name: VALUE, bounds: Option<VALUE>) -> VALUE {
    let found = {
        let name = ruby::text(name).and_then(ruby::bytes).unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        let bounds = bounds.and_then(ruby::bytes).unwrap_or_default().chunks_exact(8);
        let bounds = bounds.map(|one| f64::from_ne_bytes(one.try_into().expect("eight")));
        handle::<T>(name, bounds.collect())
    };
    let (handle, line) = match found {
        Ok((handle, line)) => (handle, line.map_or(ruby::nil(), ruby_line)),
        Err(line) => {
            let line = ruby_line(line);
            // SAFETY: a class of exceptions and a String; does not return.
            unsafe { rb_exc_raise(rb_exc_new_str(rb_eArgError, line)) }
        }
    };
    let data = std::ptr::from_ref(handle).cast_mut().cast::<c_void>();
    // SAFETY: the class was defined by `define`, the data lives as long as the process, and the
    // list is new.
    unsafe {
        let oribi = rb_const_get(rb_cObject, rb_intern(c"Oribi".as_ptr()));
        let class = rb_const_get(oribi, rb_intern(class.as_ptr()));
        let object = rb_data_typed_object_wrap(class, data, &raw const T::TYPE.0);
        let list = rb_ary_new();
        rb_ary_push(list, object);
        rb_ary_push(list, line);
        list
    }
}

fn ruby_line(line: String) -> VALUE {
    ruby::string(line.as_bytes())
}

/// A handle, and the line that says why it counts nowhere; or why there is none.
fn handle<T: Metric>(
    name: String,
    bounds: Vec<f64>,
) -> Result<(&'static Handle<T>, Option<String>), String> {
    let own = || OWN.get_or_init(|| Counters::create().ok()).as_ref();
    let shared = SHARED.get();
    let found = match shared.or_else(own) {
        Some(counters) => T::find(counters, &name, &bounds),
        None => Ok(T::default()),
    };
    let (metric, line) = match found {
        Ok(metric) => (metric, None),
        Err(Refused::Nowhere(line)) => (T::default(), line),
        Err(Refused::Wrong(line)) => return Err(line),
    };
    let there = OnceLock::new();
    if shared.is_some() {
        let _ = there.set(metric);
    }
    let handle: &Handle<T> =
        Box::leak(Box::new(Handle { name, bounds, own: metric, shared: there }));
    if shared.is_none() {
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
    }
    Ok((handle, line))
}

/// The metric behind a Ruby object; raises TypeError for anything else.
fn of<T: Metric>(object: VALUE) -> T {
    // SAFETY: Ruby checks the type, of which `make` alone makes objects, with such a handle.
    let handle = unsafe { &*rb_check_typeddata(object, &raw const T::TYPE.0).cast::<Handle<T>>() };
    handle.metric()
}

/// The one argument that there may be: how much.
fn by(count: c_int, arguments: *const VALUE) -> i64 {
    match count {
        0 => 1,
        // SAFETY: Ruby gives as many arguments as it says.
        1 => ruby::integer(unsafe { *arguments }),
        // SAFETY: raises, and does not return.
        _ => unsafe { rb_error_arity(count, 0, 1) },
    }
}

/// `increment(by = 1)`
unsafe extern "C" fn counter_increment(
    count: c_int,
    arguments: *const VALUE,
    this: VALUE,
) -> VALUE {
    let Ok(by) = u64::try_from(by(count, arguments)) else {
        // SAFETY: a static of Ruby's.
        ruby::raise(unsafe { rb_eArgError }, "a counter goes up only: use Oribi.gauge");
    };
    of::<Counter>(this).increment(by);
    ruby::nil()
}

/// `get -> Integer`
unsafe extern "C" fn counter_get(this: VALUE) -> VALUE {
    // SAFETY: makes an Integer.
    unsafe { rb_ull2inum(of::<Counter>(this).get()) }
}

/// `set(value)`
unsafe extern "C" fn gauge_set(this: VALUE, value: VALUE) -> VALUE {
    of::<Gauge>(this).set(ruby::integer(value));
    ruby::nil()
}

/// `increment(by = 1)`
unsafe extern "C" fn gauge_increment(count: c_int, arguments: *const VALUE, this: VALUE) -> VALUE {
    of::<Gauge>(this).add(by(count, arguments));
    ruby::nil()
}

/// `decrement(by = 1)`
unsafe extern "C" fn gauge_decrement(count: c_int, arguments: *const VALUE, this: VALUE) -> VALUE {
    of::<Gauge>(this).add(by(count, arguments).wrapping_neg());
    ruby::nil()
}

/// `get -> Integer`
unsafe extern "C" fn gauge_get(this: VALUE) -> VALUE {
    ruby::number(of::<Gauge>(this).get())
}

/// `observe(value)`
unsafe extern "C" fn histogram_observe(this: VALUE, value: VALUE) -> VALUE {
    of::<Histogram>(this).observe(ruby::real(value));
    ruby::nil()
}

/// `count -> Integer`: how often something was observed.
unsafe extern "C" fn histogram_count(this: VALUE) -> VALUE {
    // SAFETY: makes an Integer.
    unsafe { rb_ull2inum(of::<Histogram>(this).get().0) }
}

/// `sum -> Float` of all that was observed.
unsafe extern "C" fn histogram_sum(this: VALUE) -> VALUE {
    ruby::float(of::<Histogram>(this).get().1)
}
