//! What the rules cost a plain request: `cargo test --release -p door --test cost -- --ignored
//! --nocapture`.

use door::scan::Scan;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use std::hint::black_box;
use std::time::Instant;

const REQUEST: &[u8] = b"GET /articles/17?page=2 HTTP/1.1\r\nHost: example.org\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: text/html,*/*;q=0.8\r\n\
    Accept-Encoding: gzip, deflate\r\nCookie: session=0123456789abcdef\r\n\r\n";

/// Nanoseconds each, the best of many short rounds: short enough to be left alone.
fn measure(mut run: impl FnMut()) -> f64 {
    const RUNS: u32 = 1000;
    let mut round = || {
        let begun = Instant::now();
        (0..RUNS).for_each(|_| run());
        begun.elapsed().as_nanos() as f64 / f64::from(RUNS)
    };
    (0..1000).map(|_| round()).fold(f64::MAX, f64::min)
}

#[test]
#[ignore = "a measurement"]
fn a_plain_get() {
    let mut lines = [httparse::EMPTY_HEADER; 8];
    let mut request = httparse::Request::new(&mut lines);
    request.parse(REQUEST).unwrap();
    let mut headers = HeaderMap::new();
    for line in request.headers.iter() {
        let name: HeaderName = line.name.parse().unwrap();
        headers.append(name, HeaderValue::from_bytes(line.value).unwrap());
    }
    let uri: Uri = request.path.unwrap().parse().unwrap();
    let mut scan = Scan::default();
    let scanned = measure(|| assert!(scan.feed(black_box(REQUEST)).is_none()));
    let judged = measure(|| {
        let head = (&Method::GET, &uri, Version::HTTP_11, &headers);
        let (method, uri, version, headers) = black_box(head);
        assert!(door::http::judge(method, uri, version, headers).is_ok());
    });
    println!("a GET of {} bytes: scan {scanned:.0} ns, judge {judged:.0} ns", REQUEST.len());
}
