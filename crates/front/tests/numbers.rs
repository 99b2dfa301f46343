//! The scan of `door` and the HTTP library read the same bytes side by side: the number under which
//! the scan files a fault must be the library's number of that request.

use door::scan::Scan;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use std::convert::Infallible;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Method and target of the requests that hyper finds.
async fn found_by_hyper(bytes: &[u8]) -> Vec<String> {
    let targets = Mutex::new(Vec::new());
    let service = service_fn(|request: Request<Incoming>| {
        let line = format!("{} {}", request.method(), request.uri());
        targets.lock().expect("one thread").push(line);
        async move {
            let _ = request.into_body().collect().await;
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let (mut client, server) = tokio::io::duplex(64 * 1024);
    let connection = http1::Builder::new().serve_connection(TokioIo::new(server), service);
    let talk = async {
        // A server that has heard enough leaves early.
        let _ = client.write_all(bytes).await;
        let _ = client.shutdown().await;
        let _ = client.read_to_end(&mut Vec::new()).await;
    };
    let _ = tokio::join!(connection, talk);
    targets.into_inner().expect("one thread")
}

/// Method and target of the requests that the scan finds, and whether the last has a fault.
fn found_by_scan(bytes: &[u8]) -> (Vec<String>, bool) {
    let (mut scan, mut targets) = (Scan::default(), Vec::new());
    for (at, byte) in bytes.iter().enumerate() {
        let before = scan.heads();
        let fault = scan.feed(&[*byte]);
        if scan.heads() > before {
            let line = String::from_utf8_lossy(&bytes[at..]);
            let words: Vec<&str> = line.split(' ').take(2).collect();
            // hyper leaves fragments out, which the scan finds fault with.
            targets.push(words.join(" ").split('#').next().unwrap_or_default().to_owned());
        }
        if fault.is_some() {
            return (targets, true);
        }
    }
    (targets, false)
}

/// A request whose framing is right, or nearly so; each `@` becomes a number of its own.
fn request() -> impl Strategy<Value = String> {
    let first = prop::sample::select(vec![
        "GET /@ HTTP/1.1\r\n",
        "POST /@ HTTP/1.1\r\n",
        "POST /@ HTTP/1.1\r\n",
        "POST /@#a HTTP/1.1\r\n",
        "\r\n\nPOST /@ HTTP/1.0\r\nConnection: keep-alive\r\n",
    ]);
    let lines = prop::sample::select(vec![
        "Content-Length: 0\r\n",
        "Content-Length: 3\r\n",
        "content-length:\t003 \r\n",
        "Content-Length: 21\r\n",
        "Content-Length: 3, 3\r\n",
        "Content-Length : 3\r\n",
        "Content-Length: 4\n",
        "Transfer-Encoding: chunked\r\n",
        "TRANSFER-ENCODING: Chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\n",
        "Cookie: a=b\r\n",
        "X: y\n",
        " folded\r\n",
    ]);
    let bodies = prop::sample::select(vec![
        "",
        "abc",
        "3\r\nabc\r\n0\r\n\r\n",
        "2;x\r\nab\r\n0\r\nA: b\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "0\r\nA: b\n\r\n",
        "3 \r\nabc\r\n00\r\n\r\n",
        "\r\n",
        "GET /@ HTTP/1.1\r\n\r\n",
        "15\r\nGET /@ HTTP/1.1\r\n\r\n\r\n0\r\n\r\n",
    ]);
    (first, prop::collection::vec(lines, 0..3), bodies)
        .prop_map(|(first, lines, body)| format!("{first}{}\r\n{body}", lines.concat()))
}

fn numbered(text: &str) -> String {
    let mut parts = text.split('@');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for (number, part) in (10..).zip(parts) {
        whole.push_str(&format!("{number}{part}"));
    }
    whole
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn both_count_the_same_requests(requests in prop::collection::vec(request(), 1..5)) {
        let bytes = numbered(&requests.concat()).into_bytes();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let theirs = runtime.block_on(found_by_hyper(&bytes));
        let (ours, faulty) = found_by_scan(&bytes);
        let both = theirs.len().min(ours.len());
        prop_assert_eq!(&theirs[..both], &ours[..both]);
        // What comes after a fault is not run.
        prop_assert!(faulty || theirs.len() <= ours.len(), "{:?} {:?}", theirs, ours);
    }
}
