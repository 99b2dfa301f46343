//! The admin listener: how things are, for monitoring. A small service beside the doors: what comes
//! here is no request of any mount, waits in no queue, and counts nowhere.

mod ask;
mod metrics;
mod text;

use crate::accept::Door;
use crate::drain::Drain;
use crate::refuse::log;
use crate::{Listener, io::Socket};
use ask::{Unknown, ask};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::Semaphore;
use wire::counters::Counters;

/// Clients at once; more wait to be accepted.
const CLIENTS: usize = 16;
/// How long one may take for its request and its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause after an accept that failed.
const PAUSE: Duration = Duration::from_millis(100);
/// What Prometheus calls its text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Where to answer, and what is known.
pub struct Admin {
    doors: Vec<Door>,
    counters: Counters,
    /// Front threads.
    threads: usize,
}

/// What every answer is made from.
struct Desk {
    counters: Counters,
    threads: usize,
    control: Arc<AsyncFd<OwnedFd>>,
    drain: Arc<Drain>,
}

impl Admin {
    /// Registers the listeners with the thread's runtime; None where there are none.
    pub fn open(
        listeners: Vec<Listener>,
        counters: Counters,
        threads: usize,
    ) -> io::Result<Option<Admin>> {
        if listeners.is_empty() {
            return Ok(None);
        }
        let doors = listeners.into_iter().map(Door::open).collect::<io::Result<_>>()?;
        Ok(Some(Admin { doors, counters, threads }))
    }

    /// Answers for as long as the process lives. `control` leads to the supervisor.
    pub async fn run(self, control: Arc<AsyncFd<OwnedFd>>, drain: Arc<Drain>) {
        let Admin { doors, counters, threads } = self;
        let desk = Arc::new(Desk { counters, threads, control, drain });
        let room = Arc::new(Semaphore::new(CLIENTS));
        for door in doors {
            tokio::spawn(welcome(door, desk.clone(), room.clone()));
        }
    }
}

async fn welcome(door: Door, desk: Arc<Desk>, room: Arc<Semaphore>) {
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        match door.accept().await {
            Ok((socket, _)) => {
                let desk = desk.clone();
                tokio::spawn(async move {
                    let _place = place;
                    let _ = tokio::time::timeout(PATIENCE, serve(socket, desk)).await;
                });
            }
            Err(error) => {
                log(&format!("admin: {error}"));
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn serve(socket: Socket, desk: Arc<Desk>) {
    let service = service_fn(move |request| {
        let desk = desk.clone();
        async move { Ok::<_, Infallible>(desk.answer(&request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false);
    let served = match socket {
        Socket::Tcp(stream) => builder.serve_connection(TokioIo::new(stream), service).await,
        Socket::Unix(stream) => builder.serve_connection(TokioIo::new(stream), service).await,
    };
    // Whoever left early knows.
    drop(served);
}

type Answer = Response<Full<Bytes>>;

fn answer(status: StatusCode, kind: &'static str, body: String) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn word(status: StatusCode, word: &str) -> Answer {
    answer(status, PLAIN, format!("{word}\n"))
}

impl Desk {
    async fn answer(&self, request: &Request<Incoming>) -> Answer {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refusal = word(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        let respond = match request.uri().path() {
            "/metrics" => Desk::metrics,
            "/healthz" => Desk::health,
            "/readyz" => Desk::readiness,
            "/status" => Desk::status,
            _ => return word(StatusCode::NOT_FOUND, "/metrics, /healthz, /readyz, /status"),
        };
        // A supervisor that hangs makes nobody wait for long.
        match ask(&self.control).await {
            Ok(status) => respond(self, &status),
            Err(unknown) => self.unknown(request.uri().path(), unknown),
        }
    }

    /// What the front itself has counted is there even then.
    fn unknown(&self, path: &str, unknown: Unknown) -> Answer {
        if path == "/metrics" {
            return self.metrics(&Value::Null);
        }
        word(unknown.status(), unknown.text())
    }

    fn metrics(&self, status: &Value) -> Answer {
        let text = metrics::text(&self.counters, self.threads, self.drain.connections(), status);
        answer(StatusCode::OK, METRICS, text)
    }

    /// The front lives, and so does the supervisor.
    fn health(&self, _: &Value) -> Answer {
        word(StatusCode::OK, "ok")
    }

    /// Every mount has workers that take, and there will be.
    fn readiness(&self, status: &Value) -> Answer {
        if self.drain.is_draining() || status["state"] == "stopping" {
            return word(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
        }
        let lacking: Vec<String> = metrics::mounts(status)
            .filter(|mount| !metrics::takes(mount))
            .map(|mount| format!("mount {} has no worker that takes", metrics::name(mount)))
            .collect();
        match lacking.is_empty() {
            true => word(StatusCode::OK, "ready"),
            false => word(StatusCode::SERVICE_UNAVAILABLE, &lacking.join("\n")),
        }
    }

    fn status(&self, status: &Value) -> Answer {
        let text = serde_json::to_string_pretty(status).unwrap_or_default();
        answer(StatusCode::OK, "application/json", text + "\n")
    }
}
