//! Who may import whom.

use crate::lexer;
use crate::{Complaint, File};

/// Our crates by directory and name, and which of ours each may import.
const OURS: [(&str, &str, &[&str]); 12] = [
    ("crates/wire", "wire", &[]),
    ("crates/door", "door", &[]),
    ("crates/shim", "shim", &["door"]),
    ("crates/tidy", "tidy", &[]),
    ("crates/front", "front", &["wire", "door"]),
    ("crates/worker", "worker", &["wire"]),
    ("crates/text", "text", &[]),
    ("crates/mruby", "mruby", &["worker", "wire", "text"]),
    ("ext/oribi", "oribi-ruby", &["worker", "wire"]),
    ("crates/supervisor", "oribi", &["front", "wire", "door", "mruby"]),
    // The lab knows servers by their sockets alone, this one too.
    ("lab/load", "oribi-load", &[]),
    ("lab", "oribi-lab", &["oribi-load"]),
];

/// Crates of others that belong to one of ours alone. A trailing `*` stands for anything.
const OTHERS: [(&str, &str); 7] = [
    ("tokio*", "front"),
    ("hyper*", "front"),
    ("rustls*", "front"),
    ("h2", "front"),
    ("h3*", "front"),
    ("rb-sys*", "oribi-ruby"),
    ("magnus*", "oribi-ruby"),
];

/// Checks a crate's `Cargo.toml` or one of its Rust files.
pub fn check(file: &File) -> Vec<Complaint> {
    let Some((directory, rest)) = split(&file.path) else { return Vec::new() };
    let Some((_, name, allowed)) = OURS.iter().find(|(its, ..)| *its == directory) else {
        let what = "a crate the table of crates/tidy/src/imports.rs does not know";
        return if rest == "Cargo.toml" { vec![file.complain(1, what)] } else { Vec::new() };
    };
    let imports = match rest {
        "Cargo.toml" => dependencies(&file.text),
        _ if file.is("rs") => uses(&file.text),
        _ => Vec::new(),
    };
    imports
        .into_iter()
        .filter(|(_, import)| !may_import(name, allowed, import))
        .map(|(line, import)| file.complain(line, format!("{name} must not import {import}")))
        .collect()
}

/// A path in one of the workspace's crates: the crate's directory, and the rest.
fn split(path: &str) -> Option<(&str, &str)> {
    for directory in ["ext/oribi", "lab/load", "lab"] {
        let rest = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
        if let Some(rest) = rest {
            return Some((directory, rest));
        }
    }
    let (name, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    Some((&path[.."crates/".len() + name.len()], rest))
}

fn may_import(name: &str, allowed: &[&str], import: &str) -> bool {
    let ours = OURS.iter().any(|(_, its, _)| *its == import);
    if ours {
        // A binary and its tests import their own library.
        return import == name || allowed.contains(&import);
    }
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => import.starts_with(start),
        None => import == pattern,
    };
    OTHERS.iter().all(|(pattern, owner)| !matches(pattern) || *owner == name)
}

/// The names in every table of dependencies, with their lines.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside = table.ends_with("dependencies");
            if let Some((_, name)) = table.split_once("dependencies.") {
                found.push((index + 1, name.to_owned()));
            }
        } else if inside && !line.starts_with('#') {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            if !name.is_empty() {
                found.push((index + 1, name.to_owned()));
            }
            if let Some((_, package)) = line.split_once("package = \"") {
                found.push((index + 1, package.split('"').next().unwrap_or("").to_owned()));
            }
        }
    }
    found
}

/// The crates that `use` and `extern crate` name, as they are called in manifests. A module that
/// the file itself declares is no crate.
fn uses(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut modules) = (Vec::new(), Vec::new());
    for (index, line) in lexer::lines(text).iter().enumerate() {
        let mut words = lexer::words(&line.code).skip_while(|word| ["pub", "crate"].contains(word));
        let first = words.next();
        let named = match first {
            Some("mod") => {
                modules.extend(words.next().map(|name| name.replace('_', "-")));
                None
            }
            Some("use") => words.next(),
            Some("extern") => words.next().filter(|word| *word == "crate").and(words.next()),
            _ => None,
        };
        if let Some(name) = named {
            found.push((index + 1, name.replace('_', "-")));
        }
    }
    found.retain(|(_, name)| !modules.contains(name));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&File::sample(path, text)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn manifests_are_checked() {
        let manifest = "[package]\nname = \"wire\"\n[dependencies]\n# front = 1\nrustix = \"1\"\n\
                        [target.'cfg(x)'.dependencies]\ndoor.workspace = true\n\
                        [dev-dependencies.tokio]\nversion = \"1\"\n";
        assert_eq!(
            complaints("crates/wire/Cargo.toml", manifest),
            [
                "crates/wire/Cargo.toml:7: wire must not import door",
                "crates/wire/Cargo.toml:8: wire must not import tokio",
            ]
        );
        let renamed = "[dependencies]\nrt = { package = \"tokio\", version = \"1\" }\n";
        assert_eq!(complaints("crates/worker/Cargo.toml", renamed).len(), 1);
        let fine = "[dependencies]\nwire.workspace = true\nhyper-util = \"0.1\"\n";
        assert_eq!(complaints("crates/front/Cargo.toml", fine), [""; 0]);
        assert_eq!(complaints("ext/oribi/Cargo.toml", fine).len(), 1);
        assert_eq!(complaints("crates/unknown/Cargo.toml", "").len(), 1);
    }

    #[test]
    fn roles_do_not_import_sideways() {
        let check = |path, text| complaints(path, text).len();
        assert_eq!(check("crates/worker/src/seat.rs", "use wire::Board;\nuse front::table;\n"), 1);
        assert_eq!(check("crates/supervisor/src/main.rs", "pub(crate) use worker::Seat;\n"), 1);
        assert_eq!(check("crates/supervisor/src/a/b.rs", "extern crate rb_sys;\n"), 1);
        assert_eq!(
            check("crates/front/src/http.rs", "use hyper_util::rt;\nuse wire::now_ns;\n"),
            0
        );
        assert_eq!(check("crates/worker/tests/a.rs", "use front::Front;\nmod front;\n"), 0);
        assert_eq!(check("bench/ceilings/hyper_hello/src/main.rs", "use tokio::net;\n"), 0);
    }

    #[test]
    fn the_lab_knows_no_server() {
        let check = |path, text| complaints(path, text).len();
        assert_eq!(check("lab/src/stack.rs", "use oribi_load::plan;\nuse wire::Board;\n"), 1);
        assert_eq!(check("lab/load/src/lib.rs", "use oribi_lab::results;\nuse rustix::net;\n"), 1);
        assert_eq!(check("lab/Cargo.toml", "[dependencies]\nfront = 1\ntoml = \"0.9\"\n"), 1);
        assert_eq!(check("lab/load/Cargo.toml", "[dependencies]\ntokio = \"1\"\n"), 1);
    }
}
