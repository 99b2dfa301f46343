//! Checks of `text`: what apps in mruby may be given by their clients. `crates/text/tests/corpus.rs`
//! replays their seeds.

use text::regexp::{self, Options, Regexp};
use text::template::{self, Trim};
use text::{clock, json, replacement};

/// Takes any bytes.
pub type Check = fn(&[u8]);

/// Every check by the name of its target and of its directory in the corpus.
pub const ALL: [(&str, Check); 3] =
    [("pattern", pattern), ("replacement", replacement), ("template", template)];

/// The first line, which says the options, and the next one; the rest.
fn lines(data: &[u8]) -> (String, String, &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (options, first) = (text(), text());
    (options, first, parts.next().unwrap_or_default())
}

/// No pattern panics or runs away; a match and its groups lie in the text; what is escaped matches
/// itself.
pub fn pattern(data: &[u8]) {
    let (letters, source, subject) = lines(data);
    let options = Options::from_letters(&letters);
    let subject = &subject[..subject.len().min(1_000)];
    if let Ok(compiled) = Regexp::new(&source, options) {
        for from in [0, subject.len() / 2, subject.len(), subject.len() + 1] {
            let Ok(Some(spans)) = compiled.search(subject, from) else { continue };
            assert_eq!(spans.len(), compiled.groups() + 1);
            assert!(spans[0].is_some());
            for (begin, end) in spans.into_iter().flatten() {
                assert!(begin <= end && end <= subject.len());
            }
        }
        assert!(compiled.names().iter().all(|(_, group)| *group <= compiled.groups()));
    }
    let escaped = String::from_utf8(regexp::escape(source.as_bytes())).expect("it was text");
    if source.len() < 1_000 {
        let itself = Regexp::new(&escaped, Options::default()).expect("it is escaped");
        let found = itself.search(source.as_bytes(), 0).expect("it is plain").expect("it is there");
        assert_eq!(found[0], Some((0, source.len())));
    }
}

/// What is written is in the text or in the replacement, and a text without backslashes is itself.
pub fn replacement(data: &[u8]) {
    let (cut, replacement, text) = lines(data);
    let numbers: Vec<usize> = cut.split(' ').filter_map(|number| number.parse().ok()).collect();
    let spans: Vec<_> = numbers
        .chunks_exact(2)
        .map(|pair| (pair[0] <= pair[1] && pair[1] <= text.len()).then_some((pair[0], pair[1])))
        .collect();
    let parts = replacement::parse(replacement.as_bytes());
    let mut out = Vec::new();
    let names = [("name".to_owned(), 1), ("name".to_owned(), 2)];
    let whole = replacement::expand(&mut out, &parts, text, &spans, &names);
    if !replacement.contains('\\') {
        assert_eq!((whole, out.as_slice()), (Ok(()), replacement.as_bytes()));
    }
    assert!(out.len() <= replacement.len() * (text.len() + 1));
}

/// Lines of the code are those of the template; text without marks comes back as a Ruby literal.
/// What else reads clients' texts does not panic either.
pub fn template(data: &[u8]) {
    for mode in ["", "-", ">", "<>"] {
        let trim = Trim::from_mode(mode).expect("it is known");
        let Ok(code) = template::compile(data, trim) else { continue };
        let count = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
        // A comment in a tag adds one; nothing takes one away.
        assert!(count(&code) >= count(data), "{mode}");
        if !data.contains(&b'#') {
            assert_eq!(count(&code), count(data), "{mode}");
        }
    }
    let escaped = template::html_escape(data);
    assert!(!escaped.iter().any(|byte| b"<>\"'".contains(byte)));
    assert!(template::url_encode(data).is_ascii());
    let _ = json::parse(data, json::NESTING);
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = (clock::parse_iso8601(text), clock::parse_httpdate(text));
        if let Some(moment) = clock::Moment::new(data.len() as i64 * 86_400, 1, true) {
            let _ = moment.strftime(text);
        }
    }
}
