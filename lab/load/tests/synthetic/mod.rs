//! Servers that answer as a test wants it: one thread for each connection, real sockets.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use oribi_load::outcome::Outcome;
use oribi_load::plan::{Plan, Request, Shape, Step};
use rustix::net::{Shutdown, shutdown, sockopt};

/// What a client asked.
pub struct Asked {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    /// Bytes of the body.
    pub body: u64,
    /// Since the first request of all.
    pub since: Duration,
    /// How many came before it.
    pub nr: u64,
}

/// What it gets.
pub enum Answer {
    /// Status and body, with a Content-Length.
    Plain(u16, Vec<u8>),
    /// These bytes.
    Raw(Vec<u8>),
    /// These bytes, then the end of the connection.
    Last(Vec<u8>),
    /// A reset.
    Reset,
    /// Nothing, ever.
    Silence,
}

/// The usual answer.
pub fn hello() -> Answer {
    Answer::Plain(200, b"hello".to_vec())
}

/// These bytes.
pub fn raw(text: &str) -> Answer {
    Answer::Raw(text.as_bytes().to_vec())
}

type Handler = dyn Fn(&Asked) -> Answer + Send + Sync;

#[derive(Default)]
struct Shared {
    first: OnceLock<Instant>,
    requests: AtomicU64,
    now: AtomicU64,
    most: AtomicU64,
    paths: Mutex<BTreeMap<String, u64>>,
    stopped: AtomicBool,
    open: Mutex<Vec<OwnedFd>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A running server; it ends when it is dropped.
pub struct Server {
    /// For the plan.
    pub to: String,
    address: Address,
    shared: Arc<Shared>,
    accepts: Option<JoinHandle<()>>,
}

impl Server {
    /// On a free port.
    pub fn tcp(handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accept = move || listener.accept().map(|(stream, _)| OwnedFd::from(stream));
        Self::new(format!("tcp://{address}"), Address::Tcp(address), accept, handler)
    }

    /// On a path of its own.
    pub fn unix(handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let path = unix_path();
        let listener = UnixListener::bind(&path).unwrap();
        let accept = move || listener.accept().map(|(stream, _)| OwnedFd::from(stream));
        let to = format!("unix://{}", path.display());
        Self::new(to, Address::Unix(path), accept, handler)
    }

    fn new(
        to: String,
        address: Address,
        accept: impl Fn() -> std::io::Result<OwnedFd> + Send + 'static,
        handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let (all, handler): (_, Arc<Handler>) = (Arc::clone(&shared), Arc::new(handler));
        let accepts = std::thread::spawn(move || {
            loop {
                let fd = accept().unwrap();
                if all.stopped.load(Ordering::SeqCst) {
                    return;
                }
                all.open.lock().unwrap().push(fd.try_clone().unwrap());
                let (shared, handler) = (Arc::clone(&all), Arc::clone(&handler));
                let thread = std::thread::spawn(move || serve(fd.into(), &shared, &*handler));
                all.threads.lock().unwrap().push(thread);
            }
        });
        Self { to, address, shared, accepts: Some(accepts) }
    }

    /// Requests that have come.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// The most that were being handled at once.
    pub fn most(&self) -> u64 {
        self.shared.most.load(Ordering::SeqCst)
    }

    /// Requests by path.
    pub fn paths(&self) -> BTreeMap<String, u64> {
        self.shared.paths.lock().unwrap().clone()
    }

    /// Ends listening and every connection.
    pub fn die(&mut self) {
        let Some(accepts) = self.accepts.take() else { return };
        self.shared.stopped.store(true, Ordering::SeqCst);
        match &self.address {
            Address::Tcp(address) => drop(TcpStream::connect(address)),
            Address::Unix(path) => {
                drop(UnixStream::connect(path));
                let _ = std::fs::remove_file(path);
            }
        }
        accepts.join().unwrap();
        for fd in std::mem::take(&mut *self.shared.open.lock().unwrap()) {
            let _ = shutdown(&fd, Shutdown::Both);
        }
        for thread in std::mem::take(&mut *self.shared.threads.lock().unwrap()) {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.die();
    }
}

/// A path for a socket that nobody else uses.
pub fn unix_path() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let nr = NEXT.fetch_add(1, Ordering::SeqCst);
    std::env::temp_dir().join(format!("oribi-load-{}-{nr}.sock", std::process::id()))
}

fn serve(mut stream: File, shared: &Shared, handler: &Handler) {
    let mut buffer = Vec::new();
    while let Some(asked) = read_request(&mut stream, &mut buffer, shared) {
        *shared.paths.lock().unwrap().entry(asked.path.clone()).or_default() += 1;
        let now = shared.now.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most.fetch_max(now, Ordering::SeqCst);
        let answer = handler(&asked);
        shared.now.fetch_sub(1, Ordering::SeqCst);
        let (bytes, last) = match answer {
            Answer::Plain(status, body) => {
                let head =
                    format!("HTTP/1.1 {status} So\r\nContent-Length: {}\r\n\r\n", body.len());
                ([head.into_bytes(), body].concat(), false)
            }
            Answer::Raw(bytes) => (bytes, false),
            Answer::Last(bytes) => (bytes, true),
            Answer::Reset => {
                let fd = OwnedFd::from(stream);
                let _ = sockopt::set_socket_linger(&fd, Some(Duration::ZERO));
                forget(shared, &fd);
                return;
            }
            Answer::Silence => {
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
                return;
            }
        };
        if stream.write_all(&bytes).is_err() || last || asked.headers.contains_key("connection") {
            let _ = shutdown(&stream, Shutdown::Both);
            return;
        }
    }
}

/// Closes the copies of a socket, or it would not be reset.
fn forget(shared: &Shared, fd: &OwnedFd) {
    let inode = |fd: &OwnedFd| rustix::fs::fstat(fd).unwrap().st_ino;
    let ours = inode(fd);
    shared.open.lock().unwrap().retain(|other| inode(other) != ours);
}

fn read_request(stream: &mut File, buffer: &mut Vec<u8>, shared: &Shared) -> Option<Asked> {
    let mut part = vec![0; 64 * 1024];
    let (end, mut asked) = loop {
        if let Some(found) = parse(buffer) {
            break found;
        }
        let read = stream.read(&mut part).ok().filter(|&read| read > 0)?;
        buffer.extend_from_slice(&part[..read]);
    };
    buffer.drain(..end);
    let length = asked.headers.get("content-length").map_or(0, |text| text.parse().unwrap());
    while asked.body < length {
        if buffer.is_empty() {
            let read = stream.read(&mut part).ok().filter(|&read| read > 0)?;
            buffer.extend_from_slice(&part[..read]);
        }
        let taken = (buffer.len() as u64).min(length - asked.body);
        asked.body += taken;
        buffer.drain(..taken as usize);
    }
    asked.since = shared.first.get_or_init(Instant::now).elapsed();
    asked.nr = shared.requests.fetch_add(1, Ordering::SeqCst);
    Some(asked)
}

fn parse(bytes: &[u8]) -> Option<(usize, Asked)> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(end) = head.parse(bytes).unwrap() else { return None };
    let field = |header: &httparse::Header| {
        let value = String::from_utf8(header.value.to_vec()).unwrap();
        (header.name.to_lowercase(), value)
    };
    let asked = Asked {
        method: head.method.unwrap().into(),
        path: head.path.unwrap().into(),
        headers: head.headers.iter().map(field).collect(),
        body: 0,
        since: Duration::ZERO,
        nr: 0,
    };
    Some((end, asked))
}

/// A plan with one plain request.
pub fn plan(to: &str, shape: Shape) -> Plan {
    Plan {
        to: to.into(),
        requests: vec![Request::default()],
        shape,
        beside: Vec::new(),
        timeout_ms: 5_000,
        seed: 1,
        slice_ms: 500,
    }
}

/// Kept connections.
pub fn closed(connections: usize, seconds: f64) -> Shape {
    Shape::Closed { connections, keep_alive: true, reset: false, seconds }
}

/// One step of equal intervals.
pub fn open(rate: f64, seconds: f64, max_connections: usize) -> Shape {
    let steps = vec![Step { rate, seconds }];
    Shape::Open { steps, max_connections, keep_alive: true, poisson: false }
}

/// Runs it, and checks what holds for every outcome.
pub fn run(plan: &Plan) -> Outcome {
    let outcome = oribi_load::run(plan).unwrap();
    for class in &outcome.classes {
        assert_eq!(class.sent, class.ok + class.failures.total(), "{class:?}");
        assert_eq!(class.latency.len(), class.ok);
        assert_eq!(class.uncorrected.len(), class.ok);
        assert_eq!(class.slices.iter().map(|slice| slice.len()).sum::<u64>(), class.ok);
        assert_eq!(class.ok_in_time + class.late.len(), class.ok);
        let latest = class.late.max_ms().unwrap_or(0.0);
        // The histogram keeps three digits.
        assert!(latest <= (outcome.drained - outcome.seconds) * 1_001.0 + 0.002, "{latest}");
    }
    let counted = |beside: bool| outcome.classes.iter().filter(move |c| c.beside == beside);
    let ok: u64 = outcome.ticks.iter().map(|tick| u64::from(tick.ok)).sum();
    assert_eq!(ok, counted(false).map(|class| class.ok).sum::<u64>());
    outcome
}

/// Asserts that `value` lies within, and says what it was.
#[track_caller]
pub fn within(value: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&value), "{value} is not within {low} and {high}");
}
