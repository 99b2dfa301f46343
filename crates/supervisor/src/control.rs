//! What `oribi status`, `oribi restart` and their like say to a running server, and what it says.
//!
//! Over a unix stream socket (`runtime` says where it is). A client sends one line of JSON, a
//! [`Request`]; the server answers with lines of JSON, each a [`Reply`]: any number of `progress`,
//! then one that is something else, and closes. `stop` is the exception: it has no last line, the
//! connection ends when the server does.
//!
//! ```text
//! → {"command":"restart"}
//! ← {"progress":"generation 2 boots"}
//! ← {"done":"generation 2 serves (booted in 1.2 s)"}
//! ```
//!
//! Either side may be of another version: unknown fields are passed over, missing ones have
//! defaults, and a request that is not understood is answered with `failed`.

pub mod runtime;
pub mod status;

use serde::{Deserialize, Serialize};
use status::Status;

/// The longest request line in bytes, its newline included.
pub const REQUEST_MAX: usize = 4096;

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Request {
    /// What is the state of things? Answered with `status`.
    Status,
    /// Finish what runs and waits, then end.
    Stop {
        /// End at once instead, as after a QUIT.
        #[serde(default)]
        now: bool,
        /// Only this mount, by its name or path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mount: Option<String>,
    },
    /// Boot a new generation and switch to it. Answered when that has been decided.
    Restart {
        /// Only of this mount; otherwise of each that has an app.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mount: Option<String>,
    },
    /// Let the generation serve again that is held since the last restart.
    Rollback {
        /// Of which mount; needed where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mount: Option<String>,
    },
    /// From now on so many workers.
    Scale {
        /// How many.
        workers: u16,
        /// Of which mount; needed where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mount: Option<String>,
    },
    /// Read the settings anew, as the server was started, and do what has changed.
    Reload {
        /// One mount more than they say, as `--mount` has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mount: Option<String>,
    },
    /// Open the log files again: they have been renamed.
    ReopenLogs,
}

/// One line of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Something on the way.
    Progress(String),
    /// It is done, and how it ended.
    Done(String),
    /// It was not done, and why.
    Failed(String),
    /// The answer to `status`.
    Status(Box<Status>),
}

impl Request {
    /// Reads a line, without its newline or with it; otherwise says what is wrong with it.
    pub fn parse(line: &[u8]) -> Result<Request, String> {
        serde_json::from_slice(line).map_err(|error| {
            format!("not a request that oribi {} knows: {error}", env!("CARGO_PKG_VERSION"))
        })
    }
}

/// A line to send.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_understood() {
        let requests = [
            (Request::Status, "{\"command\":\"status\"}\n"),
            (Request::Stop { now: true, mount: None }, "{\"command\":\"stop\",\"now\":true}\n"),
            (Request::Scale { workers: 3, mount: None }, "{\"command\":\"scale\",\"workers\":3}\n"),
            (Request::Restart { mount: None }, "{\"command\":\"restart\"}\n"),
            (
                Request::Restart { mount: Some("shop".into()) },
                "{\"command\":\"restart\",\"mount\":\"shop\"}\n",
            ),
            (Request::ReopenLogs, "{\"command\":\"reopen-logs\"}\n"),
        ];
        for (request, text) in requests {
            assert_eq!(String::from_utf8(line(&request)).unwrap(), text);
            assert_eq!(Request::parse(text.as_bytes()), Ok(request));
        }
        let short = Request::parse(b" {\"command\": \"stop\", \"more\": []}\r\n");
        assert_eq!(short, Ok(Request::Stop { now: false, mount: None }));
        let reply = line(&Reply::Progress("generation 2 boots".into()));
        assert_eq!(reply, b"{\"progress\":\"generation 2 boots\"}\n");
    }

    #[test]
    fn what_is_no_request_is_refused_in_one_line() {
        let wrong: [&[u8]; 11] = [
            b"",
            b"\n",
            b"status",
            b"{}",
            b"[]",
            b"{\"command\":\"halt\"}",
            b"{\"command\":\"scale\"}",
            b"{\"command\":\"scale\",\"workers\":-1}",
            b"{\"command\":\"scale\",\"workers\":70000}",
            b"{\"command\":\"status\"}{\"command\":\"stop\"}",
            b"\xff\xfe\x00",
        ];
        for text in wrong {
            let why = Request::parse(text).unwrap_err();
            assert!(!why.contains('\n') && why.starts_with("not a request"), "{why}");
        }
    }

    /// Deep nesting, cut requests, changed bytes: nothing makes the parser panic, and nothing but
    /// the whole of a request passes for one.
    #[test]
    fn damaged_requests_are_refused() {
        let whole = br#"{"command":"scale","workers":12}"#;
        for end in 0..whole.len() {
            assert!(Request::parse(&whole[..end]).is_err(), "{end}");
        }
        for at in 0..whole.len() {
            for byte in 0..=255 {
                let mut changed = whole.to_vec();
                changed[at] = byte;
                let _ = Request::parse(&changed);
            }
        }
        let deep = b"[".repeat(REQUEST_MAX);
        assert!(Request::parse(&deep).is_err());
        let deep = [br#"{"command":"stop","x":"#.as_slice(), &deep].concat();
        assert!(Request::parse(&deep).is_err());
    }
}
