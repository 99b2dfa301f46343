//! What web servers really send, and what an app is told of it.
//!
//! `tests/corpus` holds what nginx, lighttpd, Apache and fcgiwrap sent for the requests named there,
//! one file for each way to configure them. The first request of a file has all of its variables;
//! the others those that differ from it, `-NAME` for one that is missing. What was particular to a
//! run (ports, directories) is replaced. `= [SCRIPT_NAME][PATH_INFO]` is what comes of it, `= 404`
//! that the app does not lie there; `prefix` stands for the setting of that name.

use door::cgi::{Request, Variables};
use door::{Fault, fastcgi, scgi};
use std::collections::HashSet;

type Pair = (Vec<u8>, Vec<u8>);

/// A request of a file.
struct Sent {
    file: String,
    label: String,
    prefix: String,
    wanted: String,
    pairs: Vec<Pair>,
}

/// Text in which `\xHH` stands for a byte.
fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    bytes
}

fn apply(lines: &[&str], first: &[Pair]) -> Vec<Pair> {
    let gone = |line: &&str| line.strip_prefix('-').map(bytes);
    let pair = |line: &&str| line.split_once('=').map(|(name, value)| (bytes(name), bytes(value)));
    let new: Vec<Pair> =
        lines.iter().filter(|line| gone(line).is_none()).filter_map(pair).collect();
    let said: HashSet<Vec<u8>> =
        new.iter().map(|(name, _)| name.clone()).chain(lines.iter().filter_map(gone)).collect();
    let kept = first.iter().filter(|(name, _)| !said.contains(name)).cloned();
    let mut pairs: Vec<Pair> = kept.chain(new).collect();
    // SCGI's has to come first, and did.
    pairs.sort_by_key(|(name, _)| name != b"CONTENT_LENGTH");
    pairs
}

fn read(file: String, text: &str) -> Vec<Sent> {
    let mut sent: Vec<Sent> = Vec::new();
    let mut blocks = text.trim_end().split("\n\n");
    let head = blocks.next().unwrap();
    let prefix = head.lines().find_map(|line| line.strip_prefix("prefix ")).unwrap_or_default();
    for block in blocks {
        let lines: Vec<&str> = block.lines().collect();
        let [label, wanted, ref lines @ ..] = lines[..] else { panic!("{file}: {block}") };
        let first = sent.first().map_or(&[][..], |first: &Sent| &first.pairs);
        let pairs = apply(lines, first);
        let label = label.strip_prefix("> ").expect("a label").to_owned();
        let wanted = wanted.strip_prefix("= ").expect("what is wanted").to_owned();
        sent.push(Sent { file: file.clone(), label, prefix: prefix.to_owned(), wanted, pairs });
    }
    sent
}

fn all() -> Vec<Sent> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        all.extend(read(name, &std::fs::read_to_string(entry.path()).unwrap()));
    }
    assert!(all.len() > 600, "{}", all.len());
    all
}

impl Sent {
    /// What is read by the door, with what the CGI shim adds: it always sends a PATH_INFO.
    fn variables<'a>(&'a self, space: &'a mut Vec<u8>) -> Variables<'a> {
        let is = |name: &str| self.pairs.iter().any(|pair| pair.0 == name.as_bytes());
        let shim = ["cgid", "-cgi.", "fcgiwrap"].iter().any(|kind| self.file.contains(kind));
        let more: &[(&[u8], &[u8])] =
            if shim && !is("PATH_INFO") { &[(b"PATH_INFO", b"")] } else { &[] };
        let pairs = self.pairs.iter().map(|(name, value)| (&name[..], &value[..]));
        let pairs = pairs.chain(more.iter().copied());
        if self.file.contains("-scgi-") {
            scgi::put_headers(space, pairs);
            let (block, end) = scgi::headers(space, 65536).unwrap().unwrap();
            assert_eq!(end, space.len());
            return Variables::read(block.map(Ok)).unwrap();
        }
        pairs.for_each(|(name, value)| fastcgi::put_pair(space, name, value));
        Variables::read(fastcgi::pairs(space)).unwrap()
    }

    fn is(&self, words: &str) -> bool {
        self.label.contains(words)
    }
}

fn show(split: Result<&Request, &Fault>) -> String {
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => text.to_owned(),
        _ => bytes
            .iter()
            .map(|c| if c.is_ascii() { (*c as char).into() } else { format!("\\x{c:02X}") })
            .collect(),
    };
    match split {
        Ok(request) => format!("[{}][{}]", text(&request.script_name), text(&request.path_info)),
        Err(fault) => fault.status().to_string(),
    }
}

#[test]
fn every_server_says_where_the_request_goes() {
    let mut wrong = Vec::new();
    for sent in all() {
        let mut space = Vec::new();
        let judged = sent.variables(&mut space).judge(&sent.prefix);
        let found = show(judged.as_ref());
        if found != sent.wanted {
            wrong.push(format!("{}: {}: {found}, not {}", sent.file, sent.label, sent.wanted));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_server_says_the_rest_alike() {
    for sent in all().iter().filter(|sent| sent.wanted != "404") {
        let mut space = Vec::new();
        let variables = sent.variables(&mut space);
        let request = variables.judge(&sent.prefix).unwrap();
        let where_ = format!("{}: {}", sent.file, sent.label);
        let words = sent.label.split(' ').collect::<Vec<_>>();
        let query = words[1].split_once('?').map_or("", |(_, query)| query);
        let query = if sent.is("/old") { "q=1" } else { query };
        assert_eq!(request.query, query.as_bytes(), "{where_}");
        assert_eq!(request.method, words[0], "{where_}");
        assert!(!request.https, "{where_}");
        let client = if sent.is("over IPv6") { "::1" } else { "127.0.0.1" };
        assert_eq!(request.remote_addr, client.parse().ok(), "{where_}");
        assert_eq!(request.remote_port, b"40000", "{where_}");
        let (length, old) = (sent.is("POST"), sent.is("HTTP/1.0"));
        assert_eq!(request.length.unwrap_or_default(), if length { 5 } else { 0 }, "{where_}");
        let protocol: &[u8] = if old { b"HTTP/1.0" } else { b"HTTP/1.1" };
        assert_eq!(request.protocol, protocol, "{where_}");
        assert!(matches!(request.server_port, b"8080" | b"80"), "{where_}");
        let host = if sent.is("http://") { "other.example" } else { "www.example.org" };
        let found = request.authority.map(|authority| authority.host);
        assert_eq!(found, (!old).then_some(host), "{where_}");
        if sent.is("twice") {
            headers(&variables, &sent.file);
        }
    }
}

fn headers(variables: &Variables, file: &str) {
    let find = |wanted: &str| {
        let mut found = variables.others().filter(|(name, _)| *name == wanted.as_bytes());
        let value = found.next().map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        assert_eq!(found.count(), 0, "{file}: {wanted}");
        value
    };
    let (both, cookies) = match file {
        // An environment has room for one of a name.
        _ if file.contains("fcgiwrap") => ("b", "b=2"),
        // Apache joins cookies as if they were any header, before we see them.
        _ if file.starts_with("apache") => ("a, b", "a=1, b=2"),
        _ => ("a, b", "a=1; b=2"),
    };
    assert_eq!(find("HTTP_X_TWO").as_deref(), Some(both), "{file}");
    assert_eq!(find("HTTP_COOKIE").as_deref(), Some(cookies), "{file}");
    for dropped in ["HTTP_PROXY", "HTTP_VERSION", "REQUEST_METHOD", "CONTENT_LENGTH"] {
        assert_eq!(find(dropped), None, "{file}: {dropped}");
    }
}
