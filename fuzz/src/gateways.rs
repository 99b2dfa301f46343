//! Checks of `door`: what web servers send. `crates/door/tests/corpus.rs` replays their seeds.

use door::cgi::Variables;
use door::fastcgi::{self, Begin, End};
use door::{Fault, path, scgi};

/// Takes any bytes.
pub type Check = fn(&[u8]);

/// Every check by the name of its target and of its directory in the corpus.
pub const ALL: [(&str, Check); 3] = [("fastcgi", fastcgi), ("scgi", scgi), ("cgi", cgi)];

/// Kinds, ids and contents of the records at the beginning, and how that ends: with so many bytes
/// left, or a fault.
fn records(bytes: &[u8]) -> (Vec<fastcgi::Record<'_>>, Result<usize, Fault>) {
    let (mut found, mut rest) = (Vec::new(), bytes);
    loop {
        match fastcgi::record(rest) {
            Ok(Some((record, length))) => {
                found.push(record);
                rest = &rest[length..];
            }
            Ok(None) => return (found, Ok(rest.len())),
            Err(fault) => return (found, Err(fault)),
        }
    }
}

/// Records are the same wherever the stream is cut; what is read of them is what is written.
pub fn fastcgi(data: &[u8]) {
    let (whole, _) = records(data);
    for cut in (0..data.len()).take(100) {
        let (early, _) = records(&data[..cut]);
        assert_eq!(early, whole[..early.len()]);
    }
    for record in &whole {
        let mut again = Vec::new();
        fastcgi::put_stream(&mut again, record.kind, record.id, record.content);
        let (parts, end) = records(&again);
        assert_eq!(end, Ok(0));
        let content: Vec<u8> = parts.iter().flat_map(|part| part.content).copied().collect();
        assert_eq!(content, record.content);
        pairs(record.content);
        if let Ok(begin) = Begin::parse(record.content) {
            again.clear();
            fastcgi::put_begin(&mut again, record.id, begin.role, begin.keep);
            assert_eq!(Begin::parse(records(&again).0[0].content), Ok(begin));
        }
        if let Ok(End { app_status, protocol_status }) = End::parse(record.content) {
            again.clear();
            fastcgi::put_end(&mut again, record.id, app_status, protocol_status);
            let end = End { app_status, protocol_status };
            assert_eq!(End::parse(records(&again).0[0].content), Ok(end));
        }
    }
    pairs(data);
}

fn pairs(content: &[u8]) {
    let mut again = Vec::new();
    for (name, value) in fastcgi::pairs(content).flatten() {
        fastcgi::put_pair(&mut again, name, value);
    }
    // Lengths may have been longer than they need be.
    assert!(again.len() <= content.len());
    assert!(fastcgi::pairs(&again).eq(fastcgi::pairs(content).filter(Result::is_ok)));
    again.clear();
    fastcgi::put_values(&mut again, content, &[("FCGI_MPXS_CONNS", "1")]);
    assert!(again.len() <= 32);
    judge(Variables::read(fastcgi::pairs(content)), "");
}

/// A block of variables says the same however much of the request has come.
pub fn scgi(data: &[u8]) {
    const LIMIT: usize = 4096;
    let whole = scgi::headers(data, LIMIT).map(|found| found.map(|(_, end)| end));
    for cut in (0..data.len()).take(300) {
        let early = scgi::headers(&data[..cut], LIMIT).map(|found| found.map(|(_, end)| end));
        assert!(early == Ok(None) || early == whole);
    }
    if data.len() > LIMIT + 6 {
        assert_ne!(whole, Ok(None));
    }
    let Ok(Some((block, end))) = scgi::headers(data, LIMIT) else { return };
    let mut again = Vec::new();
    scgi::put_headers(&mut again, block.clone());
    assert_eq!(again, data[..end]);
    judge(Variables::read(block.map(Ok)), "");
}

/// Lines of `NAME=VALUE`, the first of which is a prefix: whatever they say, a request has the form
/// that Rack wants.
pub fn cgi(data: &[u8]) {
    let mut lines = data.split(|c| *c == b'\n');
    let prefix = lines.next().and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
    let prefix = if prefix.starts_with('/') && !prefix.contains('%') { prefix } else { "" };
    let pair = |line: &[u8]| {
        let end = line.iter().position(|c| *c == b'=')?;
        // So that names and values can have any byte.
        Some((unescaped(&line[..end]), unescaped(&line[end + 1..])))
    };
    let pairs: Vec<_> = lines.filter_map(pair).collect();
    judge(Variables::read(pairs.iter().map(|(name, value)| Ok((&name[..], &value[..])))), prefix);
}

/// `\` and a byte stand for that byte less 64.
fn unescaped(line: &[u8]) -> Vec<u8> {
    let mut bytes = line.iter();
    let mut unescaped = Vec::new();
    while let Some(byte) = bytes.next() {
        unescaped.push(match byte {
            b'\\' => bytes.next().map_or(0, |byte| byte.wrapping_sub(64)),
            byte => *byte,
        });
    }
    unescaped
}

fn judge(variables: Result<Variables<'_>, Fault>, prefix: &str) {
    let Ok(variables) = variables else { return };
    for (name, value) in variables.others() {
        assert!(!name.is_empty() && !name.contains(&b'.') && name != b"HTTP_PROXY");
        let header = name.starts_with(b"HTTP_");
        assert!(!header || !value.iter().any(|c| matches!(c, 0 | b'\r' | b'\n')));
        assert_eq!(variables.others().filter(|other| other.0 == name).count(), 1);
    }
    let Ok(request) = variables.judge(prefix) else { return };
    let (script, info) = (&request.script_name[..], &request.path_info[..]);
    assert!(!request.method.is_empty() && !request.uri.is_empty());
    assert!(
        request.authority.is_none_or(|host| door::host::read(host.text.as_bytes()) == Some(host))
    );
    if info == b"*" {
        return assert_eq!(request.method, "OPTIONS");
    }
    assert!(!script.is_empty() || !info.is_empty());
    assert!(
        matches!(script.first(), None | Some(b'/')) && matches!(info.first(), None | Some(b'/'))
    );
    assert!(![script, info].concat().iter().any(|c| matches!(c, 0 | b'?' | b'#' | b'\r' | b'\n')));
    let prefix = prefix.trim_end_matches('/');
    if !prefix.is_empty() {
        let whole = [script, info].concat();
        assert_eq!(path::boundary(&whole, prefix.as_bytes()), Some(script.len()));
    }
}
