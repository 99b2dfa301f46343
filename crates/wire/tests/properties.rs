//! Properties of the formats: frames, records, the state word, the layout.
#![cfg(not(loom))]

use proptest::prelude::*;
use wire::frame::{self, Decoder, Event, Head, Malformed};
use wire::layout::*;
use wire::request::{self, KEYS, Key, Pairs, key};
use wire::slot::Word;
use wire::{Board, State};

/// What a stream of frames says, however it was cut: bodies joined.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Head(Vec<u8>),
    Body(Vec<u8>),
    Errors(Vec<u8>),
    End,
    Interim(Vec<u8>),
    File(u64, u64),
    Hijack,
    Malformed,
}

/// Decodes `stream` in the pieces that end at `cuts`.
fn decode(stream: &[u8], cuts: &[usize]) -> Vec<Said> {
    let mut decoder = Decoder::default();
    let mut said: Vec<Said> = Vec::new();
    let mut from = 0;
    for to in cuts.iter().map(|cut| *cut % (stream.len() + 1)).chain([stream.len()]) {
        let mut piece = &stream[from.min(to)..to];
        from = from.max(to);
        loop {
            match decoder.next(&mut piece) {
                Ok(None) => break,
                Ok(Some(Event::Head(head))) => {
                    assert!(head.len() <= frame::HEAD_MAX);
                    said.push(Said::Head(head.to_vec()));
                }
                Ok(Some(Event::Body(part))) => match said.last_mut() {
                    Some(Said::Body(body)) => body.extend_from_slice(part),
                    _ => said.push(Said::Body(part.to_vec())),
                },
                Ok(Some(Event::Errors(part))) => match said.last_mut() {
                    Some(Said::Errors(errors)) => errors.extend_from_slice(part),
                    _ => said.push(Said::Errors(part.to_vec())),
                },
                Ok(Some(Event::End)) => said.push(Said::End),
                Ok(Some(Event::Hijack)) => said.push(Said::Hijack),
                Ok(Some(Event::File { offset, length })) => said.push(Said::File(offset, length)),
                Ok(Some(Event::Interim(head))) => said.push(Said::Interim(head.to_vec())),
                Err(Malformed) => {
                    said.push(Said::Malformed);
                    return said;
                }
            }
        }
        assert!(piece.is_empty(), "bytes are left over though more was asked for");
    }
    said
}

fn encode(said: &[Said]) -> Vec<u8> {
    let mut stream = Vec::new();
    for one in said {
        let file;
        let (kind, payload): (u8, &[u8]) = match one {
            Said::Head(head) => (frame::HEAD, head),
            Said::Body(body) => (frame::BODY, body),
            Said::Errors(errors) => (frame::ERRORS, errors),
            Said::End => (frame::END, &[]),
            Said::Interim(head) => (frame::INTERIM, head),
            Said::Hijack => (frame::HIJACK, &[]),
            Said::File(offset, length) => {
                file = frame::file(*offset, *length);
                (frame::FILE, &file)
            }
            Said::Malformed => (99, &[]),
        };
        stream.extend_from_slice(&frame::header(kind, payload.len()));
        stream.extend_from_slice(payload);
    }
    stream
}

/// Neighbouring bodies joined and empty ones dropped, which is all that decoding may change.
fn joined(said: &[Said]) -> Vec<Said> {
    let mut result: Vec<Said> = Vec::new();
    for one in said {
        match (result.last_mut(), one) {
            (_, Said::Body(part) | Said::Errors(part)) if part.is_empty() => {}
            (Some(Said::Errors(before)), Said::Errors(part)) => before.extend_from_slice(part),
            (Some(Said::Body(before)), Said::Body(body)) => before.extend_from_slice(body),
            _ => result.push(one.clone()),
        }
    }
    result
}

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..max)
}

fn saying() -> impl Strategy<Value = Said> {
    prop_oneof![
        bytes(300).prop_map(Said::Head),
        bytes(300).prop_map(Said::Body),
        bytes(300).prop_map(Said::Errors),
        bytes(300).prop_map(Said::Interim),
        (any::<u32>(), any::<u32>())
            .prop_map(|(from, length)| Said::File(from.into(), length.into())),
        Just(Said::Hijack),
        Just(Said::End),
    ]
}

proptest! {
    #[test]
    fn frames_cut_anywhere_say_the_same(
        said in prop::collection::vec(saying(), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..40),
    ) {
        let stream = encode(&said);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
        cuts.sort_unstable();
        prop_assert_eq!(decode(&stream, &cuts), joined(&said));
        let every_byte: Vec<usize> = (0..stream.len()).collect();
        prop_assert_eq!(decode(&stream, &every_byte), joined(&said));
    }

    #[test]
    fn hostile_frames_only_fail(stream in bytes(600), cuts in prop::collection::vec(0..600usize, 0..9)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        for said in decode(&stream, &cuts) {
            if let Said::Head(head) = said {
                let _ = Head::parse(&head).map(|head| head.count());
            }
        }
    }

    #[test]
    fn a_head_comes_back(
        status in any::<u16>(),
        fields in prop::collection::vec((bytes(40), bytes(400)), 0..20),
    ) {
        let mut payload = Vec::new();
        frame::start_head(&mut payload, status);
        for (name, value) in &fields {
            prop_assert!(frame::push_field(&mut payload, name, value));
        }
        let head = Head::parse(&payload).unwrap();
        prop_assert_eq!(head.status, status);
        let read: Vec<_> = head.map(|field| field.unwrap()).collect();
        prop_assert!(read.iter().copied().eq(fields.iter().map(|(n, v)| (&n[..], &v[..]))));
    }

    #[test]
    fn a_cut_head_fails_or_ends_early(payload in bytes(200)) {
        if let Ok(head) = Head::parse(&payload) {
            prop_assert!(head.filter(|field| field.is_err()).count() <= 1);
        }
    }

    #[test]
    fn a_record_comes_back(
        pairs in prop::collection::vec((0..KEYS.len() as u8, bytes(300)), 0..20),
        headers in prop::collection::vec(("[-!#$%&'*+.^`|~a-z0-9]{1,30}", bytes(300)), 0..20),
    ) {
        let mut record = Vec::new();
        pairs.iter().for_each(|(key, value)| request::push(&mut record, *key, value));
        headers.iter().for_each(|(name, value)| request::push_header(&mut record, name, value));
        let mut read = Pairs(&record);
        for (key, value) in &pairs {
            prop_assert_eq!(read.next(), Some((Key::Known(*key), &value[..])));
        }
        for (name, value) in &headers {
            let env_name = format!("HTTP_{}", name.to_uppercase().replace('-', "_"));
            let known = request::known_header(name).map(Key::Known);
            let expected = known.unwrap_or(Key::Named(env_name.as_bytes()));
            prop_assert_eq!(read.next(), Some((expected, &value[..])));
        }
        prop_assert_eq!(read.next(), None);
        prop_assert!(read.0.is_empty());
    }

    #[test]
    fn a_hostile_record_only_ends(record in bytes(400)) {
        for (key, value) in Pairs(&record) {
            prop_assert!(value.len() <= record.len());
            if let Key::Known(key) = key {
                prop_assert!((key as usize) < KEYS.len());
            }
        }
    }

    #[test]
    fn a_state_word_comes_back(state in 0..6u8, owner in 0..4096u16, position in 0..1u64 << 44) {
        let states =
            [State::Free, State::Filling, State::Queued, State::Taken, State::Begun, State::Done];
        let word = Word { state: states[state as usize], owner, position };
        prop_assert_eq!(Word::unpack(word.pack()), word);
    }

    #[test]
    fn any_word_unpacks(word in any::<u64>()) {
        let unpacked = Word::unpack(word);
        if unpacked.state as u8 == word as u8 {
            prop_assert_eq!(unpacked.pack() >> 20, word >> 20);
        } else {
            prop_assert_eq!(unpacked.state, State::Free);
        }
    }
}

#[test]
fn a_head_longer_than_allowed_is_refused_at_its_first_byte() {
    let mut stream = frame::header(frame::HEAD, frame::HEAD_MAX + 1).to_vec();
    stream.push(0);
    assert_eq!(decode(&stream, &[]), [Said::Malformed]);
    let fits = encode(&[Said::Head(vec![7; frame::HEAD_MAX])]);
    assert_eq!(decode(&fits, &[1000, 5000]), [Said::Head(vec![7; frame::HEAD_MAX])]);
}

#[test]
fn a_field_too_long_to_travel_is_refused() {
    let (mut head, long) = (Vec::new(), vec![b'x'; usize::from(u16::MAX) + 1]);
    frame::start_head(&mut head, 200);
    assert!(!frame::push_field(&mut head, &long, b""));
    assert!(!frame::push_field(&mut head, b"", &long));
    assert_eq!(Head::parse(&head).unwrap().count(), 0, "nothing of it was written");
}

#[test]
fn numbered_keys_and_header_names_agree() {
    let first = usize::from(key::CONTENT_TYPE);
    let after_last = KEYS.iter().position(|name| *name == "GATEWAY_INTERFACE").unwrap();
    for (index, name) in KEYS[..after_last].iter().enumerate().filter(|(index, _)| *index >= first)
    {
        let header = name.trim_start_matches("HTTP_").to_lowercase().replace('_', "-");
        assert_eq!(request::known_header(&header), Some(index as u8), "{name}");
    }
    assert_eq!(KEYS[key::REQUEST_METHOD as usize], "REQUEST_METHOD");
    assert_eq!(KEYS[key::URL_SCHEME as usize], "rack.url_scheme");
    assert_eq!(KEYS[key::HTTP_HOST as usize], "HTTP_HOST");
    assert!(KEYS.len() < usize::from(key::NAMED));
}

/// What the sizes must satisfy, checked when this is compiled.
const _: () = {
    assert!(SLOTS.is_power_of_two() && SLOTS <= 1 << 16, "a ring entry has 16 bits for the slot");
    assert!(SEATS <= 1 << 12, "a state word has 12 bits for the owner");
    assert!(SLOT_WORDS <= 64, "one summary word covers all words of a front's bitmap");
    assert!(FRONTS <= 64, "one word names the fronts to ring");
    assert!(CHUNKS < 1 << 16 && BODY_CHUNKS * 16 <= 64, "a chunk's number has 16 bits");
    assert!(wire::queue::GROUP * 64 >= SLOTS, "64 bits of hints cover all slots");
    assert!(RING > SLOTS && RING.is_multiple_of(SLOTS));
    assert!(REPLY_BYTES.is_power_of_two(), "stream positions wrap at 2^32");
    assert!(SLOT_STRIDE >= REQUEST_BYTES + REPLY_BYTES && SLOT_STRIDE.is_multiple_of(64));
    assert!(!SLOT_STRIDE.is_power_of_two());
};

#[test]
fn the_areas_lie_one_behind_the_other() {
    use std::mem::offset_of;
    assert_eq!(offset_of!(Board, header), 0);
    let atomics = [
        (offset_of!(Board, header), size_of::<Header>()),
        (offset_of!(Board, queue), size_of::<wire::queue::Queue>()),
        (offset_of!(Board, bells), size_of::<wire::doorbell::Bells>()),
        (offset_of!(Board, fronts), FRONTS * size_of::<wire::doorbell::FrontBell>()),
        (offset_of!(Board, seats), SEATS * size_of::<wire::doorbell::Seat>()),
        (offset_of!(Board, slots), SLOTS * size_of::<wire::slot::SlotHead>()),
    ];
    for pair in atomics.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?} overlap");
    }
    assert!(atomics.iter().all(|(offset, _)| offset % 64 == 0));
    const { assert!(size_of::<Board>() <= DATA_OFFSET && DATA_OFFSET.is_multiple_of(4096)) };
    const { assert!(DATA_OFFSET + SLOTS * SLOT_STRIDE <= CHUNK_OFFSET) };
    const { assert!(CHUNK_OFFSET.is_multiple_of(4096)) };
    assert_eq!(CHUNK_OFFSET + CHUNKS * CHUNK_BYTES, SEGMENT_BYTES);
    assert_eq!(size_of::<wire::doorbell::Seat>(), 64, "a seat has a cache line to itself");
}
