//! One worker thread: takes requests, calls the app, replies.
//!
//! There is no lock that threads of one process share: each has an interpreter and a seat of its own.
//! So each is a crew of its own, too: it announces itself when it lies down and is woken for one
//! request, as if it were a process. The limit of requests is the interpreter's, not the process's:
//! after so many it is brought back to what it was when the app had been loaded, which takes less
//! time than a request, so nobody is asked to replace the process.

use crate::app::{App, Plan};
use crate::exception::Exception;
use crate::interp::Limits;
use crate::process::Fence;
use crate::serving::{self, Serving};
use crate::value::Value;
use crate::{env, log, reply};
use serde_json::json;
use std::sync::Arc;
use wire::request::{KEYS, Key, Pairs, key};
use wire::slot::door;
use worker::{Next, Seat};

/// When an interpreter is brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// After so many requests; 0: never.
    Prefork(u64),
    /// After each.
    Fresh,
}

/// A worker thread with what it serves.
pub struct Worker {
    app: App,
    level: Level,
    served: u64,
    fence: Option<Fence>,
}

/// The request, for the log.
struct Named {
    method: String,
    path: String,
    id: Option<String>,
}

impl Worker {
    /// Makes an app ready for this level.
    pub fn prepare(plan: &Arc<Plan>, level: Level) -> Result<App, Exception> {
        let mut app = App::boot(plan)?;
        app.freeze(level != Level::Fresh)?;
        Ok(app)
    }

    /// For an app that is ready.
    pub fn new(mut app: App, level: Level) -> Result<Worker, Exception> {
        // What is opened for the first reset is open before the first request.
        app.renew()?;
        let fence = (level == Level::Fresh).then(Fence::raise).transpose();
        let fence = fence.map_err(|error| Exception::new("IOError", error.to_string()))?;
        Ok(Worker { app, level, served: 0, fence })
    }

    /// Whether its interpreter is kept, not opened anew.
    pub fn has_frozen(&self) -> bool {
        self.app.interp().is_frozen()
    }

    /// Serves until the seat is to be given up. Err: the worker cannot go on.
    pub fn run(&mut self, seat: Seat, nr: u16) -> Result<(), Exception> {
        serving::set(Serving::new(seat));
        loop {
            match serving::with(|serving| serving.seat.turn()).unwrap_or(Next::Leave) {
                Next::Leave => return Ok(()),
                Next::Sleep => {
                    serving::with(|serving| serving.seat.sleep());
                }
                Next::Request => {
                    if begin() {
                        self.serve(nr);
                        self.finish()?;
                    }
                }
            }
        }
    }

    fn serve(&self, nr: u16) {
        let interp = self.app.interp();
        let arena = interp.arena();
        let mut env = interp.nil();
        let done = self.call(&mut env);
        if let Err(error) = &done {
            let named = serving::with(|serving| {
                let named = name(&serving.seat);
                let line = format!("oribi: {} {}: {error}\n", named.method, named.path);
                serving.errors(line.replace('\n', " ").trim_end().as_bytes());
                reply::send_failure(serving);
                named
            });
            if let Some(named) = named {
                report(nr, &named, error);
            }
        }
        self.finished(env);
        interp.restore_arena(arena);
    }

    /// Builds the env, calls the app, replies.
    fn call<'a>(&'a self, place: &mut Value<'a>) -> Result<(), Exception> {
        let built = serving::with(|serving| {
            let env = env::build(&self.app, serving)?;
            Ok((env, is_head(&serving.seat)))
        });
        let (env, is_head) =
            built.unwrap_or_else(|| Err(Exception::new("IOError", "no request")))?;
        *place = env;
        let returned = self.app.app()?.call("call", &[env])?;
        reply::send(self.app.interp(), returned, is_head)
    }

    /// What the app wants to be called once the reply is out.
    fn finished(&self, env: Value) {
        if env.is_nil() {
            return;
        }
        let list = self.app.keys().and_then(|keys| env.get(keys.entry(KEYS.len() + 1)));
        if let Ok(list) = list
            && !list.is_empty()
        {
            let nil = self.app.interp().nil();
            let oribi = self.app.interp().class("Oribi");
            let called =
                oribi.and_then(|oribi| oribi.value().call("finished", &[list, env, nil, nil, nil]));
            if let Err(error) = called {
                log::raw(&format!("oribi: rack.response_finished: {}\n", error.full()));
            }
        }
    }

    /// After a request: an interpreter that is worn is brought back.
    fn finish(&mut self) -> Result<(), Exception> {
        self.served += 1;
        let worn = match self.level {
            Level::Fresh => true,
            Level::Prefork(limit) => limit > 0 && self.served >= limit,
        };
        if worn || self.app.is_exhausted() {
            self.served = 0;
            self.app.renew()?;
        }
        if self.fence.as_ref().is_some_and(|fence| !fence.clear()) {
            return Err(Exception::new(
                "IOError",
                "a request has closed descriptors of the server's",
            ));
        }
        Ok(())
    }
}

/// Takes the body and begins. False: the app must not be called.
fn begin() -> bool {
    let begun = serving::with(|serving| {
        let Some(body) = env::body(&serving.seat) else {
            serving.seat.decline();
            return false;
        };
        let has_errors = serving.seat.door() == door::GATEWAY_WITH_ERRORS;
        serving.begin(body, has_errors);
        serving.seat.begin()
    });
    begun == Some(true)
}

fn is_head(seat: &Seat) -> bool {
    let mut pairs = Pairs(seat.record());
    pairs.any(|pair| pair == (Key::Known(key::REQUEST_METHOD), b"HEAD"))
}

fn name(seat: &Seat) -> Named {
    let find = |number: u8| {
        let mut pairs = Pairs(seat.record());
        let found = pairs.find(|(key, _)| *key == Key::Known(number));
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    };
    let path = |number| find(number).unwrap_or_default();
    let id = KEYS.iter().position(|key| *key == "HTTP_X_REQUEST_ID").and_then(|at| find(at as u8));
    let method = find(key::REQUEST_METHOD).unwrap_or_else(|| "GET".into());
    Named { method, path: path(key::SCRIPT_NAME) + &path(key::PATH_INFO), id }
}

fn report(nr: u16, named: &Named, error: &Exception) {
    let Named { method, path, id } = named;
    let mut fields = json!({ "method": method, "path": path });
    if let Some(id) = id {
        fields["request_id"] = json!(id);
    }
    log::exception(&format!("worker {nr}: {method} {path}: "), fields, error);
}

/// What an interpreter may use, of the bytes that the setting says; 0: it says nothing.
pub fn limits(bytes: u64) -> Limits {
    match usize::try_from(bytes) {
        Ok(0) | Err(_) => Limits::default(),
        Ok(memory) => Limits { memory },
    }
}
