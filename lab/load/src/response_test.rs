//! Answers however they are cut, and what is none.

use super::{Progress, Response, Workers};
use crate::door::Door;

/// However the bytes are cut, the answer is the same, and it comes with the last byte.
fn every_cut(bytes: &[u8], status: u16, close: bool, body: u64) {
    let mut workers = Workers::default();
    for cut in 1..=bytes.len() {
        let mut response = Response::default();
        if cut < bytes.len() {
            assert_eq!(response.feed(&bytes[..cut], &mut workers), Progress::More, "{cut}");
            assert_eq!(response.feed(&bytes[cut..], &mut workers), Progress::Done, "{cut}");
        } else {
            assert_eq!(response.feed(bytes, &mut workers), Progress::Done);
        }
        let found = (response.status, response.close, response.bytes);
        assert_eq!(found, (status, close, body), "cut at {cut}");
    }
    let mut response = Response::default();
    let (last, first) = bytes.split_last().unwrap();
    for byte in first {
        assert_eq!(response.feed(&[*byte], &mut workers), Progress::More);
    }
    assert_eq!(response.feed(&[*last], &mut workers), Progress::Done);
}

fn feed(bytes: &[u8]) -> (Response, Progress) {
    let mut response = Response::default();
    let progress = response.feed(bytes, &mut Workers::default());
    (response, progress)
}

#[test]
fn a_length() {
    every_cut(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, false, 5);
    every_cut(b"HTTP/1.1 500 No\r\ncontent-length:2\r\nConnection: close\r\n\r\nno", 500, true, 2);
    every_cut(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n!", 200, true, 1);
    every_cut(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, false, 0);
}

#[test]
fn what_the_connection_field_says() {
    for (version, value, close) in [
        (1, "keep-alive", false),
        (1, "x, Close", true),
        (1, "upgrade", false),
        (0, "Keep-Alive", false),
        (0, "upgrade", true),
    ] {
        let head = format!("HTTP/1.{version} 204 N\r\nConnection: {value}\r\n\r\n");
        every_cut(head.as_bytes(), 204, close, 0);
    }
}

#[test]
fn chunks() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    every_cut(format!("{head}5\r\nhello\r\n0\r\n\r\n").as_bytes(), 200, false, 5);
    let more = format!("{head}A;x=0\r\n0123456789\r\n1\r\n-\r\n0\r\na: b\r\n\r\n");
    every_cut(more.as_bytes(), 200, false, 11);
    every_cut(format!("{head}0\r\n\r\n").as_bytes(), 200, false, 0);
    for wrong in ["\r\n", "x\r\n", "3\r\nhello\r\n0\r\n\r\n", "0\r\n\r\nmore", "0\r\n\0\r\n"] {
        assert_eq!(feed(format!("{head}{wrong}").as_bytes()).1, Progress::Garbage, "{wrong:?}");
    }
}

#[test]
fn no_body_whatever_the_head_says() {
    every_cut(b"HTTP/1.1 204 No Content\r\n\r\n", 204, false, 0);
    every_cut(b"HTTP/1.1 304 Same\r\nContent-Length: 7\r\n\r\n", 304, false, 0);
    let mut response = Response::default();
    response.reset(Door::Http, true);
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    assert_eq!(response.feed(bytes, &mut Workers::default()), Progress::Done);
}

#[test]
fn an_interim_response_is_passed_over() {
    let bytes =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nLink: x\r\n\r\nHTTP/1.1 204 N\r\n\r\n";
    every_cut(bytes, 204, false, 0);
}

#[test]
fn until_the_end() {
    let (mut response, progress) = feed(b"HTTP/1.0 200 OK\r\n\r\nsome");
    assert_eq!((progress, response.bytes), (Progress::More, 4));
    assert!(response.end() && response.close);
    let (mut response, _) = feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
    assert!(!response.end(), "a length that was not kept");
    assert!(!Response::default().end(), "no answer at all");
}

#[test]
fn what_is_no_answer() {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nhello"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n!",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"<html>",
    ] {
        assert_eq!(feed(bytes).1, Progress::Garbage, "{}", String::from_utf8_lossy(bytes));
    }
    let endless = [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; 70_000]].concat();
    assert_eq!(feed(&endless).1, Progress::Garbage);
}

#[test]
fn workers_are_told_apart() {
    let mut workers = Workers::default();
    let mut ask = |name: &str| {
        let mut response = Response::default();
        let text = format!("HTTP/1.1 204 N\r\nx-LAB-worker: {name}\r\n\r\n");
        assert_eq!(response.feed(text.as_bytes(), &mut workers), Progress::Done);
        response.worker.unwrap()
    };
    assert_eq!([ask("12"), ask("34"), ask("12")], [0, 1, 0]);
    assert_eq!([workers.name(0), workers.name(1)], ["12", "34"]);
}

/// The same in FastCGI's records, each of at most so many bytes.
fn in_records(bytes: &[u8], most: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for part in bytes.chunks(most) {
        out.extend_from_slice(&[1, 6, 0, 1, 0, part.len() as u8, 0, 0]);
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\x01\x06\0\x01\0\0\0\0\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0");
    out
}

fn through(door: Door, bytes: &[u8], cut: usize) -> (Response, Progress) {
    let mut response = Response::default();
    response.reset(door, false);
    let mut progress = Progress::More;
    for part in bytes.chunks(cut) {
        assert_eq!(progress, Progress::More, "before the last byte");
        progress = response.feed(part, &mut Workers::default());
    }
    (response, progress)
}

#[test]
fn what_a_gateway_answers() {
    for (bytes, status, body) in [
        (&b"Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"[..], 200, 5),
        (b"Status: 404 Not Found\nContent-Length: 2\n\nno", 404, 2),
        (b"Status: 204\r\n\r\n", 204, 0),
        (b"Location: /a\r\nContent-Length: 0\r\n\r\n", 302, 0),
    ] {
        for cut in 1..=bytes.len() {
            let (response, progress) = through(Door::Scgi, bytes, cut);
            assert_eq!((progress, response.status, response.bytes), (Progress::Done, status, body));
            let framed = in_records(bytes, cut.min(255));
            for cut in [1, 7, cut, framed.len()] {
                let (response, progress) = through(Door::FastCgi, &framed, cut);
                let found = (progress, response.status, response.bytes, response.close);
                assert_eq!(found, (Progress::Done, status, body, false));
            }
        }
    }
}

#[test]
fn the_end_of_an_answer_of_unknown_length() {
    let bytes = b"Content-Type: a/b\r\n\r\nhello";
    let (mut response, progress) = through(Door::Scgi, bytes, 99);
    assert_eq!((progress, response.bytes, response.end()), (Progress::More, 5, true));
    let framed = in_records(bytes, 9);
    let (response, progress) = through(Door::FastCgi, &framed, 99);
    assert_eq!((progress, response.bytes), (Progress::Done, 5));
    let (mut response, progress) = through(Door::FastCgi, &framed[..framed.len() - 1], 99);
    assert_eq!((progress, response.end()), (Progress::More, false), "only END_REQUEST ends it");
}

#[test]
fn what_a_gateway_must_not_answer() {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\n\r\n"[..],
        b"\r\nhello",
        b"Status: OK\r\n\r\n",
        b"Content-Length: 2\r\n\r\nhello",
    ] {
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(through(Door::Scgi, bytes, 99).1, Progress::Garbage, "{text}");
        assert_eq!(
            through(Door::FastCgi, &in_records(bytes, 99), 999).1,
            Progress::Garbage,
            "{text}"
        );
    }
    let short = in_records(b"Content-Length: 9\r\n\r\nhello", 99);
    assert_eq!(through(Door::FastCgi, &short, 999).1, Progress::Garbage);
    let twice = [in_records(b"A: b\r\n\r\n", 99), vec![1]].concat();
    assert_eq!(through(Door::FastCgi, &twice, 999).1, Progress::Garbage);
    assert_eq!(through(Door::FastCgi, &in_records(b"", 9), 999).1, Progress::Garbage, "no head");
}

#[test]
fn a_gateway_that_is_overloaded() {
    let refused = b"\x01\x03\0\x01\0\x08\0\0\0\0\0\0\x02\0\0\0";
    let (response, progress) = through(Door::FastCgi, refused, 99);
    assert_eq!((progress, response.status), (Progress::Done, 503));
    let role = b"\x01\x03\0\x01\0\x08\0\0\0\0\0\0\x03\0\0\0";
    assert_eq!(through(Door::FastCgi, role, 99).1, Progress::Garbage);
}
