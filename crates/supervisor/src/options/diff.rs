//! What is different between the settings of a running server and those it is to go on with.

use super::{Mount, Serves, Settings};
use serde_json::Value;
use std::mem::discriminant;

/// What a running server can do about it. Mounts are the same if they have the same name and serve
/// the same kind of thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Mounts to begin, as indices into the new settings' mounts.
    pub new: Vec<usize>,
    /// Mounts to end, by name. One that serves another kind of thing is gone and new.
    pub gone: Vec<String>,
    /// Mounts that stay and differ.
    pub changed: Vec<Changed>,
}

/// What differs in a mount that stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Its name.
    pub name: String,
    /// Where it stands among the new settings' mounts.
    pub index: usize,
    /// What its mold and workers are told: it needs a new generation.
    pub restart: bool,
    /// The number of its workers.
    pub scale: bool,
    /// What the front is told of it.
    pub front: bool,
    /// What the supervisor alone goes by: intervals, limits and watched files.
    pub rules: bool,
}

impl Changes {
    /// Nothing is different.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.gone.is_empty() && self.changed.is_empty()
    }
}

/// Compares. An error, in one line, names what a running server cannot change.
pub fn diff(old: &Settings, new: &Settings) -> Result<Changes, String> {
    let fixed = of_server(old, new);
    if !fixed.is_empty() {
        return Err(format!(
            "{} changed, which needs a restart of the whole server",
            listed(&fixed)
        ));
    }
    let stays = |one: &Mount, other: &Mount| {
        one.name == other.name && discriminant(&one.serves) == discriminant(&other.serves)
    };
    let mut changes = Changes::default();
    for mount in &old.mounts {
        if !new.mounts.iter().any(|other| stays(mount, other)) {
            changes.gone.push(mount.name.clone());
        }
    }
    for (index, mount) in new.mounts.iter().enumerate() {
        match old.mounts.iter().find(|before| stays(before, mount)) {
            None => changes.new.push(index),
            Some(before) if before == mount => {}
            Some(before) => changes.changed.push(of_mount(before, mount, index)),
        }
    }
    Ok(changes)
}

/// `a, b and c have`, `a has`.
fn listed(names: &[String]) -> String {
    match names {
        [one] => format!("{one} has"),
        [first @ .., last] => format!("{} and {last} have", first.join(", ")),
        [] => String::new(),
    }
}

/// The server's own settings that differ, by name.
fn of_server(old: &Settings, new: &Settings) -> Vec<String> {
    let (here, there) = (&old.process, &new.process);
    let same = [
        ("bind", old.binds == new.binds),
        ("backlog", old.listening.backlog == new.listening.backlog),
        ("reuse_port", old.listening.reuse_port == new.listening.reuse_port),
        ("defer_accept", old.listening.defer_accept == new.listening.defer_accept),
        ("socket_mode", old.listening.socket_mode == new.listening.socket_mode),
        ("front_threads", old.front_threads == new.front_threads),
        ("shutdown_timeout", old.shutdown_timeout == new.shutdown_timeout),
        ("control", here.control == there.control),
        ("pid_file", here.pid_file == there.pid_file),
        ("daemonize", here.daemonize == there.daemonize),
        ("user", here.user == there.user),
        ("group", here.group == there.group),
        ("chdir", here.chdir == there.chdir),
        ("idle_timeout", here.idle_timeout == there.idle_timeout),
        ("hup_action", old.hup_action == new.hup_action),
        ("error_log", old.error_log == new.error_log),
        ("error_log_format", old.error_log_format == new.error_log_format),
    ];
    let mut names: Vec<String> =
        same.iter().filter(|(_, same)| !same).map(|(name, _)| (*name).to_owned()).collect();
    // The front's go by the options' names.
    let front = |settings: &Settings| serde_json::to_value(&settings.front).unwrap_or_default();
    if let (Value::Object(before), Value::Object(after)) = (front(old), front(new)) {
        names.extend(before.into_iter().filter(|(k, v)| after.get(k) != Some(v)).map(|(k, _)| k));
    }
    names
}

fn of_mount(before: &Mount, after: &Mount, index: usize) -> Changed {
    let front = |mount: &Mount| {
        let proxy = matches!(mount.serves, Serves::Proxy { .. }).then(|| mount.serves.clone());
        (mount.hosts.clone(), mount.path.clone(), mount.declared, mount.front, proxy)
    };
    let rules = |mount: &Mount| {
        let recycling = mount.recycling;
        let intervals = [mount.spawn_interval, mount.err_respawn_interval, recycling.max_age];
        let ends = [mount.start_timeout, mount.rollback_window];
        let requests = [recycling.max_requests, recycling.min_requests];
        let memory = [recycling.max_rss, recycling.max_pss];
        (intervals, ends, requests, memory, mount.watch.clone())
    };
    // Whatever is none of the above: a setting that is added later restarts until it is named here.
    let rest = Mount {
        workers: before.workers,
        hosts: before.hosts.clone(),
        front: before.front,
        declared: before.declared,
        spawn_interval: before.spawn_interval,
        err_respawn_interval: before.err_respawn_interval,
        start_timeout: before.start_timeout,
        rollback_window: before.rollback_window,
        recycling: before.recycling,
        watch: before.watch.clone(),
        ..after.clone()
    };
    Changed {
        name: after.name.clone(),
        index,
        restart: matches!(after.serves, Serves::App { .. }) && rest != *before,
        scale: before.workers != after.workers,
        front: front(before) != front(after),
        rules: rules(before) != rules(after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declared::Declared;
    use crate::layers::{Layer, Origin, given};
    use crate::options::resolve;
    use std::path::Path;
    use wire::settings::{find, find_in_mount};

    type Words<'a> = &'a [(&'a str, &'a str)];

    /// The first word of a mount is its path and its file.
    fn settings(top: Words, mounts: &[Words]) -> Settings {
        let said = |text: &str| given([text.into()], &Origin::CommandLine);
        let layer: Layer =
            top.iter().map(|(name, text)| (find(name).unwrap().name, said(text))).collect();
        let mounts: Vec<Declared> = (mounts.iter())
            .map(|words| {
                let mut words = words.iter();
                let (path, file) = words.next().unwrap();
                let mut one = Declared::app(&Origin::CommandLine, path, Path::new(file));
                if file.contains(':') {
                    one.said.remove("rackup");
                    one.said.insert("proxy", said(file));
                }
                one.said.extend(words.map(|(k, v)| (find_in_mount(k).unwrap().name, said(v))));
                one
            })
            .collect();
        resolve(&[layer], &mounts).unwrap()
    }

    #[test]
    fn the_same_is_no_change() {
        let same = || settings(&[("workers", "2")], &[&[("/a", "a.ru")], &[("/", "unix:/b")]]);
        assert!(diff(&same(), &same()).unwrap().is_empty());
        assert!(diff(&settings(&[], &[]), &settings(&[], &[])).unwrap().is_empty());
    }

    #[test]
    fn mounts_come_and_go() {
        let old = settings(&[], &[&[("/a", "a.ru")], &[("/b", "b.ru")], &[("/c", "c.ru")]]);
        let new = settings(&[], &[&[("/d", "d.ru")], &[("/b", "b.ru")], &[("/c", "unix:/c")]]);
        let changes = diff(&old, &new).unwrap();
        assert_eq!((changes.new, changes.gone), (vec![0, 2], vec!["a".into(), "c".into()]));
        assert_eq!(changes.changed, []);
    }

    #[test]
    fn what_each_setting_needs() {
        let with = |word: (&str, &str)| {
            let old = settings(&[], &[&[("/a", "a.ru")]]);
            let new = settings(&[], &[&[("/a", "a.ru"), word]]);
            let mut changed = diff(&old, &new).unwrap().changed;
            let one = changed.pop().unwrap();
            assert_eq!((changed.len(), one.name, one.index), (0, "a".into(), 0));
            [one.restart, one.scale, one.front, one.rules]
        };
        let (restart, scale) = ([true, false, false, false], [false, true, false, false]);
        let (front, rules) = ([false, false, true, false], [false, false, false, true]);
        for (name, text) in [
            ("environment", "x"),
            ("isolation", "fresh"),
            ("weight", "7"),
            ("limit_files", "9"),
            ("user", "nobody"),
            ("chdir", "/tmp"),
            ("rackup", "b.ru"),
        ] {
            assert_eq!(with((name, text)), restart, "{name}");
        }
        assert_eq!(with(("workers", "300")), scale);
        // A proxy's are the front's to keep.
        for (name, text) in [("request_timeout", "5"), ("retry_idempotent", "yes")] {
            assert_eq!(with((name, text)), [true, false, true, false], "{name}");
        }
        for (name, text) in [("host", "x.example"), ("queue_timeout", "3"), ("body_limit", "1")] {
            assert_eq!(with((name, text)), front, "{name}");
        }
        for (name, text) in [("max_requests", "3"), ("watch", "x"), ("rollback_window", "1")] {
            assert_eq!(with((name, text)), rules, "{name}");
        }
        let moved = settings(&[], &[&[("/b", "a.ru"), ("name", "a")]]);
        let changes = diff(&settings(&[], &[&[("/a", "a.ru")]]), &moved).unwrap();
        assert!(changes.changed[0].restart && changes.changed[0].front);
        // What is said for all changes each.
        let both = |top: Words| settings(top, &[&[("/a", "a.ru")], &[("/b", "b.ru")]]);
        assert_eq!(diff(&both(&[]), &both(&[("environment", "x")])).unwrap().changed.len(), 2);
    }

    #[test]
    fn a_proxy_tells_the_front_alone() {
        let of = |words: Words| settings(&[], &[words]);
        let changes = diff(&of(&[("/", "unix:/a")]), &of(&[("/", "unix:/b"), ("max", "4")]));
        let changed = &changes.unwrap().changed[0];
        assert!(changed.front && !changed.restart && !changed.scale && !changed.rules);
    }

    #[test]
    fn what_the_server_cannot_change_is_named() {
        let new = settings(
            &[("bind", "unix:///a"), ("backlog", "9"), ("head_limit", "9k"), ("workers", "9")],
            &[],
        );
        assert_eq!(
            diff(&settings(&[], &[]), &new).unwrap_err(),
            "bind, backlog and head_limit have changed, which needs a restart of the whole server"
        );
        let user = diff(&settings(&[], &[]), &settings(&[("user", "nobody")], &[]));
        assert!(user.unwrap_err().starts_with("user has changed"));
    }
}
