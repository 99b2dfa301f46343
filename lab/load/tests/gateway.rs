//! FastCGI and SCGI: what a server sees of us, and what we make of what it says.

mod synthetic;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{JoinHandle, spawn};

use oribi_load::outcome::Failures;
use oribi_load::plan::Shape;
use synthetic::{closed, open, plan, run, unix_path};

/// What a web server passed on.
struct Passed {
    variables: BTreeMap<String, String>,
    body: u64,
    keep: bool,
}

/// A server that answers as `answer` says, which gets the number of the request, too: the bytes,
/// and whether the connection ends behind them.
struct Gateway {
    to: String,
    stop: Box<dyn Fn()>,
    accepts: Option<JoinHandle<()>>,
    connections: Arc<AtomicU64>,
}

type Answer = dyn Fn(&Passed, u64) -> (Vec<u8>, bool) + Send + Sync;
type Reader = fn(&mut dyn Read) -> Option<Passed>;

impl Gateway {
    fn tcp(
        door: &str,
        read: Reader,
        answer: impl Fn(&Passed, u64) -> (Vec<u8>, bool) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = move || drop(std::net::TcpStream::connect(address));
        let accept = move || listener.accept().map(|(stream, _)| stream);
        Self::new(format!("{door}://{address}"), Box::new(stop), accept, read, Arc::new(answer))
    }

    fn unix(
        door: &str,
        read: Reader,
        answer: impl Fn(&Passed, u64) -> (Vec<u8>, bool) + Send + Sync + 'static,
    ) -> Self {
        let path = unix_path();
        let listener = UnixListener::bind(&path).unwrap();
        let to = format!("{door}+unix://{}", path.display());
        let stop = move || {
            drop(std::os::unix::net::UnixStream::connect(&path));
            let _ = std::fs::remove_file(&path);
        };
        let accept = move || listener.accept().map(|(stream, _)| stream);
        Self::new(to, Box::new(stop), accept, read, Arc::new(answer))
    }

    /// Connections one after the other; the last one is opened by `stop`, and says nothing.
    fn new<S: Read + Write + Send + 'static>(
        to: String,
        stop: Box<dyn Fn()>,
        accept: impl Fn() -> std::io::Result<S> + Send + 'static,
        read: Reader,
        answer: Arc<Answer>,
    ) -> Self {
        let connections = Arc::new(AtomicU64::new(0));
        let (count, requests) = (Arc::clone(&connections), AtomicU64::new(0));
        let accepts = spawn(move || {
            while let Ok(mut stream) = accept() {
                let mut served = 0;
                while let Some(passed) = read(&mut stream) {
                    count.fetch_add(u64::from(served == 0), Ordering::SeqCst);
                    served += 1;
                    let (bytes, last) = answer(&passed, requests.fetch_add(1, Ordering::SeqCst));
                    if stream.write_all(&bytes).is_err() || last {
                        break;
                    }
                }
                if served == 0 {
                    return;
                }
            }
        });
        Self { to, stop, accepts: Some(accepts), connections }
    }

    fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        (self.stop)();
        if let Some(accepts) = self.accepts.take() {
            accepts.join().unwrap();
        }
    }
}

fn scgi(stream: &mut dyn Read) -> Option<Passed> {
    let (mut length, mut byte) = (0, [0]);
    loop {
        stream.read_exact(&mut byte).ok()?;
        if byte[0] == b':' {
            break;
        }
        length = length * 10 + usize::from(byte[0] - b'0');
    }
    let mut block = vec![0; length + 1];
    stream.read_exact(&mut block).ok()?;
    assert_eq!(block.pop(), Some(b','));
    let text = String::from_utf8(block).unwrap();
    let parts: Vec<&str> = text.strip_suffix('\0').unwrap().split('\0').collect();
    assert_eq!((parts[0], parts.len() % 2), ("CONTENT_LENGTH", 0));
    let variables: BTreeMap<String, String> =
        parts.chunks(2).map(|pair| (pair[0].into(), pair[1].into())).collect();
    assert_eq!(variables["SCGI"], "1");
    let length = variables["CONTENT_LENGTH"].parse().unwrap();
    let body = std::io::copy(&mut stream.take(length), &mut std::io::sink()).unwrap();
    Some(Passed { variables, body, keep: false })
}

fn fastcgi(stream: &mut dyn Read) -> Option<Passed> {
    let mut passed = Passed { variables: BTreeMap::new(), body: 0, keep: false };
    let mut params = Vec::new();
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header).ok()?;
        assert_eq!((header[0], header[2..4].to_vec()), (1, vec![0, 1]));
        let mut content = vec![0; usize::from(u16::from_be_bytes([header[4], header[5]]))];
        stream.read_exact(&mut content).ok()?;
        match header[1] {
            1 => passed.keep = content[2] == 1,
            4 if content.is_empty() => passed.variables = pairs(&params),
            4 => params.extend(content),
            5 if content.is_empty() => return Some(passed),
            5 => passed.body += content.len() as u64,
            kind => panic!("a record of kind {kind}"),
        }
    }
}

fn pairs(mut bytes: &[u8]) -> BTreeMap<String, String> {
    let length = |bytes: &mut &[u8]| {
        let size = if bytes[0] < 128 { 1 } else { 4 };
        let (head, rest) = bytes.split_at(size);
        *bytes = rest;
        head.iter().fold(0, |all, byte| all << 8 | usize::from(*byte)) & 0x7fff_ffff
    };
    let mut all = BTreeMap::new();
    while !bytes.is_empty() {
        let lengths = [length(&mut bytes), length(&mut bytes)];
        let mut text = lengths.map(|length| {
            let (text, rest) = bytes.split_at(length);
            bytes = rest;
            String::from_utf8(text.to_vec()).unwrap()
        });
        all.insert(std::mem::take(&mut text[0]), std::mem::take(&mut text[1]));
    }
    all
}

const HELLO: &[u8] = b"Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";

/// STDOUT, its end, END_REQUEST.
fn records(bytes: &[u8]) -> Vec<u8> {
    let header = [1, 6, 0, 1, 0, bytes.len() as u8, 0, 0];
    let end = b"\x01\x06\0\x01\0\0\0\0\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0";
    [&header[..], bytes, end].concat()
}

#[test]
fn fastcgi_on_kept_connections() {
    let server = Gateway::unix("fastcgi", fastcgi, |passed, _| {
        assert!(passed.keep);
        assert_eq!(passed.variables["PATH_INFO"], "/a b");
        assert_eq!(passed.variables["HTTP_HOST"], "localhost");
        (records(HELLO), false)
    });
    let mut kept = plan(&server.to, closed(1, 0.2));
    kept.requests[0].path = "/a%20b".into();
    let outcome = run(&kept);
    let class = &outcome.classes[0];
    assert!(class.ok > 100 && class.failures.total() == 0, "{class:?}");
    assert_eq!((class.bytes, outcome.connects), (5 * class.ok, 1));
}

#[test]
fn a_connection_for_each_request() {
    for reset in [false, true] {
        let read: [(&str, Reader); 2] = [("fastcgi", fastcgi), ("scgi", scgi)];
        for (door, read) in read {
            let server = Gateway::tcp(door, read, move |passed, _| {
                assert!(!passed.keep);
                (if door == "scgi" { HELLO.to_vec() } else { records(HELLO) }, true)
            });
            let shape = Shape::Closed { connections: 1, keep_alive: false, reset, seconds: 0.2 };
            let outcome = run(&plan(&server.to, shape));
            let class = &outcome.classes[0];
            assert!(class.ok > 20 && class.failures.total() == 0, "{class:?}");
            assert_eq!((outcome.connects, server.connections()), (class.ok, class.ok));
        }
    }
}

#[test]
fn scgi_without_a_length_ends_with_its_connection() {
    let server = Gateway::unix("scgi", scgi, |_, _| (b"Status: 201 Made\n\nabc".to_vec(), true));
    let outcome = run(&plan(&server.to, open(100.0, 0.2, 1)));
    assert_eq!((outcome.classes[0].ok, outcome.classes[0].bytes), (20, 60));
}

#[test]
fn an_upload_arrives_whole() {
    let read: [(&str, Reader); 2] = [("fastcgi", fastcgi), ("scgi", scgi)];
    for (door, read) in read {
        let server = Gateway::unix(door, read, move |passed, _| {
            let whole = passed.variables["CONTENT_LENGTH"] == passed.body.to_string();
            let head = if whole { HELLO } else { b"Status: 500\r\n\r\n" };
            (if door == "scgi" { head.to_vec() } else { records(head) }, true)
        });
        for body_bytes in [1, 32_768, 100_000, 8 << 20] {
            let mut upload = plan(
                &server.to,
                Shape::Burst { at_once: 1, times: 2, pause_ms: 0, keep_alive: false },
            );
            upload.requests[0].method = "POST".into();
            upload.requests[0].body_bytes = body_bytes;
            let class = &run(&upload).classes[0];
            assert_eq!(class.ok, 2, "{door}, {body_bytes}: {class:?}");
        }
    }
}

#[test]
fn what_is_no_good_answer() {
    let overloaded = b"\x01\x03\0\x01\0\x08\0\0\0\0\0\0\x02\0\0\0";
    let server = Gateway::unix("fastcgi", fastcgi, |_, nr| match nr % 6 {
        0 => (records(b"Status: 404 Not Found\r\n\r\n"), false),
        1 => (overloaded.to_vec(), false),
        2 => (records(HELLO)[..40].to_vec(), true),
        3 => (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec(), true),
        4 => (records(&HELLO[..HELLO.len() - 1]), false),
        _ => (records(HELLO), false),
    });
    let outcome = run(&plan(&server.to, open(100.0, 0.6, 1)));
    let class = &outcome.classes[0];
    let status = [(404, 10), (503, 10)].into();
    let failures = Failures { status, reset: 10, garbage: 20, ..Failures::default() };
    assert_eq!((class.ok, &class.failures), (10, &failures));
    assert_eq!(outcome.connects, 31, "whatever broke is not used again");

    let server = Gateway::unix("scgi", scgi, |_, nr| match nr % 3 {
        0 => (b"Content-Length: 9\r\n\r\nhalf".to_vec(), true),
        1 => (records(HELLO), true),
        _ => (Vec::new(), true),
    });
    let outcome = run(&plan(&server.to, open(100.0, 0.3, 1)));
    let failures = Failures { reset: 20, garbage: 10, ..Failures::default() };
    assert_eq!(outcome.classes[0].failures, failures);
}
