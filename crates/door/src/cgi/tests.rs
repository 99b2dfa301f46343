use super::*;

pub type Text = (&'static str, &'static str);

pub fn read<'a>(pairs: &'a [(&'a str, &'a str)]) -> Result<Variables<'a>, Fault> {
    Variables::read(pairs.iter().map(|(name, value)| Ok((name.as_bytes(), value.as_bytes()))))
}

/// What is said of a plain GET and of this.
fn ask(more: &[Text], look: impl Fn(Request) -> String) -> Result<String, Fault> {
    let pairs = [&[("REQUEST_METHOD", "GET"), ("REQUEST_URI", "/")], more].concat();
    read(&pairs)?.judge("").map(look)
}

fn fault(more: &[Text]) -> Option<Fault> {
    ask(more, |_| String::new()).err()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// SCRIPT_NAME, PATH_INFO and QUERY_STRING.
pub fn place(prefix: &str, pairs: &[Text]) -> Result<[String; 3], Fault> {
    let pairs = [&[("REQUEST_METHOD", "GET")], pairs].concat();
    let variables = read(&pairs)?;
    let request = variables.judge(prefix)?;
    Ok([text(&request.script_name), text(&request.path_info), text(request.query)])
}

fn others(pairs: &[Text]) -> Vec<(String, String)> {
    let found = read(pairs).unwrap();
    found.others().map(|(name, value)| (text(name), text(value))).collect()
}

#[test]
fn methods_are_tokens() {
    let ask =
        |method| read(&[("REQUEST_METHOD", method), ("REQUEST_URI", "/")])?.judge("").map(|_| ());
    assert_eq!(ask("M-SEARCH"), Ok(()));
    assert_eq!(ask(""), Err(Fault::NoMethod));
    assert_eq!(read(&[("REQUEST_URI", "/")]).unwrap().judge("").err(), Some(Fault::NoMethod));
    for bad in ["GET /", "G\u{e9}T", "G\tT", "GET\r\n"] {
        assert_eq!(ask(bad), Err(Fault::BadMethod), "{bad:?}");
    }
    assert_eq!(ask("CONNECT"), Err(Fault::Connect));
}

#[test]
fn lengths_are_numbers() {
    let length = |said| ask(&[("CONTENT_LENGTH", said)], |request| format!("{:?}", request.length));
    assert_eq!(length("").as_deref(), Ok("None"));
    assert_eq!(length("0").as_deref(), Ok("Some(0)"));
    assert_eq!(length("18446744073709551615").as_deref(), Ok("Some(18446744073709551615)"));
    for bad in ["-1", "+1", " 1", "1 ", "0x1", "1,1", "x", "18446744073709551616"] {
        assert_eq!(length(bad), Err(Fault::BadLength), "{bad:?}");
    }
    let twice = |one, other| fault(&[("CONTENT_LENGTH", one), ("CONTENT_LENGTH", other)]);
    assert_eq!(twice("5", "6"), Some(Fault::Lengths));
    assert_eq!(twice("5", ""), Some(Fault::Lengths));
    assert_eq!(twice("5", "5"), None);
}

#[test]
fn https_is_what_is_not_off() {
    let https = |pairs: &[Text]| ask(pairs, |request| request.https.to_string()).unwrap() == "true";
    for on in ["on", "ON", "1", "true", "yes"] {
        assert!(https(&[("HTTPS", on)]), "{on}");
        assert!(https(&[("HTTPS", on), ("REQUEST_SCHEME", "http")]), "{on}");
    }
    for off in ["off", "OFF", "0"] {
        assert!(!https(&[("HTTPS", off), ("REQUEST_SCHEME", "https")]), "{off}");
    }
    for nothing in [&[][..], &[("HTTPS", "")]] {
        assert!(!https(nothing));
        assert!(https(&[nothing, &[("REQUEST_SCHEME", "https")]].concat()));
        assert!(!https(&[nothing, &[("REQUEST_SCHEME", "http")]].concat()));
    }
}

#[test]
fn clients_have_addresses_or_none() {
    let client = |said| {
        let both = |r: Request| format!("{:?} {}", r.remote_addr, text(r.remote_port));
        ask(&[("REMOTE_ADDR", said), ("REMOTE_PORT", "4711")], both).unwrap()
    };
    for (said, wanted) in [
        ("192.0.2.1", "Some(192.0.2.1)"),
        ("2001:db8::1", "Some(2001:db8::1)"),
        ("[2001:db8::1]", "Some(2001:db8::1)"),
        ("fe80::1%eth0", "Some(fe80::1)"),
        ("[fe80::1%25eth0]", "Some(fe80::1)"),
        ("::ffff:192.0.2.1", "Some(192.0.2.1)"),
        ("unix:", "None"),
        ("", "None"),
        ("localhost", "None"),
    ] {
        assert_eq!(client(said), wanted.to_owned() + " 4711", "{said}");
    }
    let port = |said| ask(&[("REMOTE_PORT", said)], |request| text(request.remote_port)).unwrap();
    for no in ["", "x", "-1", "65536"] {
        assert_eq!(port(no), "", "{no}");
    }
}

#[test]
fn servers_have_names_or_none() {
    let name = |said| ask(&[("SERVER_NAME", said)], |request| text(&request.server_name)).unwrap();
    for (said, wanted) in [
        ("www.example.org", "www.example.org"),
        ("192.0.2.1", "192.0.2.1"),
        ("[::1]", "[::1]"),
        ("::1", "[::1]"),
        ("_", ""),
        ("", ""),
        ("a b", ""),
        ("www.example.org:80", ""),
        ("~^(?<name>.+)$", ""),
    ] {
        assert_eq!(name(said), wanted, "{said}");
    }
    let port = |said| ask(&[("SERVER_PORT", said)], |request| text(request.server_port)).unwrap();
    assert_eq!(
        (port("8080"), port(""), port("http")),
        ("8080".into(), String::new(), String::new())
    );
}

#[test]
fn hosts_are_as_in_http() {
    let host = |said| {
        let shown = |r: Request| format!("{:?}", r.authority.map(|a| (a.text, a.host, a.port)));
        ask(&[("HTTP_HOST", said)], shown)
    };
    let whole = r#"Some(("here:81", "here", Some("81")))"#;
    assert_eq!(host("here:81").as_deref(), Ok(whole));
    assert_eq!(host("").as_deref(), Ok("None"));
    assert_eq!(host("a b"), Err(Fault::BadHost));
    // nginx's `server_name _`, for a client that has said none.
    assert_eq!(host("_").as_deref(), Ok("None"));
    assert!(others(&[("HTTP_HOST", "_")]).is_empty());
    assert_eq!(fault(&[("HTTP_HOST", "a"), ("HTTP_HOST", "a")]), Some(Fault::Hosts));
}

#[test]
fn protocols_are_http() {
    let protocol = |said| ask(&[("SERVER_PROTOCOL", said)], |r| text(r.protocol)).unwrap();
    for as_it_is in ["HTTP/1.0", "HTTP/1.1", "HTTP/2.0", "HTTP/2", "HTTP/3.0"] {
        assert_eq!(protocol(as_it_is), as_it_is);
    }
    // Apache's name for what its own documents include.
    for other in ["", "INCLUDED", "HTTP/", "HTTP/1.1\n", "http/1.1", "HTTP/11.1"] {
        assert_eq!(protocol(other), "HTTP/1.1", "{other}");
    }
}

#[test]
fn some_variables_are_not_for_apps() {
    let dropped = [
        ("HTTP_PROXY", "http://evil"),
        ("HTTP_CONTENT_LENGTH", "5"),
        ("HTTP_CONTENT_TYPE", "text/plain"),
        ("HTTP_TRANSFER_ENCODING", "chunked"),
        ("HTTP_VERSION", "9"),
        ("rack.input", "x"),
        ("HTTP_X.Y", "x"),
        ("", "x"),
        ("A=B", "x"),
        ("A B", "x"),
        ("A\nB", "x"),
        ("A\x7f", "x"),
        ("CONTENT_TYPE", ""),
        ("HTTPS", "on"),
        ("PATH_INFO", "/"),
    ];
    assert_eq!(others(&dropped), []);
    let kept = [
        ("CONTENT_TYPE", "text/plain"),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("DOCUMENT_ROOT", "/srv"),
        ("HTTP_X_EMPTY", ""),
        ("HTTP_X_TAB", "a\tb"),
        ("unique_id", "1"),
        ("SSL_CLIENT_CERT", "-----BEGIN\n-----END\n"),
    ];
    let wanted = kept.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(others(&kept), wanted);
}

#[test]
fn names_that_come_again() {
    let headers = [("HTTP_X", "a"), ("HTTP_COOKIE", "a=1"), ("HTTP_X", ""), ("HTTP_COOKIE", "b=2")];
    let wanted = [("HTTP_X", "a, "), ("HTTP_COOKIE", "a=1; b=2")];
    let wanted = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(others(&headers), wanted);
    // Of what is no header the last counts: it is said after the stock parameters.
    let last = others(&[("DOCUMENT_ROOT", "/a"), ("DOCUMENT_ROOT", "/b")]);
    assert_eq!(last, [("DOCUMENT_ROOT".to_owned(), "/b".to_owned())]);
    let twice =
        [("SCRIPT_NAME", "/x"), ("REQUEST_URI", "/x"), ("SCRIPT_NAME", ""), ("PATH_INFO", "/x")];
    assert_eq!(place("", &twice), Ok(["".into(), "/x".into(), "".into()]));
    let good = Ok((&b"A"[..], &b"b"[..]));
    let faulty = [good, Err(Fault::BadPairs), good];
    assert_eq!(Variables::read(faulty.into_iter()).err(), Some(Fault::BadPairs));
}

#[test]
fn many_names_are_joined_as_few_are() {
    let names: Vec<String> = (0..500).map(|n| format!("HTTP_X_{}", n % 150)).collect();
    let values: Vec<String> = (0..500).map(|n| n.to_string()).collect();
    let pairs = names.iter().zip(&values).map(|(n, v)| Ok((n.as_bytes(), v.as_bytes())));
    let more = [Ok((&b"A"[..], &b"1"[..])), Ok((b"A", b"2"))];
    let found = Variables::read(pairs.chain(more)).unwrap();
    let mut all: Vec<_> = found.others().map(|(name, value)| (text(name), text(value))).collect();
    all.sort();
    let mut wanted: Vec<_> = (0..150)
        .map(|n| {
            let values: Vec<String> = (n..500).step_by(150).map(|n: i32| n.to_string()).collect();
            (format!("HTTP_X_{n}"), values.join(", "))
        })
        .collect();
    wanted.push(("A".into(), "2".into()));
    wanted.sort();
    assert_eq!(all, wanted);
}

#[test]
fn control_characters_are_refused_where_http_has_none() {
    for name in ["HTTP_X", "CONTENT_TYPE", "QUERY_STRING", "REQUEST_URI"] {
        for value in ["/a\nb", "/a\rb", "/\0", "/\x1b", "/\x7f"] {
            let pairs = [("REQUEST_METHOD", "GET"), ("REQUEST_URI", "/"), (name, value)];
            let judged = read(&pairs).and_then(|found| found.judge("").map(|_| ()));
            assert_eq!(judged, Err(Fault::Control), "{name} {value:?}");
        }
    }
    // A decoded path may have any but one.
    let odd = [("REQUEST_URI", "/%0A%01"), ("SCRIPT_NAME", "/\n\x01")];
    assert_eq!(place("", &odd).unwrap()[1], "/%0A%01");
    assert_eq!(place("", &[("SCRIPT_NAME", "/\n")]).unwrap()[1], "/%0A");
    assert_eq!(place("", &[("SCRIPT_NAME", "/\0")]), Err(Fault::Nul));
    assert_eq!(place("", &[("REQUEST_URI", "/a%00")]), Err(Fault::Nul));
    assert_eq!(place("", &[("REQUEST_URI", "/a?%00")]).unwrap()[2], "%00");
}
