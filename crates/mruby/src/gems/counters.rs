//! `Oribi.counter`, `gauge` and `histogram`, over the same memory as everybody else's.

use super::run_prelude;
use crate::{Call, Class, Exception, Gem, Interp, Value};
use std::sync::OnceLock;
use wire::counters::{self, Counter, Gauge, Histogram, Refused};

/// The module Oribi's counters.
pub struct Counters;

static SHARED: OnceLock<counters::Counters> = OnceLock::new();

/// The memory that this process counts in; once, before any gem is installed. Without it the
/// process counts for itself. False if there is one already.
pub fn use_memory(memory: counters::Counters) -> bool {
    SHARED.set(memory).is_ok()
}

/// The counter of this name, for a gem that counts by itself: the same number that
/// `Oribi.counter(name)` has in Ruby. An ArgumentError for a name that is none; where there is no
/// place for it, it counts nowhere.
pub fn shared_counter(name: &str) -> Result<Counter, Exception> {
    match shared()?.counter(name) {
        Err(Refused::Wrong(line)) => Err(Exception::new("ArgumentError", line)),
        found => Ok(found.unwrap_or_default()),
    }
}

fn shared() -> Result<&'static counters::Counters, Exception> {
    if let Some(memory) = SHARED.get() {
        return Ok(memory);
    }
    let made = counters::Counters::create()
        .map_err(|error| Exception::new("RuntimeError", format!("no counters: {error}")))?;
    Ok(SHARED.get_or_init(|| made))
}

impl Gem for Counters {
    const NAME: &'static str = "counters";

    fn install(interp: &Interp) -> Result<(), Exception> {
        interp.define_module("Oribi", |module| {
            module.singleton_method("__counter", 1..=1, |call| {
                find(call, "Oribi::Counter", |all, name| all.counter(name))
            })?;
            module.singleton_method("__gauge", 1..=1, |call| {
                find(call, "Oribi::Gauge", |all, name| all.gauge(name))
            })?;
            module.singleton_method("__histogram", 2..=2, |call| {
                let bounds: Result<Vec<f64>, _> =
                    call.arg(1).items().into_iter().map(Value::float).collect();
                let bounds = bounds?;
                find(call, "Oribi::Histogram", |all, name| all.histogram(name, &bounds))
            })
        })?;
        interp.define_class("Oribi::Counter", counter)?;
        interp.define_class("Oribi::Gauge", gauge)?;
        interp.define_class("Oribi::Histogram", histogram)?;
        run_prelude(interp, "counters.rb", include_str!("counters.rb"))
    }
}

/// A metric as an object of `class`. What cannot be counted is said once, and counts nowhere.
fn find<'a, T: Default + 'static>(
    call: &Call<'a>,
    class: &str,
    look: impl Fn(&counters::Counters, &str) -> Result<T, Refused>,
) -> Result<Value<'a>, Exception> {
    let metric = match look(shared()?, &call.arg(0).to_s()?) {
        Ok(metric) => metric,
        Err(Refused::Wrong(line)) => return Err(Exception::new("ArgumentError", line)),
        Err(Refused::Nowhere(line)) => {
            line.into_iter().for_each(|line| eprintln!("oribi: {line}"));
            T::default()
        }
    };
    call.interp().class(class)?.instance(metric)
}

fn by(call: &Call) -> Result<i64, Exception> {
    if call.args().is_empty() { Ok(1) } else { call.arg(0).int() }
}

fn counter(class: &Class) -> Result<(), Exception> {
    class.holds_data()?;
    class.method("increment", 0..=1, |call| {
        let by = u64::try_from(by(call)?).map_err(|_| {
            Exception::new("ArgumentError", "a counter goes up only: use Oribi.gauge")
        })?;
        call.this().must_have::<Counter>()?.increment(by);
        Ok(call.interp().nil())
    })?;
    class.method("get", 0..=0, |call| {
        let value = call.this().must_have::<Counter>()?.get();
        call.interp().int(i64::try_from(value).unwrap_or(i64::MAX))
    })
}

fn gauge(class: &Class) -> Result<(), Exception> {
    class.holds_data()?;
    class.method("set", 1..=1, |call| {
        call.this().must_have::<Gauge>()?.set(call.arg(0).int()?);
        Ok(call.interp().nil())
    })?;
    class.method("increment", 0..=1, |call| {
        call.this().must_have::<Gauge>()?.add(by(call)?);
        Ok(call.interp().nil())
    })?;
    class.method("decrement", 0..=1, |call| {
        call.this().must_have::<Gauge>()?.add(by(call)?.wrapping_neg());
        Ok(call.interp().nil())
    })?;
    class.method("get", 0..=0, |call| call.interp().int(call.this().must_have::<Gauge>()?.get()))
}

fn histogram(class: &Class) -> Result<(), Exception> {
    class.holds_data()?;
    class.method("observe", 1..=1, |call| {
        call.this().must_have::<Histogram>()?.observe(call.arg(0).float()?);
        Ok(call.interp().nil())
    })?;
    class.method("count", 0..=0, |call| {
        let (count, _) = call.this().must_have::<Histogram>()?.get();
        call.interp().int(i64::try_from(count).unwrap_or(i64::MAX))
    })?;
    class.method("sum", 0..=0, |call| {
        call.interp().float(call.this().must_have::<Histogram>()?.get().1)
    })
}
