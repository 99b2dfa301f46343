//! `oribi: front`: from the setup in the environment to `front::run`.

use crate::inherit;
use crate::privileges::Identity;
use front::Assets;
use serde_json::Value;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

/// Plays the front's role with the JSON the supervisor wrote (`spawn::front`), and what an embedding
/// program serves out of its memory.
pub fn run(setup: &str, assets: Assets) -> ExitCode {
    let _ = rustix::thread::set_name(c"oribi-front");
    let ready = crate::signals::leave_to_supervisor().and_then(|()| read(setup, assets));
    match ready {
        Ok(setup) => front::run(setup),
        Err(error) => {
            crate::answer::say(&format!("front: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn read(setup: &str, assets: Assets) -> io::Result<front::Setup> {
    let setup: Value = serde_json::from_str(setup)?;
    if let Some(identity) = Identity::from_json(&setup["identity"]) {
        identity.assume()?;
    }
    let listeners = |name: &str| -> io::Result<Vec<front::Listener>> {
        let listener = |one: &Value| {
            let address = one["address"].as_str().unwrap_or_default().to_string();
            let shared = one["shared"].as_bool().unwrap_or(false);
            Ok(front::Listener { fd: fd(&one["fd"])?, address, shared })
        };
        list(&setup[name]).map(listener).collect()
    };
    Ok(front::Setup {
        supervisor: fd(&setup["supervisor"])?,
        counters: fd(&setup["counters"])?,
        control: fd(&setup["control"])?,
        bells: list(&setup["bells"]).map(fd).collect::<io::Result<_>>()?,
        listeners: listeners("listeners")?,
        admin: listeners("admin")?,
        assets,
        options: serde_json::from_value(setup["options"].clone())?,
    })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn fd(value: &Value) -> io::Result<OwnedFd> {
    let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
    inherit::take(number.ok_or_else(|| io::Error::other("setup names no fd"))?)
}
