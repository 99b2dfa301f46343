//! What the rules cost a plain request: `cargo run --release -p door --example cost`.

use door::cgi::Variables;
use door::scan::Scan;
use door::{fastcgi, scgi};
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

fn main() {
    a_plain_get();
    a_plain_get_of_a_gateway();
}

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

/// What nginx sends for the same request, with its stock parameters.
const VARIABLES: [(&str, &str); 25] = [
    ("CONTENT_LENGTH", ""),
    ("QUERY_STRING", "page=2"),
    ("REQUEST_METHOD", "GET"),
    ("CONTENT_TYPE", ""),
    ("SCRIPT_NAME", "/articles/17"),
    ("REQUEST_URI", "/articles/17?page=2"),
    ("DOCUMENT_URI", "/articles/17"),
    ("DOCUMENT_ROOT", "/var/www/html"),
    ("SERVER_PROTOCOL", "HTTP/1.1"),
    ("REQUEST_SCHEME", "http"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("SERVER_SOFTWARE", "nginx/1.22.1"),
    ("REMOTE_ADDR", "192.0.2.17"),
    ("REMOTE_PORT", "40000"),
    ("REMOTE_USER", ""),
    ("SERVER_ADDR", "192.0.2.1"),
    ("SERVER_PORT", "80"),
    ("SERVER_NAME", "_"),
    ("REDIRECT_STATUS", "200"),
    ("SCGI", "1"),
    ("HTTP_HOST", "example.org"),
    ("HTTP_USER_AGENT", "Mozilla/5.0 (X11; Linux x86_64)"),
    ("HTTP_ACCEPT", "text/html,*/*;q=0.8"),
    ("HTTP_ACCEPT_ENCODING", "gzip, deflate"),
    ("HTTP_COOKIE", "session=0123456789abcdef"),
];

fn a_plain_get_of_a_gateway() {
    let pairs = VARIABLES.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let (mut params, mut block) = (Vec::new(), Vec::new());
    pairs.clone().for_each(|(name, value)| fastcgi::put_pair(&mut params, name, value));
    scgi::put_headers(&mut block, pairs);
    let read = measure(|| {
        drop(black_box(Variables::read(fastcgi::pairs(black_box(&params)))));
    });
    let variables = Variables::read(fastcgi::pairs(&params)).unwrap();
    let judged = measure(|| drop(black_box(black_box(&variables).judge(""))));
    let split = measure(|| assert!(scgi::headers(black_box(&block), 65536).is_ok()));
    println!(
        "25 variables, {} bytes: read {read:.0} ns, judge {judged:.0} ns; SCGI's block {split:.0} ns",
        params.len()
    );
}
