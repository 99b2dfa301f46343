//! The environment of a server: the caller's, without the caller's Bundler, with the lab's.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

/// Variables that Bundler sets for what it runs. It keeps what they were before.
const BUNDLERS: &[&str] = &[
    "BUNDLE_BIN_PATH",
    "BUNDLE_GEMFILE",
    "BUNDLER_SETUP",
    "BUNDLER_VERSION",
    "GEM_HOME",
    "GEM_PATH",
    "MANPATH",
    "RB_USER_INSTALL",
    "RUBYLIB",
    "RUBYOPT",
];
const KEPT: &str = "BUNDLER_ORIG_";
const WAS_NOTHING: &str = "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL";
const SETUP: &str = "-rbundler/setup";

/// What differs from the caller's environment: a value, or None for what is taken away.
pub type Changes = BTreeMap<String, Option<String>>;

/// The changes for a server that gets `own`; under Bundler if there is a Gemfile.
pub fn changes(own: &BTreeMap<String, String>, gemfile: Option<&Path>) -> Changes {
    from(&env::vars().collect(), own, gemfile)
}

fn from(
    caller: &BTreeMap<String, String>,
    own: &BTreeMap<String, String>,
    gemfile: Option<&Path>,
) -> Changes {
    let mut changes = Changes::new();
    for name in caller.keys().filter(|name| name.starts_with("BUNDLE")) {
        changes.insert(name.clone(), None);
    }
    for name in BUNDLERS {
        if let Some(before) = caller.get(&format!("{KEPT}{name}")) {
            changes.insert((*name).into(), (before != WAS_NOTHING).then(|| before.clone()));
        }
    }
    // Someone else's Gemfile, or Bundler in an unusual place: the library must not come back.
    changes.insert("BUNDLE_GEMFILE".into(), gemfile.map(|its| its.to_string_lossy().into_owned()));
    let before = changes.get("RUBYOPT").cloned().unwrap_or_else(|| caller.get("RUBYOPT").cloned());
    let options = before.unwrap_or_default();
    let options = options.split_whitespace().filter(|its| !its.ends_with("bundler/setup"));
    let setup = gemfile.map(|_| SETUP);
    let options = setup.into_iter().chain(options).collect::<Vec<_>>().join(" ");
    changes.insert("RUBYOPT".into(), (!options.is_empty()).then_some(options));
    changes.insert("PATH".into(), Some(path(caller.get("PATH").map_or("", String::as_str))));
    for name in ["RACK_ENV", "RAILS_ENV"] {
        changes.insert(name.into(), Some("production".into()));
    }
    changes.extend(own.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
    changes
}

/// Proxies are installed where only root looks for programs.
fn path(callers: &str) -> String {
    let mut parts: Vec<&str> = callers.split(':').filter(|part| !part.is_empty()).collect();
    for part in ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"] {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(":")
}

/// A program by its name, as a server's environment finds it; or by its path.
pub fn program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|its| its.exists());
    }
    let path = path(&env::var("PATH").unwrap_or_default());
    path.split(':').map(|folder| Path::new(folder).join(name)).find(|its| its.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn the_callers_bundler_is_taken_away_and_what_was_before_comes_back() {
        let caller = map(&[
            ("BUNDLE_GEMFILE", "/other/Gemfile"),
            ("BUNDLE_PATH", "vendor"),
            ("BUNDLER_ORIG_GEM_HOME", WAS_NOTHING),
            ("GEM_HOME", "/bundlers"),
            ("BUNDLER_ORIG_RUBYLIB", "/mine"),
            ("RUBYLIB", "/bundlers:/mine"),
            ("RUBYOPT", "-W0 -r/usr/lib/ruby/bundler/setup"),
            ("HOME", "/root"),
        ]);
        let changes = from(&caller, &map(&[("RACK_ENV", "test"), ("A", "b")]), None);
        assert_eq!(changes["BUNDLE_GEMFILE"], None);
        assert_eq!(changes["BUNDLE_PATH"], None);
        assert_eq!(changes["GEM_HOME"], None);
        assert_eq!(changes["RUBYLIB"].as_deref(), Some("/mine"));
        assert_eq!(changes["RUBYOPT"].as_deref(), Some("-W0"));
        assert_eq!(changes["RACK_ENV"].as_deref(), Some("test"));
        assert_eq!(changes["RAILS_ENV"].as_deref(), Some("production"));
        assert_eq!(changes["A"].as_deref(), Some("b"));
        assert!(!changes.contains_key("HOME"));
    }

    #[test]
    fn a_gem_home_that_is_not_bundlers_stays() {
        let caller = map(&[("GEM_HOME", "/mine"), ("RUBYOPT", "--yjit"), ("PATH", "/x:/sbin")]);
        let changes = from(&caller, &map(&[]), Some(Path::new("/app/Gemfile")));
        assert!(!changes.contains_key("GEM_HOME"));
        assert_eq!(changes["RUBYOPT"].as_deref(), Some("-rbundler/setup --yjit"));
        assert_eq!(changes["BUNDLE_GEMFILE"].as_deref(), Some("/app/Gemfile"));
        let path = changes["PATH"].as_deref();
        assert_eq!(path, Some("/x:/sbin:/usr/local/sbin:/usr/sbin:/usr/bin:/bin"));
    }

    #[test]
    fn finds_programs_by_name_and_by_path() {
        assert!(program("sh").is_some());
        assert!(program("/bin/sh").is_some());
        assert_eq!(program("no-such-program"), None);
        assert_eq!(program("/no/such/program"), None);
    }
}
