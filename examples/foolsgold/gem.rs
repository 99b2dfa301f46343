//! `require "foolsgold"` for mruby, in Rust: the same names as lib/foolsgold.rb has for CRuby, and
//! the same counter in shared memory.

use oribi::mruby::{Call, Counter, Exception, Gem, Interp, Value, shared_counter};
use rustix::rand::{GetRandomFlags, getrandom};

/// Where a request's context is in its env.
const CONTEXT: &str = "FOOLSGOLD_REQUEST_CONTEXT";

pub struct FoolsGold;

/// What a request brings along.
struct Context {
    trace_id: String,
}

impl Gem for FoolsGold {
    const NAME: &'static str = "foolsgold";

    fn install(interp: &Interp) -> Result<(), Exception> {
        let module = interp.define_module("FoolsGold", |_| Ok(()))?;
        module.constant("VERSION", interp.str("0.0.1")?)?;
        module.constant("CONTEXT", interp.str(CONTEXT)?)?;
        interp.define_class("FoolsGold::Counter", |class| {
            class.holds_data()?;
            class.method("get", 0..=0, get)?;
            class.method("inc", 0..=1, inc)
        })?;
        interp.define_class("FoolsGold::Metrics", |class| {
            class.method("total_requests", 0..=0, total_requests)
        })?;
        interp.define_class("FoolsGold::RequestContext", |class| {
            class.holds_data()?;
            class.method("trace_id", 0..=0, trace_id)?;
            class.method("metrics", 0..=0, metrics)
        })?;
        interp.define_module("FoolsGold::Middleware", |_| Ok(()))?;
        interp.define_class("FoolsGold::Middleware::Request", |class| {
            class.method("initialize", 1..=1, initialize)?;
            class.method("call", 1..=1, call_app)
        })?;
        Ok(())
    }
}

fn get<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    call.interp().int(call.this().must_have::<Counter>()?.get() as i64)
}

fn inc<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let by = if call.args().is_empty() { 1 } else { call.arg(0).int()? };
    let by = u64::try_from(by).map_err(|_| Exception::new("ArgumentError", "it only goes up"))?;
    call.this().must_have::<Counter>()?.increment(by);
    Ok(call.interp().nil())
}

fn total_requests<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let counter = shared_counter("foolsgold_total_requests")?;
    call.interp().class("FoolsGold::Counter")?.instance(counter)
}

fn trace_id<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    call.interp().str(&call.this().must_have::<Context>()?.trace_id)
}

fn metrics<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    call.interp().class("FoolsGold::Metrics")?.value().call("new", &[])
}

fn initialize<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    call.this().set_ivar("@app", call.arg(0))?;
    Ok(call.this())
}

/// Gives the request its context.
fn call_app<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let interp = call.interp();
    let context = Context { trace_id: uuid()? };
    let context = interp.class("FoolsGold::RequestContext")?.instance(context)?;
    call.arg(0).set(interp.str(CONTEXT)?, context)?;
    call.this().ivar("@app")?.call("call", &[call.arg(0)])
}

/// A random UUID (RFC 9562, section 5.4).
fn uuid() -> Result<String, Exception> {
    let mut bytes = [0; 16];
    getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|error| Exception::new("IOError", format!("no random bytes: {error}")))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}
