//! From parts that processes have written to records.
//!
//! A line is a record, and so are the lines after it that are indented, if they came with it:
//! backtraces. What our Ruby has to say about an exception it writes as one line of JSON with a mark
//! in front that nobody else knows (`Oribi::Report`).

use jiff::Zoned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;

/// A line this long is cut, bytes.
const LINE_MAX: usize = 1 << 20;
/// Writers that are remembered, at most.
const WRITERS_MAX: usize = 4096;

/// What our own JSON records begin with: no app can be brought to write it.
pub fn new_mark() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("\u{1e}{:016x}{:016x}", random(), random())
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines as they came, with time and pid in front.
    Text,
    /// One object a line.
    Json,
}

impl Format {
    /// As the setting names it.
    pub fn named(name: &str) -> Format {
        if name == "json" { Format::Json } else { Format::Text }
    }
}

/// Puts lines together.
pub struct Gatherer {
    format: Format,
    mark: String,
    /// What each writer has begun.
    begun: BTreeMap<u32, Vec<u8>>,
    /// Who they were when they were last seen: the last words of the dead come from nobody.
    known: BTreeMap<u32, Who>,
}

impl Gatherer {
    /// With nothing begun; `mark` is what our own records begin with.
    pub fn new(format: Format, mark: &str) -> Gatherer {
        Gatherer { format, mark: mark.into(), begun: BTreeMap::new(), known: BTreeMap::new() }
    }

    /// Takes a part; returns the records that are whole now, as the log has them.
    pub fn take(&mut self, pid: u32, part: &[u8]) -> Vec<u8> {
        let mut text = self.begun.remove(&pid).unwrap_or_default();
        text.extend_from_slice(part);
        let whole = text.iter().rposition(|c| *c == b'\n').map_or(0, |end| end + 1);
        let mut log = Vec::new();
        self.write(&mut log, pid, &text[..whole]);
        let rest = text.split_off(whole);
        if rest.len() > LINE_MAX || self.begun.len() >= WRITERS_MAX {
            self.write(&mut log, pid, &rest);
        } else if !rest.is_empty() {
            self.begun.insert(pid, rest);
        }
        log
    }

    /// What was begun, as if it had been ended.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut log = Vec::new();
        for (pid, rest) in std::mem::take(&mut self.begun) {
            self.write(&mut log, pid, &rest);
        }
        log
    }

    fn who(&mut self, pid: u32) -> Who {
        if self.known.len() >= WRITERS_MAX {
            self.known.clear();
        }
        if let Some(who) = Who::of(pid) {
            self.known.insert(pid, who);
        }
        self.known.get(&pid).cloned().unwrap_or_default()
    }

    fn write(&mut self, log: &mut Vec<u8>, pid: u32, text: &[u8]) {
        let mut lines = text.split_inclusive(|c| *c == b'\n').peekable();
        let mut who = None;
        while let Some(first) = lines.next() {
            let mut record = first.to_vec();
            while let Some(more) = lines.next_if(|line| matches!(line[0], b' ' | b'\t')) {
                record.extend_from_slice(more);
            }
            let record = record.strip_suffix(b"\n").unwrap_or(&record);
            let time = Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string();
            match self.format {
                Format::Text => {
                    let _ = write!(log, "{time} [{pid}] ");
                    log.extend_from_slice(record);
                }
                Format::Json => {
                    let who: &Who = who.get_or_insert_with(|| self.who(pid));
                    let said = record.strip_prefix(self.mark.as_bytes());
                    let _ = serde_json::to_writer(&mut *log, &object(time, pid, who, said, record));
                }
            }
            log.push(b'\n');
        }
    }
}

/// Who writes, as the process's title says.
#[derive(Clone, Debug, Default, PartialEq)]
struct Who {
    role: String,
    worker: Option<u64>,
    generation: Option<u64>,
}

impl Who {
    /// None: it is dead.
    fn of(pid: u32) -> Option<Who> {
        let title = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        (!title.is_empty()).then(|| Who::titled(&title))
    }

    /// `oribi: worker 2 gen 1 /`; anything else is a program that the app has started.
    fn titled(title: &[u8]) -> Who {
        let title = String::from_utf8_lossy(title).replace('\0', " ");
        let words: Vec<&str> = title.split_whitespace().collect();
        let after = |word| {
            let at = words.iter().position(|other| *other == word)?;
            words.get(at + 1)?.parse().ok()
        };
        match words[..] {
            ["oribi:", role, ..] => {
                Who { role: role.into(), worker: after("worker"), generation: after("gen") }
            }
            _ => Who { role: "app".into(), ..Who::default() },
        }
    }
}

fn object(time: String, pid: u32, who: &Who, said: Option<&[u8]>, record: &[u8]) -> Value {
    let mut object = Map::new();
    object.insert("time".into(), time.into());
    object.insert("pid".into(), pid.into());
    if let Some(Value::Object(said)) = said.and_then(|said| serde_json::from_slice(said).ok()) {
        object.extend(said);
        return Value::Object(object);
    }
    if !who.role.is_empty() {
        object.insert("role".into(), who.role.as_str().into());
    }
    for (name, number) in [("worker", who.worker), ("generation", who.generation)] {
        if let Some(number) = number {
            object.insert(name.into(), number.into());
        }
    }
    let text = String::from_utf8_lossy(record);
    object.insert("message".into(), json!(text.strip_prefix("oribi: ").unwrap_or(&text)));
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages of JSON records.
    fn messages(log: &[u8]) -> Vec<String> {
        let lines = log.split(|c| *c == b'\n').filter(|line| !line.is_empty());
        let record = |line| serde_json::from_slice::<Value>(line).unwrap();
        lines.map(|line| record(line)["message"].as_str().unwrap().to_string()).collect()
    }

    #[test]
    fn lines_are_put_together_by_writer() {
        let mut gatherer = Gatherer::new(Format::Json, "!");
        assert_eq!(gatherer.take(1, b"one"), b"");
        assert_eq!(messages(&gatherer.take(2, b"other\nrest")), ["other"]);
        assert_eq!(messages(&gatherer.take(1, b" line\noribi: two\n")), ["one line", "two"]);
        assert_eq!(messages(&gatherer.finish()), ["rest"]);
        assert_eq!(gatherer.finish(), b"");
    }

    #[test]
    fn a_backtrace_belongs_to_its_message() {
        let mut gatherer = Gatherer::new(Format::Json, "!");
        let log = gatherer.take(1, b"a.rb:1: oh no (E)\n\tfrom b\n\tfrom c\nnext\n");
        assert_eq!(messages(&log), ["a.rb:1: oh no (E)\n\tfrom b\n\tfrom c", "next"]);
    }

    #[test]
    fn records_of_ours_keep_their_fields() {
        let mut gatherer = Gatherer::new(Format::Json, "!");
        let log =
            gatherer.take(7, b"!{\"message\":\"m\",\"role\":\"mold\",\"backtrace\":[\"x\"]}\n");
        let record: Value = serde_json::from_slice(&log).unwrap();
        assert_eq!((&record["message"], &record["pid"]), (&json!("m"), &json!(7)));
        assert_eq!((&record["role"], &record["backtrace"]), (&json!("mold"), &json!(["x"])));
        assert_eq!(messages(&gatherer.take(7, b"!{oops\n{\"a\":1}\n")), ["!{oops", "{\"a\":1}"]);
        assert_ne!(new_mark(), new_mark());
    }

    #[test]
    fn text_has_time_and_pid_in_front_of_each_record() {
        let log = Gatherer::new(Format::Text, "!").take(7, b"one\n two\n\xff\n");
        let text = String::from_utf8_lossy(&log).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(" [7] one") && lines[1] == " two");
        assert!(log.ends_with(b" [7] \xff\n") && lines[0].starts_with("2"));
    }

    #[test]
    fn titles_say_who_writes() {
        let who = Who::titled(b"oribi: worker 2 gen 3 /\0\0");
        assert_eq!((who.role.as_str(), who.worker, who.generation), ("worker", Some(2), Some(3)));
        assert_eq!(Who::titled(b"oribi: mold gen 1 /").generation, Some(1));
        assert_eq!(Who::titled(b"oribi: supervisor\0config.ru\0").role, "supervisor");
        assert_eq!(Who::titled(b"/bin/sh\0-c\0x").role, "app");
        assert_eq!(Who::titled(b"").role, "app");
    }
}
