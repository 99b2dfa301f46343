use super::super::tests::{Text, place, read, text};
use crate::Fault;
use crate::mounts::Mounts;
use crate::path::Letters;
use proptest::prelude::*;

/// `tests/servers.rs` has what web servers send; these are what they might.
#[test]
fn where_a_request_goes() {
    let uri = |uri| ("REQUEST_URI", uri);
    let script = |script| ("SCRIPT_NAME", script);
    let info = |info| ("PATH_INFO", info);
    for (prefix, pairs, wanted) in [
        // REQUEST_URI alone, or nothing but what the web server says.
        ("", &[uri("/a%20b//c?q")][..], ["", "/a%20b//c", "q"]),
        ("", &[uri("http://here")], ["", "/", ""]),
        ("", &[uri("http://here?q")], ["", "/", "q"]),
        ("", &[uri("https://here/x?u=http://there/")], ["", "/x", "u=http://there/"]),
        ("", &[script("/s"), info("/i j"), ("QUERY_STRING", "q")], ["/s", "/i%20j", "q"]),
        ("", &[info("/i")], ["", "/i", ""]),
        ("", &[script("/s"), info("")], ["/s", "", ""]),
        ("", &[script(""), info(""), uri("/x")], ["", "/x", ""]),
        // A slash at the end of SCRIPT_NAME is PATH_INFO's.
        ("", &[script("/"), info("")], ["", "/", ""]),
        ("", &[script("/"), info("/x")], ["", "/x", ""]),
        ("", &[script("/s/"), info(""), uri("/s/")], ["/s", "/", ""]),
        // Rewritten: what the web server says, and its query.
        ("", &[script("/new"), info(""), uri("/old?a"), ("QUERY_STRING", "b")], ["/new", "", "b"]),
        ("", &[script("/n w"), info("/\u{e9}%"), uri("/old")], ["/n%20w", "/%C3%A9%25", ""]),
        ("", &[script("/app"), info("/b"), uri("/app/a/../b")], ["/app", "/b", ""]),
        ("", &[script("/app"), info("/b"), uri("/app/%zz")], ["/app", "/b", ""]),
        // An encoding that decodes to another is no agreement.
        ("", &[script("/app"), info("/%62"), uri("/app/%62")], ["/app", "/%2562", ""]),
        // PATH_INFO as all of the path, beside a SCRIPT_NAME that is so, too.
        ("", &[script("/a/b"), info("/a/b"), uri("/a/%62")], ["", "/a/%62", ""]),
        ("", &[script("/x"), info("/x"), uri("/x/x")], ["/x", "/x", ""]),
        // A script that is not named in the path.
        ("", &[script("/d/index.cgi"), info(""), uri("/d/")], ["/d", "/", ""]),
        ("", &[script("/d/index.cgi"), info(""), uri("/d")], ["/d", "", ""]),
        ("", &[script("/index.cgi"), info(""), uri("/")], ["", "/", ""]),
        ("", &[script("/index.cgi"), info("/x"), uri("/x")], ["", "/x", ""]),
        ("", &[script("/d/index.cgi"), info("/y"), uri("/d/x")], ["/d/index.cgi", "/y", ""]),
        ("", &[script("/d/index.cgi"), info(""), uri("/e/x")], ["/d/index.cgi", "", ""]),
        ("", &[script("/d/index.cgi"), info(""), uri("/d/../e")], ["/d/index.cgi", "", ""]),
        ("", &[script("/d/index.cgi"), info(""), uri("/d/%2e%2e/e")], ["/d/index.cgi", "", ""]),
        ("", &[script("/d/index"), info(""), uri("/d/x")], ["/d/index", "", ""]),
        // Under a prefix: wherever the web server cuts, and if it takes the prefix away.
        ("/app", &[script("/app/x"), uri("/app/x")], ["/app", "/x", ""]),
        ("/app", &[script("/app"), info("/x"), uri("/%61pp/x")], ["/%61pp", "/x", ""]),
        ("/app", &[script(""), info("/x"), uri("/app/x")], ["/app", "/x", ""]),
        ("/app", &[info("/app/x"), uri("/old")], ["/app", "/x", ""]),
        ("/app", &[uri("/app?q")], ["/app", "", "q"]),
        ("/a/b", &[script("/a"), info("/b/c"), uri("/a/b/c")], ["/a/b", "/c", ""]),
        ("/", &[script("/a"), info("/b"), uri("/a/b")], ["", "/a/b", ""]),
        ("/", &[script("/a"), info("/b"), uri("/old")], ["", "/a/b", ""]),
        // lighttpd leaves out a PATH_INFO that is empty.
        ("", &[script("/s"), uri("/s"), ("SERVER_SOFTWARE", "lighttpd/1.4")], ["/s", "", ""]),
        ("", &[script("/s"), uri("/s"), ("SERVER_SOFTWARE", "nginx/1")], ["", "/s", ""]),
    ] {
        assert_eq!(place(prefix, pairs), Ok(wanted.map(str::to_owned)), "{pairs:?}");
    }
}

#[test]
fn which_mount_is_asked() {
    let uri = |uri| ("REQUEST_URI", uri);
    let script = |script| ("SCRIPT_NAME", script);
    let info = |info| ("PATH_INFO", info);
    let host = |host| ("HTTP_HOST", host);
    for (pairs, wanted) in [
        (&[uri("/x")][..], Ok((0, "", "/x"))),
        (&[uri("/shop")], Ok((1, "/shop", ""))),
        (&[uri("/shop/?q")], Ok((1, "/shop", "/"))),
        (&[uri("/shopping")], Ok((0, "", "/shopping"))),
        (&[script("/shop/x"), uri("/sh%6Fp/x")], Ok((1, "/sh%6Fp", "/x"))),
        (&[script("/shop"), info("/a b"), uri("/shop/a%20b")], Ok((1, "/shop", "/a%20b"))),
        (&[script("/shop/cart"), info("/x"), uri("/shop/cart/x")], Ok((2, "/shop/cart", "/x"))),
        // Rewritten, and resolved.
        (&[script("/shop"), info("/x"), uri("/old")], Ok((1, "/shop", "/x"))),
        (&[script("/x"), info(""), uri("/shop/../x")], Ok((0, "", "/x"))),
        (&[script("/shop"), info("/x"), uri("//shop/x")], Ok((1, "/shop", "/x"))),
        // The web server has taken the mount's path away.
        (&[script(""), info("/x"), uri("/shop/x")], Ok((1, "/shop", "/x"))),
        (&[script(""), info("/"), uri("/shop/cart/")], Ok((2, "/shop/cart", "/"))),
        (&[script(""), info("/shop/x"), uri("/shop/shop/x")], Ok((1, "/shop", "/x"))),
        // What nobody has resolved.
        (&[uri("/shop/../x")], Err(Fault::NotHere)),
        (&[uri("//shop/x")], Err(Fault::NotHere)),
        (&[uri("/x%2Fshop/y")], Ok((0, "", "/x%2Fshop/y"))),
        // Hosts.
        (&[host("A.example:80"), uri("/shop/x")], Ok((3, "", "/shop/x"))),
        (&[host("b.example"), uri("/shop/x")], Ok((1, "/shop", "/x"))),
        (&[("SERVER_NAME", "a.example"), uri("/")], Ok((3, "", "/"))),
        (&[host("b"), ("SERVER_NAME", "a.example"), uri("/")], Ok((0, "", "/"))),
    ] {
        assert_eq!(
            among(pairs, None),
            wanted.map(|(m, s, i)| (m, s.into(), i.into())),
            "{pairs:?}"
        );
    }
    let proxy = among(&[host("b.example"), uri("/")], Some("a.example"));
    assert_eq!(proxy.map(|found| found.0), Ok(3));
    let options = [("REQUEST_METHOD", "OPTIONS"), host("a.example"), uri("*")];
    assert_eq!(among(&options, None), Ok((3, "".into(), "*".into())));
}

/// The mount's number, SCRIPT_NAME and PATH_INFO.
fn among(pairs: &[(&str, &str)], claimed: Option<&str>) -> Result<(usize, String, String), Fault> {
    let hosts = ["a.example".to_string()];
    let places: [(&[String], &str); 4] =
        [(&[], ""), (&[], "/shop"), (&[], "/shop/cart"), (&hosts, "")];
    let mounts =
        Mounts::new(places.into_iter().enumerate().map(|(i, (hosts, path))| (i, hosts, path)));
    let get = ("REQUEST_METHOD", "GET");
    let pairs = [&[get], pairs].concat();
    let variables = read(&pairs)?;
    let (request, mount) = variables.judge_among(&mounts, |_| claimed.map(Into::into))?;
    Ok((mount, text(&request.script_name), text(&request.path_info)))
}

#[test]
fn where_no_request_goes() {
    let uri = |uri| ("REQUEST_URI", uri);
    for (prefix, pairs, wanted) in [
        ("", &[][..], Fault::BadPath),
        ("", &[("SCRIPT_NAME", ""), ("PATH_INFO", "")], Fault::BadPath),
        ("", &[("SCRIPT_NAME", "app")], Fault::BadPath),
        ("", &[("SCRIPT_NAME", "/app"), ("PATH_INFO", "x"), uri("/app/x")], Fault::BadPath),
        ("", &[uri("x")], Fault::BadTarget),
        ("", &[uri("*")], Fault::BadTarget),
        ("", &[uri("*x")], Fault::BadTarget),
        ("", &[uri("/x#y")], Fault::Fragment),
        ("/app", &[uri("/apple")], Fault::NotHere),
        ("/app", &[uri("/")], Fault::NotHere),
        ("/app", &[uri("//app/x")], Fault::NotHere),
        ("/app", &[("SCRIPT_NAME", "/other"), uri("/app/x")], Fault::NotHere),
        ("/app", &[("SCRIPT_NAME", "/apple"), uri("/apple")], Fault::NotHere),
    ] {
        assert_eq!(place(prefix, pairs), Err(wanted), "{pairs:?}");
    }
    assert_eq!(Fault::NotHere.status(), 404);
}

#[test]
fn options_for_the_server_as_a_whole() {
    let ask = |uri| {
        read(&[("REQUEST_METHOD", "OPTIONS"), ("REQUEST_URI", uri)])?
            .judge("/app")
            .map(|r| text(&r.path_info))
    };
    assert_eq!(ask("*").as_deref(), Ok("*"));
    assert_eq!(ask("/app").as_deref(), Ok(""));
}

#[test]
fn targets_that_are_not_sent_are_made() {
    let uri = |pairs: &[Text]| {
        let pairs = [&[("REQUEST_METHOD", "GET")], pairs].concat();
        text(&read(&pairs).unwrap().judge("").unwrap().uri)
    };
    assert_eq!(
        uri(&[("SCRIPT_NAME", "/s"), ("PATH_INFO", "/i j"), ("QUERY_STRING", "q")]),
        "/s/i%20j?q"
    );
    assert_eq!(uri(&[("SCRIPT_NAME", "/s"), ("PATH_INFO", "")]), "/s");
    assert_eq!(uri(&[("SCRIPT_NAME", "/s"), ("REQUEST_URI", "http://a/s?")]), "http://a/s?");
}

fn decoded(path: &[u8]) -> Option<Vec<u8>> {
    Letters(path).map(|letter| Some(letter?.0)).collect()
}

proptest! {
    /// Whatever is said, the app's path is the client's or the web server's, and has its form.
    #[test]
    fn script_and_info_are_the_path(
        raw in "(/|\\.|//|%2[eEfF]|%25|a|p|a\\.b|\u{e9}){0,8}",
        script in prop::option::of("(/|/a|/p|/a\\.b| |\u{e9}){0,3}"),
        info in prop::option::of("(/|/a|/p|%2F| ){0,3}"),
        prefix in "(/a|/|/p/a)?",
    ) {
        let raw = format!("/{raw}");
        let mut pairs = vec![("REQUEST_METHOD", "GET"), ("REQUEST_URI", &raw)];
        pairs.extend(script.as_deref().map(|script| ("SCRIPT_NAME", script)));
        pairs.extend(info.as_deref().map(|info| ("PATH_INFO", info)));
        let variables = read(&pairs).unwrap();
        let Ok(request) = variables.judge(&prefix) else { return Ok(()) };
        let (found, rest) = (&request.script_name, &request.path_info);
        prop_assert!(rest.is_empty() || rest.starts_with(b"/"));
        prop_assert!(found.is_empty() || found.starts_with(b"/"));
        prop_assert!(!found.is_empty() || !rest.is_empty());
        let whole = [&found[..], rest].concat();
        let client = decoded(raw.as_bytes());
        let said = [script.as_deref().unwrap_or(""), info.as_deref().unwrap_or("")].concat();
        let clean = crate::path::clean(raw.as_bytes()).map(|path| path.into_owned());
        let told = script.as_deref().unwrap_or("").as_bytes().to_vec();
        // The slash at the end of SCRIPT_NAME is PATH_INFO's.
        let (head, tail) = (script.as_deref().unwrap_or(""), info.as_deref().unwrap_or(""));
        let slashless = [head.strip_suffix('/').unwrap_or(head), tail].concat().into_bytes();
        let path = decoded(&whole);
        let as_sent = whole == raw.as_bytes();
        prop_assert!(
            as_sent || [client, Some(said.into_bytes()), clean, Some(told), Some(slashless)].contains(&path),
            "{:?}", text(&whole)
        );
        if !matches!(&*prefix, "" | "/") {
            prop_assert_eq!(decoded(found), Some(prefix.into_bytes()));
        }
    }

    /// What agrees stays as it was sent, cut where the web server cuts.
    #[test]
    fn what_agrees_stays_as_it_was_sent(script in "(/([a-c]|%2[0-9]|%C3%A9){1,3}){0,3}", info in "(/([a-c]|%2[0-9]|%7[eE]){0,3}){1,3}") {
        let raw = script.clone() + &info;
        let plain = |path: &str| String::from_utf8(decoded(path.as_bytes()).unwrap()).unwrap();
        let (plain_script, plain_info) = (plain(&script), plain(&info));
        let pairs = [("REQUEST_METHOD", "GET"), ("REQUEST_URI", &raw), ("SCRIPT_NAME", &plain_script), ("PATH_INFO", &plain_info)];
        let variables = read(&pairs).unwrap();
        let request = variables.judge("").unwrap();
        prop_assert_eq!((text(&request.script_name), text(&request.path_info)), (script, info));
    }
}
