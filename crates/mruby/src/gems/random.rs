//! SecureRandom: from the kernel with each call, so that interpreters with the same memory differ.

use crate::{Call, Class, Exception, Gem, Interp, Kind, Value};
use text::random;

/// The module SecureRandom.
pub struct SecureRandom;

impl Gem for SecureRandom {
    const NAME: &'static str = "securerandom";

    fn install(interp: &Interp) -> Result<(), Exception> {
        interp.define_module("SecureRandom", define)?;
        Ok(())
    }
}

fn define(module: &Class) -> Result<(), Exception> {
    module.singleton_method("random_bytes", 0..=1, |call| call.interp().str(bytes(call)?))?;
    module.singleton_method("bytes", 1..=1, |call| call.interp().str(bytes(call)?))?;
    module.singleton_method("hex", 0..=1, |call| call.interp().str(random::hex(&bytes(call)?)))?;
    module.singleton_method("base64", 0..=1, |call| {
        call.interp().str(random::base64(&bytes(call)?))
    })?;
    module.singleton_method("urlsafe_base64", 0..=2, |call| {
        call.interp().str(random::urlsafe_base64(&bytes(call)?, call.arg(1).truthy()))
    })?;
    module.singleton_method("uuid", 0..=0, |call| {
        call.interp().str(random::uuid().map_err(failed)?)
    })?;
    module.singleton_method("alphanumeric", 0..=1, |call| {
        let count = super::size(call.arg(0), 16)?;
        call.interp().str(random::alphanumeric(count).map_err(failed)?)
    })?;
    module.singleton_method("random_number", 0..=1, number)?;
    module.singleton_method("rand", 0..=1, number)
}

fn failed(error: impl std::fmt::Display) -> Exception {
    Exception::new("RuntimeError", format!("the kernel gives no random bytes: {error}"))
}

fn bytes(call: &Call) -> Result<Vec<u8>, Exception> {
    random::bytes(super::size(call.arg(0), 16)?).map_err(failed)
}

/// Below an Integer or a Float, in a Range, else below 1.0.
fn number<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let (interp, limit) = (call.interp(), call.arg(0));
    let fraction = || random::fraction().map_err(failed);
    match limit.kind() {
        Kind::Int if limit.int()? > 0 => {
            let below = random::below(limit.int()?.unsigned_abs()).map_err(failed)?;
            interp.int(i64::try_from(below).unwrap_or(0))
        }
        Kind::Float if limit.float()? > 0.0 => interp.float(fraction()? * limit.float()?),
        Kind::Object if limit.class_name() == "Range" => in_range(limit),
        _ => interp.float(fraction()?),
    }
}

fn in_range(range: Value<'_>) -> Result<Value<'_>, Exception> {
    let interp = range.interp();
    let (from, to) = (range.call("begin", &[])?, range.call("end", &[])?);
    let (Some(from_int), Some(to_int)) = (from.as_int(), to.as_int()) else {
        let (from, to) = (from.float()?, to.float()?);
        return interp.float(from + random::fraction().map_err(failed)? * (to - from));
    };
    let open = range.call("exclude_end?", &[])?.truthy();
    let count = (i128::from(to_int) - i128::from(from_int)) + i128::from(!open);
    let count = u64::try_from(count).ok().filter(|count| *count > 0);
    let count =
        count.ok_or_else(|| Exception::new("ArgumentError", "invalid argument: empty range"))?;
    let offset = random::below(count).map_err(failed)?;
    interp.int(from_int.wrapping_add_unsigned(offset))
}
