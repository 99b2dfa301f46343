//! Times as text.

use super::run_prelude;
use crate::{Call, Exception, Gem, Interp, Value};
use text::clock::{self, Moment, Said};

/// What Time cannot do by itself.
pub struct Time;

impl Gem for Time {
    const NAME: &'static str = "time";

    fn install(interp: &Interp) -> Result<(), Exception> {
        interp.define_class("Time", |class| {
            class.singleton_method("__iso8601", 1..=1, |call| said(call, clock::parse_iso8601))?;
            class
                .singleton_method("__httpdate", 1..=1, |call| said(call, clock::parse_httpdate))?;
            class.method("strftime", 1..=1, |call| {
                call.interp().str(moment(call)?.strftime(&call.arg(0).text()?))
            })?;
            for name in ["iso8601", "xmlschema"] {
                class.method(name, 0..=1, |call| {
                    let digits = super::size(call.arg(0), 0)?.min(100);
                    call.interp().str(moment(call)?.iso8601(digits))
                })?;
            }
            class.method("httpdate", 0..=0, |call| call.interp().str(moment(call)?.httpdate()))?;
            class.method("zone", 0..=0, |call| call.interp().str(moment(call)?.zone()))?;
            class.method("utc_offset", 0..=0, |call| {
                call.interp().int(moment(call)?.offset().into())
            })
        })?;
        run_prelude(interp, "time.rb", include_str!("time.rb"))
    }
}

fn moment(call: &Call) -> Result<Moment, Exception> {
    let ask = |name| call.this().call(name, &[]);
    let utc = ask("utc?")?.truthy();
    let nanoseconds = i32::try_from(ask("nsec")?.int()?).unwrap_or(0);
    Moment::new(ask("to_i")?.int()?, nanoseconds, utc)
        .ok_or_else(|| Exception::new("RangeError", "a time beyond the year 9999"))
}

/// Seconds, nanoseconds, and whether it is UTC; nil for what is no such text.
fn said<'a>(call: &Call<'a>, parse: fn(&str) -> Option<Said>) -> Result<Value<'a>, Exception> {
    let interp = call.interp();
    let Some((seconds, nanoseconds, utc)) = parse(&call.arg(0).text()?) else {
        return Ok(interp.nil());
    };
    let numbers = [interp.int(seconds)?, interp.int(nanoseconds.into())?, interp.bool(utc)];
    interp.array(&numbers)
}
