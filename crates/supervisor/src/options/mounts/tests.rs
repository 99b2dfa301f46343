use super::*;
use crate::layers::given;
use wire::settings::find;

type Words<'a> = &'a [(&'a str, &'a str)];

fn layer(words: Words, origin: &Origin) -> Layer {
    let said = words.iter();
    said.map(|(name, text)| (find(name).unwrap().name, given([(*text).into()], origin))).collect()
}

/// A mount at `/a` that says this, where that is said for the whole server.
fn mount(top: Words, own: Words) -> Result<Mount, String> {
    let origin = Origin::Line("a.rb:1".into());
    let mut declared = Declared::app(&origin, "/a", Path::new("a.ru"));
    let own = own.iter();
    declared
        .said
        .extend(own.map(|(k, v)| (find_in_mount(k).unwrap().name, given([(*v).into()], &origin))));
    let layers = [layer(top, &Origin::CommandLine)];
    all(&layers, &[declared]).map(|mut mounts| mounts.remove(0))
}

#[test]
fn its_own_word_wins_over_the_command_line() {
    let one = mount(&[("workers", "3"), ("threads", "2")], &[("workers", "5")]).unwrap();
    assert_eq!((one.workers, one.threads, one.isolation), (5, 2, Isolation::Threads));
    assert_eq!((one.name.as_str(), one.path.as_str(), one.declared), ("a", "/a", true));
}

#[test]
fn a_group_belongs_to_the_user_who_is_named_with_it() {
    let top: Words = &[("user", "web"), ("group", "files")];
    let of = |own: Words| mount(top, own).map(|one| (one.user.unwrap(), one.group));
    let named = |user: &str, group: Option<&str>| Ok((user.to_owned(), group.map(String::from)));
    assert_eq!(of(&[]), named("web", Some("files")));
    assert_eq!(of(&[("user", "shop")]), named("shop", None));
    assert_eq!(of(&[("group", "shop")]), named("web", Some("shop")));
}

#[test]
fn the_directory_of_the_server_is_no_default_for_mounts() {
    assert_eq!(mount(&[("chdir", "/srv")], &[]).unwrap().chdir, None);
    assert_eq!(mount(&[], &[("chdir", "a")]).unwrap().chdir, Some("a".into()));
}

#[test]
fn what_is_said_for_all_does_not_recycle_what_is_fresh() {
    let top: Words = &[("max_requests", "9"), ("oob_gc", "yes")];
    let fresh = mount(top, &[("isolation", "fresh")]).unwrap();
    assert_eq!((fresh.recycling.max_requests, fresh.worker.oob_gc), (0, false));
    let kept = mount(top, &[]).unwrap();
    assert_eq!((kept.recycling.max_requests, kept.worker.oob_gc), (9, true));
    assert!(mount(top, &[("isolation", "fresh"), ("max_requests", "0")]).is_ok());
    let handler = [
        layer(&[("isolation", "fresh")], &Origin::CommandLine),
        layer(&[("max_requests", "1000")], &Origin::Handler("Rhebok".into())),
    ];
    assert_eq!(all(&handler, &[]).unwrap()[0].recycling.max_requests, 0);
    assert!(
        all(&[layer(&[("isolation", "fresh"), ("oob_gc", "1")], &Origin::CommandLine)], &[])
            .is_err()
    );
}

#[test]
fn a_server_without_mounts_has_one() {
    let only = all(&[layer(&[("prefix", "/app/")], &Origin::CommandLine)], &[]).unwrap();
    assert_eq!((only.len(), only[0].name.as_str(), only[0].path.as_str()), (1, "/", "/app"));
    assert!(!only[0].declared);
    assert_eq!(all(&[], &[]).unwrap()[0].name, "/");
}

#[test]
fn a_bad_pair_is_blamed_on_the_mount() {
    let error = mount(&[("request_timeout", "5")], &[("request_timeout_soft", "9")]).unwrap_err();
    assert!(error.starts_with("a.rb:1: request_timeout_soft: 9 is not less"), "{error}");
    if !cfg!(feature = "mruby") {
        let error = mount(&[], &[("engine", "mruby")]).unwrap_err();
        assert!(error.starts_with("a.rb:1: mount /a: engine is mruby, which"), "{error}");
        return;
    }
    let mruby = |word| mount(&[], &[("engine", "mruby"), word]);
    assert!(mruby(("oob_gc", "1")).unwrap_err().contains("oob_gc is for CRuby"));
    assert!(mruby(("isolation", "threads")).unwrap_err().contains("take prefork or fresh"));
    assert_eq!(mruby(("threads", "4")).unwrap().isolation, Isolation::Prefork);
}
