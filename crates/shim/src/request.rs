//! The request, as the web server has put it into the environment (RFC 3875).

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use door::fastcgi::{self, kind, role};

use crate::fault::Fault;

/// The one request of a connection has this number.
pub const ID: u16 = 1;

/// What is on standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many bytes; what a web server leaves open behind them is not waited for.
    Bytes(u64),
    /// Everything up to the end: an upload in chunks, which has no length.
    UntilEnd,
}

/// The request's environment as FastCGI says it, and what there is to know before it is sent.
pub struct Request {
    /// BEGIN_REQUEST and PARAMS.
    pub head: Vec<u8>,
    /// How much of standard input is its body.
    pub length: Length,
    /// It may be sent to a second server when a first did not hear it.
    pub repeatable: bool,
}

impl Request {
    /// Reads this process's environment.
    pub fn from_environment() -> Result<Request, Fault> {
        let variables: Vec<(OsString, OsString)> = env::vars_os().collect();
        Request::new(&variables)
    }

    fn new(variables: &[(OsString, OsString)]) -> Result<Request, Fault> {
        let value = |name: &str| {
            variables.iter().find(|(its, _)| its == name).map(|(_, value)| value.as_bytes())
        };
        let Some(method) = value("REQUEST_METHOD") else {
            let remedy = "this is a CGI program, which a web server runs; by hand: \
                          REQUEST_METHOD=GET SCRIPT_NAME=/index.cgi ./index.cgi";
            return Err(Fault::new("there is no REQUEST_METHOD").because(remedy));
        };
        let length = length(value("CONTENT_LENGTH"), value("HTTP_TRANSFER_ENCODING"));
        Ok(Request {
            head: head(variables),
            length,
            repeatable: matches!(method, b"GET" | b"HEAD") || length != Length::Bytes(0),
        })
    }
}

fn length(announced: Option<&[u8]>, coding: Option<&[u8]>) -> Length {
    let announced = announced.filter(|text| !text.is_empty());
    if announced.is_none() && coding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")) {
        return Length::UntilEnd;
    }
    // One that is no number is for the server to refuse.
    let text = announced.and_then(|text| std::str::from_utf8(text).ok());
    Length::Bytes(text.and_then(|text| text.parse().ok()).unwrap_or(0))
}

fn head(variables: &[(OsString, OsString)]) -> Vec<u8> {
    let mut pairs = Vec::with_capacity(4096);
    for (name, value) in variables {
        fastcgi::put_pair(&mut pairs, name.as_bytes(), value.as_bytes());
    }
    // The server learns from them that a path has been split: stock web servers that speak FastCGI
    // send neither, or one.
    for name in ["SCRIPT_NAME", "PATH_INFO"] {
        if !variables.iter().any(|(its, _)| its == OsStr::new(name)) {
            fastcgi::put_pair(&mut pairs, name.as_bytes(), b"");
        }
    }
    let mut head = Vec::with_capacity(pairs.len() + 64);
    fastcgi::put_begin(&mut head, ID, role::RESPONDER, false);
    fastcgi::put_stream(&mut head, kind::PARAMS, ID, &pairs);
    fastcgi::put_stream_end(&mut head, kind::PARAMS, ID);
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(variables: &[(&str, &str)]) -> Option<Request> {
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Request::new(&variables).ok()
    }

    #[test]
    fn the_environment_becomes_params() {
        let variables = [("REQUEST_METHOD", "GET"), ("SCRIPT_NAME", "/a/index.cgi"), ("X", "é")];
        let request = request(&variables).unwrap();
        let mut rest = &request.head[..];
        let (mut kinds, mut params) = (Vec::new(), Vec::new());
        while !rest.is_empty() {
            let (record, whole) = fastcgi::record(rest).unwrap().unwrap();
            kinds.push((record.kind, record.content.is_empty()));
            if record.kind == kind::PARAMS {
                params.extend_from_slice(record.content);
            }
            rest = &rest[whole..];
        }
        assert_eq!(
            kinds,
            [(kind::BEGIN_REQUEST, false), (kind::PARAMS, false), (kind::PARAMS, true)]
        );
        let pairs: Vec<_> = fastcgi::pairs(&params).map(Result::unwrap).collect();
        let expected = [&variables[..], &[("PATH_INFO", "")]].concat();
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        assert_eq!(pairs, expected);
    }

    #[test]
    fn a_length_that_is_said_is_kept() {
        assert_eq!(length(Some(b"17"), Some(b"chunked")), Length::Bytes(17));
        assert_eq!(length(Some(b""), Some(b"Chunked")), Length::UntilEnd);
        assert_eq!(length(None, None), Length::Bytes(0));
        assert_eq!(length(Some(b"many"), None), Length::Bytes(0));
        assert_eq!(length(Some(b"-1"), None), Length::Bytes(0));
    }

    #[test]
    fn what_may_have_run_is_not_sent_again() {
        let repeatable = |method, length| {
            request(&[("REQUEST_METHOD", method), ("CONTENT_LENGTH", length)]).unwrap().repeatable
        };
        assert!(repeatable("GET", ""));
        // As long as its body is not on its way nothing can have run.
        assert!(repeatable("POST", "5"));
        assert!(!repeatable("POST", "0"));
        assert!(request(&[("PATH", "/bin")]).is_none());
    }
}
