use super::*;
use crate::path;
use proptest::prelude::*;

type Named<'a> = (&'a str, Vec<String>, &'a str);

/// Mounts written as `host host/path`; each is named by what was written.
fn mounts<'a>(written: &[&'a str]) -> Mounts<&'a str> {
    let read: Vec<Named> = (written.iter())
        .map(|text| {
            let end = text.find('/').unwrap_or(text.len());
            let (hosts, path) = text.split_at(end);
            (*text, hosts.split_whitespace().map(String::from).collect(), path)
        })
        .collect();
    Mounts::new(read.iter().map(|(name, hosts, path)| (*name, &hosts[..], *path)))
}

/// `HOST/PATH` to the mount and its SCRIPT_NAME.
fn find<'a>(mounts: &Mounts<&'a str>, asked: &str) -> Option<(&'a str, String)> {
    let (host, path) = asked.split_at(asked.find('/').unwrap());
    let host = (!host.is_empty()).then_some(host);
    let (mount, end) = mounts.find(host, path.as_bytes())?;
    Some((mount, path[..end].into()))
}

#[test]
fn the_longest_path_wins_at_its_boundaries() {
    let mounts = mounts(&["", "/shop", "/shop/admin", "/a b"]);
    for (path, wanted) in [
        ("/", ("", "")),
        ("/x", ("", "")),
        ("/shop", ("/shop", "/shop")),
        ("/shop/", ("/shop", "/shop")),
        ("/shop/x", ("/shop", "/shop")),
        ("/shopping", ("", "")),
        ("/shop.html", ("", "")),
        ("/Shop", ("", "")),
        ("/shop/admin", ("/shop/admin", "/shop/admin")),
        ("/shop/admin/", ("/shop/admin", "/shop/admin")),
        ("/shop/administrator", ("/shop", "/shop")),
        ("/sh%6Fp/%61dmin/x", ("/shop/admin", "/sh%6Fp/%61dmin")),
        ("/sh%6fp/x%20y", ("/shop", "/sh%6fp")),
        ("/sh%256Fp/x", ("", "")),
        ("/a%20b/c", ("/a b", "/a%20b")),
        ("/shop//x", ("/shop", "/shop")),
        ("/shop/./x", ("/shop", "/shop")),
        ("/shop/.well-known", ("/shop", "/shop")),
        ("/shop/x/../y", ("/shop", "/shop")),
        ("/shop/a%2Fb", ("/shop", "/shop")),
        ("//x", ("", "")),
        ("/x%2Fshop", ("", "")),
    ] {
        assert_eq!(find(&mounts, path), Some((wanted.0, wanted.1.into())), "{path}");
    }
}

#[test]
fn what_could_be_meant_for_two_mounts_goes_to_none() {
    let mounts = mounts(&["", "/shop", "/shop/admin"]);
    for path in [
        "//shop/x",
        "/./shop/x",
        "/%2e/shop",
        "/x/../shop",
        "/x/%2E%2e/shop/y",
        "/shop/../x",
        "/shop/..",
        "/shop/../../shop/x/..//../..",
        "/shop//admin",
        "/shop/./admin",
        "/shop/x/../admin/y",
        "/shop/admin/..",
        "/shop%2Fadmin",
        "/%2Fshop",
        "/shop/%2Fadmin",
        "/shop%2F..%2Fx",
        "/a%2Fb/../shop/x",
        "/a//../shop",
        "/../shop",
        "/shop/admin%2F..",
    ] {
        assert_eq!(find(&mounts, path), None, "{path}");
    }
}

#[test]
fn one_mount_gets_all_that_is_spelt_as_its_path() {
    let root = mounts(&[""]);
    for path in ["/", "//x", "/../x", "/a%2Fb", "/%zz"] {
        assert_eq!(find(&root, path), Some(("", String::new())), "{path}");
    }
    let app = mounts(&["/app"]);
    assert_eq!(find(&app, "/app/../x"), Some(("/app", "/app".into())));
    assert_eq!(find(&app, "/x"), None);
    assert_eq!(find(&app, "//app"), None);
    assert_eq!(root.find(None, b"x"), None);
    assert_eq!(root.find(None, b""), Some(("", 0)));
    assert_eq!(mounts(&[]).find(None, b"/"), None);
}

#[test]
fn the_closest_host_goes_first() {
    let mounts = mounts(&[
        "",
        "/shop",
        "a.example/",
        "*.example/shop",
        "*.b.example other.org/",
        "[::1]/six",
        "Dot.Example./dot",
    ]);
    for (asked, wanted) in [
        ("/x", ""),
        ("nobody/x", ""),
        ("nobody/shop", "/shop"),
        ("a.example/x", "a.example/"),
        ("A.Example/shop", "a.example/"),
        ("a.example./x", "a.example/"),
        ("c.example/shop/x", "*.example/shop"),
        ("d.c.example/shop", "*.example/shop"),
        ("c.example/x", ""),
        ("x.b.example/shop", "*.b.example other.org/"),
        ("b.example/shop", "*.example/shop"),
        ("example/shop", "/shop"),
        (".example/shop", "/shop"),
        ("notexample/shop", "/shop"),
        ("OTHER.ORG/shop", "*.b.example other.org/"),
        ("[::1]/six/x", "[::1]/six"),
        ("dot.example/dot", "Dot.Example./dot"),
    ] {
        assert_eq!(find(&mounts, asked).map(|found| found.0), Some(wanted), "{asked}");
    }
    assert!(mounts.has_hosts());
}

#[test]
fn the_server_is_its_root() {
    assert_eq!(mounts(&["/a", "b/", ""]).of_server(None), Some(""));
    assert_eq!(mounts(&["/a", "b/", ""]).of_server(Some("b")), Some("b/"));
    assert_eq!(mounts(&["a b/app"]).of_server(None), Some("a b/app"));
    assert_eq!(mounts(&["/a", "/b"]).of_server(None), None);
    assert_eq!(mounts(&[]).of_server(None), None);
}

#[test]
fn a_host_without_a_mount_for_a_path_has_none() {
    let mounts = mounts(&["a.example/shop", "*.example/blog"]);
    assert_eq!(find(&mounts, "a.example/shop").unwrap().0, "a.example/shop");
    assert_eq!(find(&mounts, "a.example/blog").unwrap().0, "*.example/blog");
    for asked in ["a.example/", "/shop", "b.example/shop", "é.example/shop", "e/blog"] {
        assert_eq!(find(&mounts, asked), None, "{asked}");
    }
}

const PLACES: &[&str] = &["", "/a", "/a/b", "/ab", "/b/a"];

proptest! {
    /// For paths that mean one thing: what a plain comparison of strings says.
    #[test]
    fn plain_paths_go_where_they_say(path in "(/[ab]{1,2}){0,4}/?", some in 0..32usize) {
        let there: Vec<_> = PLACES.iter().enumerate().filter(|(i, _)| some >> i & 1 == 1)
            .map(|(_, place)| *place).collect();
        let path = if path.is_empty() { "/".into() } else { path };
        let wanted = there.iter()
            .filter(|place| format!("{path}/").starts_with(&format!("{place}/")))
            .max_by_key(|place| place.len());
        prop_assert_eq!(mounts(&there).find(None, path.as_bytes()).map(|found| found.0),
                        wanted.copied());
    }

    /// Encoding letters changes nothing but the length of SCRIPT_NAME.
    #[test]
    fn encoded_letters_are_letters(path in "(/[ab]{1,2}){1,4}/?", mask in any::<u32>()) {
        let all = mounts(PLACES);
        let mut encoded = String::new();
        for (i, c) in path.chars().enumerate() {
            match c != '/' && mask >> (i % 32) & 1 == 1 {
                true => encoded += &format!("%{:02x}", c as u32),
                false => encoded.push(c),
            }
        }
        let (mount, end) = all.find(None, path.as_bytes()).unwrap();
        let (other, other_end) = all.find(None, encoded.as_bytes()).unwrap();
        prop_assert_eq!(mount, other);
        let spelt: Vec<u8> = Letters(&encoded.as_bytes()[..other_end]).map(|l| l.unwrap().0).collect();
        prop_assert_eq!(&spelt[..], &path.as_bytes()[..end]);
    }

    /// Whatever tricks a path has: the program behind a mount does not find another mount's path in
    /// it, however it reads that.
    #[test]
    fn no_way_leads_around(path in "/(%2[eEfF]|%61|//|[./ab%2]|[ab]/){0,12}") {
        let all = mounts(PLACES);
        let Some((mount, end)) = all.find(None, path.as_bytes()) else { return Ok(()) };
        prop_assert!(matches!(path.as_bytes().get(end), None | Some(b'/')));
        if let Some(clean) = path::clean(path.as_bytes()) {
            let read = all.first(None, |place| lies_under(&clean, place));
            prop_assert_eq!(read.map(|found| found.0), Some(mount));
        }
        let decoded: Vec<u8> = Letters(path.as_bytes()).map_while(|l| Some(l?.0)).collect();
        let again = all.first(None, |place| lies_under(&decoded, place));
        prop_assert!(again.is_some_and(|(other, _)| other == mount) || decoded.len() < path.len(),
                     "{path}");
    }
}
