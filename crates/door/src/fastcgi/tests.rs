use super::*;
use proptest::prelude::*;

/// The records of a stream of bytes, and what is left.
fn records(mut bytes: &[u8]) -> (Vec<Record<'_>>, &[u8]) {
    let mut found = Vec::new();
    while let Some((next, length)) = record(bytes).unwrap() {
        found.push(next);
        bytes = &bytes[length..];
    }
    (found, bytes)
}

fn content(bytes: &[u8], kind: u8) -> Vec<u8> {
    let (all, rest) = records(bytes);
    assert!(rest.is_empty());
    assert!(all.iter().all(|record| record.kind == kind));
    all.iter().flat_map(|record| record.content).copied().collect()
}

#[test]
fn a_record_is_read_when_all_of_it_is_there() {
    let bytes = [1, kind::STDIN, 0x12, 0x34, 0, 3, 2, 0, b'a', b'b', b'c', 9, 9, b'x'];
    let wanted = Record { kind: kind::STDIN, id: 0x1234, content: b"abc" };
    for cut in 0..13 {
        assert_eq!(record(&bytes[..cut]), Ok(None), "{cut}");
    }
    assert_eq!(record(&bytes[..13]), Ok(Some((wanted, 13))));
    assert_eq!(record(&bytes), Ok(Some((wanted, 13))));
    let empty = [1, kind::STDIN, 0, 1, 0, 0, 0, 0];
    let wanted = Record { kind: kind::STDIN, id: 1, content: b"" };
    assert_eq!(record(&empty), Ok(Some((wanted, 8))));
}

#[test]
fn another_version_is_seen_in_its_first_byte() {
    for first in [0, 2, b'G', 255] {
        assert_eq!(record(&[first]), Err(Fault::BadVersion));
        assert_eq!(record(&[first, 1, 0, 1, 0, 0, 0, 0]), Err(Fault::BadVersion));
    }
}

#[test]
fn beginnings_and_ends() {
    let parse = |bytes: &[u8; 8]| Begin::parse(bytes);
    let begin = |role, keep| Ok(Begin { role, keep });
    assert_eq!(parse(&[0, 1, 1, 0, 0, 0, 0, 0]), begin(role::RESPONDER, true));
    assert_eq!(parse(&[0, 3, 0, 1, 2, 3, 4, 5]), begin(role::FILTER, false));
    // Only the lowest flag is defined (section 5.1).
    assert_eq!(parse(&[1, 2, 0xfe, 0, 0, 0, 0, 0]), begin(0x102, false));
    for length in [0, 7, 9] {
        assert_eq!(Begin::parse(&vec![0; length]), Err(Fault::BadRecord));
        assert_eq!(End::parse(&vec![0; length]), Err(Fault::BadRecord));
    }
    let mut out = Vec::new();
    put_begin(&mut out, 7, role::AUTHORIZER, true);
    put_end(&mut out, 7, 0xdead_beef, status::OVERLOADED);
    put_unknown_type(&mut out, 77);
    let (all, rest) = records(&out);
    assert!(rest.is_empty());
    let kinds = all.iter().map(|record| (record.kind, record.id)).collect::<Vec<_>>();
    assert_eq!(kinds, [(kind::BEGIN_REQUEST, 7), (kind::END_REQUEST, 7), (kind::UNKNOWN_TYPE, 0)]);
    assert_eq!(Begin::parse(all[0].content), begin(role::AUTHORIZER, true));
    let end = End { app_status: 0xdead_beef, protocol_status: status::OVERLOADED };
    assert_eq!(End::parse(all[1].content), Ok(end));
    assert_eq!(all[2].content, [77, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn lengths_are_of_one_byte_or_four() {
    for (length, bytes) in [(0, 1), (127, 1), (128, 4), (65536, 4)] {
        let (name, value) = (vec![b'N'; length], vec![b'v'; length]);
        let mut out = Vec::new();
        put_pair(&mut out, &name, &value);
        assert_eq!(out.len(), 2 * (bytes + length));
        assert_eq!(pairs(&out).collect::<Vec<_>>(), [Ok((&name[..], &value[..]))]);
    }
    // Four bytes for a length that one would hold are as good.
    let long = [0x80, 0, 0, 1, 0x80, 0, 0, 2, b'N', b'v', b'w'];
    assert_eq!(pairs(&long).collect::<Vec<_>>(), [Ok((&b"N"[..], &b"vw"[..]))]);
}

#[test]
fn cut_pairs_are_a_fault_and_the_end() {
    for cut in [
        &[1][..],
        &[1, 1, b'N'],
        &[0, 1],
        &[1, 0],
        &[0x80, 0, 0],
        &[1, 0x80, 0, 0],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, b'N'],
    ] {
        let bytes = [&[1, 1, b'A', b'b'], cut].concat();
        let wanted = [Ok((&b"A"[..], &b"b"[..])), Err(Fault::BadPairs)];
        assert_eq!(pairs(&bytes).collect::<Vec<_>>(), wanted, "{cut:?}");
    }
    assert_eq!(pairs(b"").count(), 0);
}

#[test]
fn values_that_are_known_are_told_once() {
    let known = [("FCGI_MAX_CONNS", "100"), ("FCGI_MPXS_CONNS", "1")];
    let told = |asked: &[&str]| {
        let mut content_of_asked = Vec::new();
        asked.iter().for_each(|name| put_pair(&mut content_of_asked, name.as_bytes(), b""));
        let mut out = Vec::new();
        put_values(&mut out, &content_of_asked, &known);
        let told = content(&out, kind::GET_VALUES_RESULT);
        let text = |part: &[u8]| String::from_utf8(part.to_vec()).unwrap();
        pairs(&told).flatten().map(|(name, value)| text(name) + "=" + &text(value)).collect()
    };
    let none: Vec<String> = told(&["FCGI_MAX_REQS", "", "fcgi_max_conns"]);
    assert!(none.is_empty());
    assert_eq!(told(&["FCGI_MPXS_CONNS", "X", "FCGI_MPXS_CONNS"]), ["FCGI_MPXS_CONNS=1"]);
    assert_eq!(told(&["FCGI_MPXS_CONNS", "FCGI_MAX_CONNS"]).len(), 2);
    // What is cut is answered as far as it goes.
    let mut out = Vec::new();
    put_values(&mut out, b"\x0f\0FCGI_MPXS_CONNS\x0f\0FCGI", &known);
    assert_eq!(content(&out, kind::GET_VALUES_RESULT), b"\x0f\x01FCGI_MPXS_CONNS1");
}

#[test]
fn long_streams_take_several_records() {
    let data: Vec<u8> = (0..200_001u32).map(|n| n as u8).collect();
    let mut out = Vec::new();
    put_stream(&mut out, kind::STDOUT, 1, &data);
    assert_eq!(content(&out, kind::STDOUT), data);
    assert_eq!(records(&out).0.len(), 4);
    assert_eq!(out.len() % 8, 0);
    put_stream(&mut out, kind::STDOUT, 1, b"");
    put_stream_end(&mut out, kind::STDOUT, 1);
    assert_eq!(records(&out).0.len(), 5);
    assert_eq!(records(&out).0[4].content, b"");
}

/// Names and values of lengths around where the encoding changes, and others.
fn some_pairs() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    let length = prop_oneof![0usize..20, 120usize..140];
    let text = length.prop_flat_map(|length| prop::collection::vec(any::<u8>(), length));
    prop::collection::vec((text.clone(), text), 0..12)
}

proptest! {
    #[test]
    fn pairs_are_read_as_they_were_written(sent in some_pairs()) {
        let mut out = Vec::new();
        sent.iter().for_each(|(name, value)| put_pair(&mut out, name, value));
        let read: Result<Vec<_>, _> = pairs(&out).collect();
        let wanted: Vec<_> = sent.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        prop_assert_eq!(read, Ok(wanted));
        // A stream that ends early is never taken for a whole one, unless it ends between two.
        for cut in 0..out.len() {
            let early: Vec<_> = pairs(&out[..cut]).collect();
            let whole = early.iter().take_while(|pair| pair.is_ok()).count();
            prop_assert!(early.len() - whole <= 1);
            let again = &mut Vec::new();
            sent[..whole].iter().for_each(|(name, value)| put_pair(again, name, value));
            prop_assert_eq!(early.len() == whole, again.len() == cut);
        }
    }

    #[test]
    fn records_say_the_same_wherever_they_are_cut(
        parts in prop::collection::vec((any::<u8>(), any::<u16>(), prop::collection::vec(any::<u8>(), 0..40), 0u8..9), 0..6)
    ) {
        let mut out = Vec::new();
        for (kind, id, data, padding) in &parts {
            put_header(&mut out, *kind, *id, data.len() as u16, *padding);
            out.extend_from_slice(data);
            out.resize(out.len() + usize::from(*padding), 0xee);
        }
        let wanted: Vec<_> = parts
            .iter()
            .map(|(kind, id, data, _)| Record { kind: *kind, id: *id, content: data })
            .collect();
        let (whole, rest) = records(&out);
        prop_assert!(rest.is_empty());
        prop_assert_eq!(&whole, &wanted);
        for cut in 0..=out.len() {
            let (early, rest) = records(&out[..cut]);
            prop_assert_eq!(&early[..], &wanted[..early.len()]);
            let taken = cut - rest.len();
            let (late, rest) = records(&out[taken..]);
            prop_assert!(rest.is_empty());
            prop_assert_eq!(early.len() + late.len(), wanted.len());
        }
    }

    #[test]
    fn a_stream_is_what_was_put_into_it(data in prop::collection::vec(any::<u8>(), 0..200), times in 0usize..900) {
        let data = data.repeat(times);
        let mut out = Vec::new();
        put_stream(&mut out, kind::STDERR, 3, &data);
        prop_assert_eq!(out.len() % 8, 0);
        prop_assert_eq!(content(&out, kind::STDERR), data);
        prop_assert!(records(&out).0.iter().all(|record| !record.content.is_empty()));
    }
}
