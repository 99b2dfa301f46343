//! The forms of a line. Nothing a client sends can end one or forge a field of one.

use super::Entry;
use hyper::header::HeaderValue;
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

/// How a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache's common log format.
    Common,
    /// The same with referer and user agent.
    Combined,
    /// One JSON object a line.
    Json,
    /// Labelled tab-separated values.
    Ltsv,
}

/// The time in the forms that lines want, made anew once a second.
#[derive(Default)]
pub struct Clock {
    zone: Option<TimeZone>,
    second: u64,
    /// `10/Oct/2000:13:55:36 -0700`
    common: String,
    /// `2000-10-10T13:55:36`
    date: String,
    /// `-07:00`
    offset: String,
}

impl Clock {
    /// Sets it; returns the milliseconds within the second.
    fn set(&mut self, at: SystemTime) -> u32 {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let second = since.as_secs();
        if self.second != second || self.common.is_empty() {
            let zone = self.zone.get_or_insert_with(TimeZone::system);
            let time = Timestamp::from_second(second as i64).unwrap_or_default();
            let time = time.to_zoned(zone.clone());
            self.second = second;
            self.common = time.strftime("%d/%b/%Y:%H:%M:%S %z").to_string();
            self.date = time.strftime("%Y-%m-%dT%H:%M:%S").to_string();
            self.offset = time.strftime("%:z").to_string();
        }
        since.subsec_millis()
    }
}

/// The fields of JSON lines. Durations are in seconds.
#[derive(Serialize)]
struct Record<'a> {
    time: String,
    client: Cow<'a, str>,
    method: Option<&'a str>,
    uri: Option<String>,
    protocol: Option<String>,
    host: Option<Cow<'a, str>>,
    mount: Option<&'a str>,
    status: u16,
    bytes: u64,
    complete: bool,
    referer: Option<Cow<'a, str>>,
    user_agent: Option<Cow<'a, str>>,
    request_id: Cow<'a, str>,
    worker: Option<u32>,
    queue_time: Option<f64>,
    service_time: Option<f64>,
    duration: f64,
}

impl Format {
    /// As the setting names it.
    pub fn named(name: &str) -> Format {
        match name {
            "common" => Format::Common,
            "json" => Format::Json,
            "ltsv" => Format::Ltsv,
            _ => Format::Combined,
        }
    }

    /// Appends the entry's line, its end included.
    pub fn write(self, line: &mut Vec<u8>, entry: &Entry, clock: &mut Clock) {
        let milliseconds = clock.set(entry.at);
        match self {
            Format::Common | Format::Combined => {
                common(line, entry, clock);
                if self == Format::Combined {
                    for field in [&entry.referer, &entry.agent] {
                        line.extend_from_slice(b" \"");
                        escape(line, bytes(field));
                        line.push(b'"');
                    }
                }
            }
            Format::Json => json(line, entry, clock, milliseconds),
            Format::Ltsv => ltsv(line, entry, clock),
        }
        line.push(b'\n');
    }
}

/// `%h %l %u %t "%r" %>s %b`
fn common(line: &mut Vec<u8>, entry: &Entry, clock: &Clock) {
    escape(line, address(entry).as_bytes());
    let _ = write!(line, " - - [{}] \"", clock.common);
    match &entry.asked {
        Some((method, uri, version)) => {
            escape(line, format!("{method} {uri} {version:?}").as_bytes());
        }
        None => line.push(b'-'),
    }
    let _ = write!(line, "\" {} ", entry.status);
    match entry.bytes {
        0 => line.push(b'-'),
        bytes => drop(write!(line, "{bytes}")),
    }
}

fn json(line: &mut Vec<u8>, entry: &Entry, clock: &Clock, milliseconds: u32) {
    let text = |value: &'_ Option<HeaderValue>| {
        value.as_ref().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned().into())
    };
    let record = Record {
        time: format!("{}.{milliseconds:03}{}", clock.date, clock.offset),
        client: address(entry),
        method: entry.asked.as_ref().map(|(method, ..)| method.as_str()),
        uri: entry.asked.as_ref().map(|(_, uri, _)| uri.to_string()),
        protocol: entry.asked.as_ref().map(|(.., version)| format!("{version:?}")),
        host: text(&entry.host),
        mount: mount(entry),
        status: entry.status,
        bytes: entry.bytes,
        complete: entry.complete,
        referer: text(&entry.referer),
        user_agent: text(&entry.agent),
        request_id: String::from_utf8_lossy(entry.id.as_bytes()),
        worker: worker(entry),
        queue_time: queue(entry).map(seconds),
        service_time: service(entry).map(seconds),
        duration: seconds(duration(entry)),
    };
    let _ = serde_json::to_writer(line, &record);
}

/// The labels of ltsv.org where it has one.
fn ltsv(line: &mut Vec<u8>, entry: &Entry, clock: &Clock) {
    let (method, uri, protocol) = match &entry.asked {
        Some((method, uri, version)) => {
            (method.to_string(), uri.to_string(), format!("{version:?}"))
        }
        None => ("-".into(), "-".into(), "-".into()),
    };
    let host = address(entry);
    let texts: [(&str, &[u8]); 9] = [
        ("host", host.as_bytes()),
        ("method", method.as_bytes()),
        ("uri", uri.as_bytes()),
        ("protocol", protocol.as_bytes()),
        ("vhost", bytes(&entry.host)),
        ("mount", mount(entry).unwrap_or("-").as_bytes()),
        ("referer", bytes(&entry.referer)),
        ("ua", bytes(&entry.agent)),
        ("reqid", entry.id.as_bytes()),
    ];
    let _ = write!(line, "time:[{}]", clock.common);
    for (label, text) in texts {
        let _ = write!(line, "\t{label}:");
        escape(line, text);
    }
    let time = |ns: Option<u64>| ns.map_or("-".into(), |ns| format!("{:.6}", seconds(ns)));
    let _ = write!(
        line,
        "\tstatus:{}\tsize:{}\tcomplete:{}\tworker:{}\tqueuetime:{}\tapptime:{}\
         \treqtime:{}",
        entry.status,
        entry.bytes,
        entry.complete,
        worker(entry).map_or("-".into(), |nr| nr.to_string()),
        time(queue(entry)),
        time(service(entry)),
        time(Some(duration(entry))),
    );
}

/// Over a unix socket there is none, unless a proxy names one.
fn address(entry: &Entry) -> Cow<'_, str> {
    match (entry.times.client.get(), entry.peer.address.as_str()) {
        (Some(client), _) => client.to_string().into(),
        (None, "") => "-".into(),
        (None, address) => address.into(),
    }
}

/// None of what was refused before it had one.
fn mount(entry: &Entry) -> Option<&str> {
    entry.times.mount.get().map(|mount| mount.name.as_str())
}

fn bytes(value: &Option<HeaderValue>) -> &[u8] {
    value.as_ref().map_or(b"-", |value| value.as_bytes())
}

fn worker(entry: &Entry) -> Option<u32> {
    Some(entry.times.worker.load(Relaxed)).filter(|nr| *nr != 0)
}

/// None of what was refused before it came so far.
fn queue(entry: &Entry) -> Option<u64> {
    Some(entry.times.queue.load(Relaxed)).filter(|ns| *ns != 0)
}

fn service(entry: &Entry) -> Option<u64> {
    Some(entry.times.service.load(Relaxed)).filter(|ns| *ns != 0)
}

fn duration(entry: &Entry) -> u64 {
    wire::now_ns().saturating_sub(entry.began_ns)
}

/// To the microsecond.
fn seconds(ns: u64) -> f64 {
    (ns / 1000) as f64 / 1e6
}

/// As nginx does it: quotes, backslashes, and all that is not printable ASCII become `\xHH`.
fn escape(line: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        match byte {
            b'"' | b'\\' | 0..=31 | 127.. => drop(write!(line, "\\x{byte:02X}")),
            plain => line.push(*plain),
        }
    }
}
