//! ERB: templates that are compiled once.

use super::run_prelude;
use crate::{Call, Class, Exception, Gem, Interp, Value};
use text::template::{self, Trim};

/// The class ERB and ERB::Util.
pub struct Erb;

impl Gem for Erb {
    const NAME: &'static str = "erb";

    fn install(interp: &Interp) -> Result<(), Exception> {
        interp.define_class("ERB", |class| {
            class.singleton_method("__compile", 2..=2, compile)?;
            class.singleton_method("__procedure", 2..=2, procedure)
        })?;
        interp.define_module("ERB::Util", |module| {
            both(module, "html_escape", html_escape)?;
            both(module, "h", html_escape)?;
            both(module, "url_encode", url_encode)?;
            both(module, "u", url_encode)
        })?;
        run_prelude(interp, "erb.rb", include_str!("erb.rb"))
    }
}

fn both(module: &Class, name: &str, method: crate::Method) -> Result<(), Exception> {
    module.method(name, 1..=1, method)?;
    module.singleton_method(name, 1..=1, method)
}

/// The Ruby of a template and its trim mode.
fn compile<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let mode = if call.arg(1).is_nil() { String::new() } else { call.arg(1).to_s()? };
    let trim = Trim::from_mode(&mode).ok_or_else(|| {
        Exception::new("ArgumentError", format!("trim_mode {mode:?} is not known: -, > or <>"))
    })?;
    let code = template::compile(&call.arg(0).bytes()?, trim).map_err(|unclosed| {
        Exception::new("SyntaxError", format!("(erb):{}: <% without %>", unclosed.line))
    })?;
    call.interp().str(code)
}

/// Compiles code that is a Proc; where it stands is `file`.
fn procedure<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let program = call.interp().compile(&call.arg(0).bytes()?, &call.arg(1).text()?)?;
    call.interp().run(&program)
}

fn html_escape<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    call.interp().str(template::html_escape(&text(call)?))
}

fn url_encode<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    call.interp().str(template::url_encode(&text(call)?))
}

fn text(call: &Call) -> Result<Vec<u8>, Exception> {
    match call.arg(0).as_bytes() {
        Some(bytes) => Ok(bytes),
        None => Ok(call.arg(0).call("to_s", &[])?.bytes()?),
    }
}
