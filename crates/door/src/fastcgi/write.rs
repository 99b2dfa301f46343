//! Writes records. Content is padded to eight bytes, as section 3.3 recommends.

use super::{HEADER, VERSION, kind, pairs};

/// So much of a stream goes into a record: as much as can without padding.
const PART: usize = 65528;

/// Appends a record's header; content and padding of these lengths in bytes are to follow.
pub fn put_header(out: &mut Vec<u8>, kind: u8, id: u16, length: u16, padding: u8) {
    let [id1, id0] = id.to_be_bytes();
    let [length1, length0] = length.to_be_bytes();
    out.extend_from_slice(&[VERSION, kind, id1, id0, length1, length0, padding, 0]);
}

/// Appends a whole record of a content of at most `PART` bytes.
fn put_record(out: &mut Vec<u8>, kind: u8, id: u16, content: &[u8]) {
    let padding = content.len().next_multiple_of(8) - content.len();
    put_header(out, kind, id, content.len() as u16, padding as u8);
    out.extend_from_slice(content);
    out.resize(out.len() + padding, 0);
}

/// Appends a part of a stream, in as many records as it needs: none if it is empty, because an
/// empty record ends the stream.
pub fn put_stream(out: &mut Vec<u8>, kind: u8, id: u16, data: &[u8]) {
    out.reserve(data.len() + data.len().div_ceil(PART) * (HEADER + 8));
    data.chunks(PART).for_each(|part| put_record(out, kind, id, part));
}

/// Appends the end of a stream.
pub fn put_stream_end(out: &mut Vec<u8>, kind: u8, id: u16) {
    put_header(out, kind, id, 0, 0);
}

/// Appends BEGIN_REQUEST (section 5.1).
pub fn put_begin(out: &mut Vec<u8>, id: u16, role: u16, keep: bool) {
    let [role1, role0] = role.to_be_bytes();
    put_record(out, kind::BEGIN_REQUEST, id, &[role1, role0, keep.into(), 0, 0, 0, 0, 0]);
}

/// Appends END_REQUEST (section 5.5).
pub fn put_end(out: &mut Vec<u8>, id: u16, app_status: u32, protocol_status: u8) {
    let [a, b, c, d] = app_status.to_be_bytes();
    put_record(out, kind::END_REQUEST, id, &[a, b, c, d, protocol_status, 0, 0, 0]);
}

/// Appends a name and its value, without a record around them (section 3.4). Both are shorter than
/// 2 GiB.
pub fn put_pair(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for length in [name.len(), value.len()] {
        match length {
            0..=127 => out.push(length as u8),
            _ => out.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes()),
        }
    }
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

/// Appends the answer to a management record of a type that nobody knows (section 4.2).
pub fn put_unknown_type(out: &mut Vec<u8>, kind: u8) {
    put_record(out, kind::UNKNOWN_TYPE, 0, &[kind, 0, 0, 0, 0, 0, 0, 0]);
}

/// Appends GET_VALUES_RESULT (section 4.1): of the variables that the content of GET_VALUES asks
/// for, those that are known, once each.
pub fn put_values(out: &mut Vec<u8>, asked: &[u8], known: &[(&str, &str)]) {
    let mut content = Vec::new();
    for (name, value) in known {
        let wanted = |pair: &(&[u8], &[u8])| pair.0 == name.as_bytes();
        if pairs(asked).flatten().any(|pair| wanted(&pair)) {
            put_pair(&mut content, name.as_bytes(), value.as_bytes());
        }
    }
    put_record(out, kind::GET_VALUES_RESULT, 0, &content);
}
