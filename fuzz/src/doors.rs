//! Checks of `door`: what clients and proxies send. `crates/door/tests/corpus.rs` replays their
//! seeds and judges the requests of `test/corpus` by `verdict`.

use door::forwarded::{self, Field, Trust};
use door::mounts::Mounts;
use door::scan::Scan;
use door::{Fault, path, proxy};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};

/// Takes any bytes.
pub type Check = fn(&[u8]);

/// Every check by the name of its target and of its directory in the corpus.
pub const ALL: [(&str, Check); 5] = [
    ("http", http),
    ("proxy", proxy),
    ("forwarded", forwarded),
    ("path", path),
    ("mounts", mounts),
];

/// A request head as the HTTP library would read it, but with every line there was.
struct Head {
    method: Method,
    uri: Uri,
    version: Version,
    headers: HeaderMap,
    /// Its length in bytes.
    length: usize,
}

fn parse(bytes: &[u8]) -> Option<Head> {
    let mut lines = [httparse::EMPTY_HEADER; 128];
    let mut request = httparse::Request::new(&mut lines);
    let httparse::Status::Complete(length) = request.parse(bytes).ok()? else { return None };
    let mut headers = HeaderMap::new();
    for line in request.headers.iter() {
        let name: HeaderName = line.name.parse().ok()?;
        headers.append(name, HeaderValue::from_bytes(line.value).ok()?);
    }
    let method = request.method?.parse().ok()?;
    let uri = request.path?.parse().ok()?;
    let version = if request.version? == 1 { Version::HTTP_11 } else { Version::HTTP_10 };
    Some(Head { method, uri, version, headers, length })
}

fn judge(head: &Head) -> Result<(), Fault> {
    let Head { method, uri, version, headers, .. } = head;
    let asked = door::http::judge(method, uri, *version, headers)?;
    if let Some(asked) = asked {
        assert_eq!(door::host::read(asked.text.as_bytes()), Some(asked));
    }
    assert!(!uri.path().contains("%00"));
    Ok(())
}

/// Requests that have begun and the fault of the last, fed in pieces of `size`.
fn scan(bytes: &[u8], size: usize) -> (u64, Option<Fault>) {
    let mut scan = Scan::default();
    let fault = bytes.chunks(size).find_map(|piece| scan.feed(piece));
    (scan.heads(), fault)
}

/// Whether a request with all of its body would pass; no fault for one that is no HTTP at all.
#[allow(dead_code, reason = "for the tests of door")]
pub fn verdict(bytes: &[u8]) -> Result<(), Option<Fault>> {
    let head = parse(bytes).ok_or(None)?;
    judge(&head)?;
    match scan(bytes, bytes.len()).1 {
        Some(fault) => Err(Some(fault)),
        None => Ok(()),
    }
}

/// The scan says the same however its bytes are cut, and agrees with the parser on where a request
/// ends; what the parser finds wrong with the framing, the scan finds too.
pub fn http(data: &[u8]) {
    let whole = scan(data, data.len().max(1));
    for size in [1, 2, 7] {
        assert_eq!(scan(data, size), whole);
    }
    let Some(head) = parse(data) else { return };
    let bytes = &data[..head.length];
    let (heads, fault) = scan(bytes, bytes.len());
    assert_eq!(heads, 1);
    let Err(found) = judge(&head) else { return agree(&head, bytes, fault) };
    let framing = [Fault::Lengths, Fault::BadLength, Fault::LengthAndCoding, Fault::BadCoding]
        .contains(&found);
    assert!(!framing || fault.is_some(), "{found:?}");
}

fn agree(head: &Head, bytes: &[u8], fault: Option<Fault>) {
    let chunked = head.headers.contains_key("transfer-encoding");
    let length = head.headers.get("content-length").map_or("0", |v| v.to_str().unwrap_or("0"));
    let Ok(length @ 0..=4096) = length.parse::<usize>() else { return };
    if fault.is_some() {
        return;
    }
    let body = if chunked { b"1\r\na\r\n0\r\n\r\n".to_vec() } else { vec![b'a'; length] };
    let behind = [bytes, &body, b"G"].concat();
    assert_eq!(scan(&behind, behind.len()), (2, None));
    let end = behind.len() - 2;
    assert_eq!(scan(&behind[..=end], behind.len()), (1, None));
}

/// A PROXY header says the same however much of it is there, or that more is needed.
pub fn proxy(data: &[u8]) {
    let data = &data[..data.len().min(proxy::V2_MAX + 64)];
    let whole = proxy::read(data);
    for cut in (0..data.len().min(300)).chain(data.len().saturating_sub(8)..data.len()) {
        let early = proxy::read(&data[..cut]);
        assert!(early == Ok(None) || early == whole);
    }
    if let Ok(Some((_, taken))) = whole {
        assert!(taken <= data.len() && taken <= proxy::V2_MAX);
    }
    assert!(whole != Ok(None) || data.len() < proxy::V2_MAX);
}

/// Whatever a client's headers say, what a proxy has appended to them counts.
pub fn forwarded(data: &[u8]) {
    let trust = Trust { networks: vec![([10, 0, 0, 0].into(), 8)], unix: false };
    let mut headers = HeaderMap::new();
    for line in data.split(|c| *c == b'\n').take(32) {
        let mut parts = line.splitn(2, |c| *c == b':');
        let name = parts.next().and_then(|name| HeaderName::from_bytes(name).ok());
        let value = parts.next().and_then(|value| HeaderValue::from_bytes(value).ok());
        if let (Some(name), Some(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    let honest = [192, 0, 2, 1].into();
    for (field, name, said) in [
        (Field::XForwarded, "x-forwarded-for", "192.0.2.1"),
        (Field::Forwarded, "forwarded", "for=192.0.2.1;proto=https"),
    ] {
        let claims = forwarded::read(&headers, field, &trust);
        if let Some(host) = claims.host {
            assert_eq!(door::host::read(host.text.as_bytes()), Some(host));
        }
        let mut appended = headers.clone();
        // To the last line, or as a line of its own.
        let line = match headers.get_all(name).iter().next_back() {
            Some(last) => [last.as_bytes(), b", ", said.as_bytes()].concat(),
            None => said.into(),
        };
        let plain = line.iter().all(|c| matches!(c, b' '..=b'~' | b'\t'));
        let line = if plain { line } else { said.into() };
        appended.append(name, HeaderValue::from_bytes(&line).expect("bytes of values"));
        let claims = forwarded::read(&appended, field, &trust);
        assert_eq!(claims.client, Some(honest));
    }
}

/// Nothing that names another place is left in a path that is clean.
pub fn path(data: &[u8]) {
    if let Ok(whole) = std::str::from_utf8(data) {
        for prefix in ["", "/", "/a", "/a/b"] {
            if let Some((script, info)) = path::split(whole, prefix) {
                assert_eq!([script, info].concat(), whole);
                assert!(matches!(info.bytes().next(), None | Some(b'/')));
            }
        }
    }
    let Some(path) = path::clean(data) else { return };
    assert!(path.starts_with(b"/") && !path.contains(&0) && path.len() <= data.len().max(1));
    let segments: Vec<&[u8]> = path[1..].split(|c| *c == b'/').collect();
    for (index, segment) in segments.iter().enumerate() {
        assert!(!matches!(*segment, b"." | b".."));
        assert!(!segment.is_empty() || index + 1 == segments.len());
    }
    if !path.contains(&b'%') {
        assert_eq!(path::clean(&path).as_deref(), Some(&path[..]));
    }
}

/// A host and a path, in two lines, find a mount that nobody could take for another: resolved, the
/// path lies there too, and the host is one of its own.
pub fn mounts(data: &[u8]) {
    const PLACES: [(&str, &str); 7] = [
        ("", ""),
        ("", "/a"),
        ("", "/a/b"),
        ("", "/b"),
        ("a.example", "/a"),
        ("*.example", ""),
        ("*.b.example", "/b"),
    ];
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some((said, sent)) = text.split_once('\n') else { return };
    let hosts =
        PLACES.map(|(host, _)| Vec::from_iter((!host.is_empty()).then(|| host.to_string())));
    let all = (0..).zip(&hosts).map(|(i, hosts)| (i, &hosts[..], PLACES[i].1));
    let mounts = Mounts::new(all);
    let Some((found, end)) = mounts.find(Some(said), sent.as_bytes()) else { return };
    let (host_of, place) = PLACES[found];
    let host = said.strip_suffix('.').unwrap_or(said).to_ascii_lowercase();
    match host_of.strip_prefix('*') {
        Some(suffix) => assert!(host.len() > suffix.len() && host.ends_with(suffix)),
        None => assert!(host_of.is_empty() || host == host_of),
    }
    assert_eq!(path::split(sent, place).map(|(script, _)| script.len()), Some(end));
    if let Some(clean) = path::clean(sent.as_bytes()) {
        // What is clean is decoded; sent so, it would have to be encoded again.
        let again = mounts.find(Some(said), &path::encode(&clean));
        assert_eq!(again.map(|(mount, _)| mount), Some(found));
    }
}
