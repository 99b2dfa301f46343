//! The rules for a request head that the HTTP library has parsed. What it hides from view, such as
//! a second Content-Length of the same value, `scan` has seen in the bytes.

use crate::Fault;
use crate::host::{self, Authority};
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Uri, Version};

/// Judges a head. What it gives is whom the request is addressed to: the target's authority, else
/// Host; None where both are empty or, in HTTP/1.0, missing.
pub fn judge<'a>(
    method: &Method,
    uri: &'a Uri,
    version: Version,
    headers: &'a HeaderMap,
) -> Result<Option<Authority<'a>>, Fault> {
    if method == Method::CONNECT {
        return Err(Fault::Connect);
    }
    let (mut host, mut length, mut coding) = (None, None, None);
    for (name, value) in headers {
        let (seen, twice) = match *name {
            HOST => (&mut host, Fault::Hosts),
            CONTENT_LENGTH => (&mut length, Fault::Lengths),
            TRANSFER_ENCODING => (&mut coding, Fault::BadCoding),
            _ => continue,
        };
        if seen.replace(value.as_bytes()).is_some() {
            return Err(twice);
        }
    }
    framing(length, coding, version)?;
    let target = target(method, uri)?;
    let named = match host {
        None if version == Version::HTTP_11 => return Err(Fault::NoHost),
        None | Some(b"") => None,
        Some(host) => Some(host::read(host).ok_or(Fault::BadHost)?),
    };
    // RFC 9112, section 3.2.2: the target's wins.
    Ok(target.or(named))
}

/// RFC 9112, sections 6.1 to 6.3.
fn framing(length: Option<&[u8]>, coding: Option<&[u8]>, version: Version) -> Result<(), Fault> {
    match (length, coding) {
        (None, None) => Ok(()),
        (Some(_), Some(_)) => Err(Fault::LengthAndCoding),
        (Some(digits), None) => read_length(digits).map(|_| ()).ok_or(Fault::BadLength),
        (None, Some(_)) if version != Version::HTTP_11 => Err(Fault::CodingTooNew),
        (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => Ok(()),
        (None, Some(_)) => Err(Fault::BadCoding),
    }
}

/// The bytes a Content-Length announces: digits only, no list.
pub fn read_length(digits: &[u8]) -> Option<u64> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The form of the target (RFC 9112, section 3.2), and its authority if it has one.
fn target<'a>(method: &Method, uri: &'a Uri) -> Result<Option<Authority<'a>>, Fault> {
    let path = uri.path();
    if names_nul(path.as_bytes()) {
        return Err(Fault::Nul);
    }
    match (uri.scheme_str(), uri.authority()) {
        (None, None) if path.starts_with('/') => Ok(None),
        (None, None) if path == "*" && method == Method::OPTIONS => Ok(None),
        (Some("http" | "https"), Some(authority)) => {
            // User information is an error here (RFC 9110, section 4.2.4), as is an empty host.
            host::read(authority.as_str().as_bytes()).map(Some).ok_or(Fault::BadTarget)
        }
        // Authority-form belongs to CONNECT, `*` to OPTIONS.
        _ => Err(Fault::BadTarget),
    }
}

/// Whether a path holds an encoded NUL, which ends it for programs written in C.
fn names_nul(path: &[u8]) -> bool {
    memchr::memchr_iter(b'%', path).any(|at| path[at + 1..].starts_with(b"00"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn head(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    /// The authority's text, or the fault.
    fn ask(line: &str, lines: &[(&str, &str)]) -> Result<Option<String>, Fault> {
        let mut words = line.split(' ');
        let method: Method = words.next().unwrap().parse().unwrap();
        let uri: Uri = words.next().unwrap().parse().unwrap();
        let old = words.next() == Some("HTTP/1.0");
        let version = if old { Version::HTTP_10 } else { Version::HTTP_11 };
        let verdict = judge(&method, &uri, version, &head(lines))?.map(|a| a.text.to_owned());
        Ok(verdict)
    }

    const HERE: (&str, &str) = ("host", "here");

    #[test]
    fn host_is_there_once_and_well_formed() {
        assert_eq!(ask("GET /", &[HERE]), Ok(Some("here".into())));
        assert_eq!(ask("GET /", &[]), Err(Fault::NoHost));
        assert_eq!(ask("GET / HTTP/1.0", &[]), Ok(None));
        assert_eq!(ask("GET / HTTP/1.0", &[HERE, HERE]), Err(Fault::Hosts));
        assert_eq!(ask("GET /", &[HERE, HERE]), Err(Fault::Hosts));
        assert_eq!(ask("GET /", &[("host", "")]), Ok(None));
        assert_eq!(ask("GET / HTTP/1.0", &[("host", "a@b")]), Err(Fault::BadHost));
        assert_eq!(ask("GET /", &[("host", "a b")]), Err(Fault::BadHost));
    }

    #[test]
    fn the_targets_authority_wins() {
        assert_eq!(ask("GET http://there:81/x", &[HERE]), Ok(Some("there:81".into())));
        assert_eq!(ask("GET https://there/x", &[("host", "")]), Ok(Some("there".into())));
        assert_eq!(ask("GET http://there/x", &[]), Err(Fault::NoHost));
        assert_eq!(ask("GET http://there/x", &[("host", "a/b")]), Err(Fault::BadHost));
        assert_eq!(ask("GET http://u@there/x", &[HERE]), Err(Fault::BadTarget));
        assert_eq!(ask("GET ftp://there/x", &[HERE]), Err(Fault::BadTarget));
    }

    #[test]
    fn targets_are_of_their_methods_form() {
        assert_eq!(ask("OPTIONS *", &[HERE]), Ok(Some("here".into())));
        assert_eq!(ask("GET *", &[HERE]), Err(Fault::BadTarget));
        assert_eq!(ask("GET there:80", &[HERE]), Err(Fault::BadTarget));
        assert_eq!(ask("GET there", &[HERE]), Err(Fault::BadTarget));
        assert_eq!(ask("CONNECT there:443", &[HERE]), Err(Fault::Connect));
        assert_eq!(ask("CONNECT /", &[HERE]), Err(Fault::Connect));
        assert_eq!(Fault::Connect.status(), 501);
    }

    #[test]
    fn nul_is_found_in_paths_alone() {
        assert_eq!(ask("GET /a%00b", &[HERE]), Err(Fault::Nul));
        assert_eq!(ask("GET /%2%00", &[HERE]), Err(Fault::Nul));
        assert_eq!(ask("GET http://there/%00", &[HERE]), Err(Fault::Nul));
        assert_eq!(ask("GET /%0%000", &[HERE]), Err(Fault::Nul));
        for fine in ["GET /%2500", "GET /a?b=%00", "GET /%0", "GET /%"] {
            assert_eq!(ask(fine, &[HERE]), Ok(Some("here".into())), "{fine}");
        }
    }

    #[test]
    fn lengths_and_codings() {
        let ask = |lines: &[(&str, &str)]| {
            let lines = [&[HERE], lines].concat();
            ask("POST /", &lines).map(|_| ())
        };
        let length = |value| ("content-length", value);
        let coding = |value| ("transfer-encoding", value);
        assert_eq!(ask(&[length("0")]), Ok(()));
        assert_eq!(ask(&[length("18446744073709551615")]), Ok(()));
        for bad in ["", "+1", "-1", "1 ", "0x1", "1,1", "1, 1", "18446744073709551616", "\u{661}"] {
            assert_eq!(ask(&[length(bad)]), Err(Fault::BadLength), "{bad:?}");
        }
        assert_eq!(ask(&[length("1"), length("1")]), Err(Fault::Lengths));
        assert_eq!(ask(&[coding("chunked")]), Ok(()));
        assert_eq!(ask(&[coding("Chunked")]), Ok(()));
        for bad in [
            "",
            "gzip",
            "gzip, chunked",
            "chunked, chunked",
            "chunked, gzip",
            "\"chunked\"",
            "xchunked",
            "identity",
            ",chunked",
        ] {
            assert_eq!(ask(&[coding(bad)]), Err(Fault::BadCoding), "{bad:?}");
        }
        assert_eq!(ask(&[coding("chunked"), coding("chunked")]), Err(Fault::BadCoding));
        assert_eq!(ask(&[coding("chunked"), length("1")]), Err(Fault::LengthAndCoding));
        let old = super::tests::ask("POST / HTTP/1.0", &[coding("chunked")]);
        assert_eq!(old, Err(Fault::CodingTooNew));
    }
}
