//! Where a mount lies and what it is called: host, path, name.

use super::mount::Mount;
use crate::declared::Declared;
use std::collections::BTreeMap;

/// The path of requests it gets, without a slash at its end.
pub(super) fn path(declared: &Declared) -> Result<String, String> {
    let Some(given) = declared.word("path") else {
        return Err(declared.blame("it has no path: write path = \"/shop\""));
    };
    let text = &given.text;
    let usual = |c: char| c.is_ascii_graphic() && !"?#%\\".contains(c);
    let upward = text.split('/').any(|step| step == "." || step == "..");
    if text.starts_with('/') && !text.contains("//") && text.chars().all(usual) && !upward {
        return Ok(text.trim_end_matches('/').into());
    }
    Err(given.blame(&format!("mount: {text:?} is not a path such as /shop")))
}

/// The hosts it answers for, in small letters.
pub(super) fn hosts(declared: &Declared) -> Result<Vec<String>, String> {
    let mut hosts = Vec::new();
    for given in declared.words("host") {
        let host = given.text.to_ascii_lowercase();
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let label = |part: &str| {
            let usual = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            !part.is_empty() && part.chars().all(usual)
        };
        let address = name.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        let right = match address {
            Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok() && name == host,
            None => name.split('.').all(label),
        };
        if !right {
            let why = format!(
                "host: {:?} is not a host such as shop.example or *.example, without a port",
                given.text
            );
            return Err(given.blame(&format!("mount {}: {why}", declared.shown())));
        }
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    Ok(hosts)
}

/// What it is called.
pub(super) fn name(declared: &Declared, path: &str) -> Result<String, String> {
    let Some(given) = declared.word("name") else { return Ok(name_of(path)) };
    let text = &given.text;
    let usual = text.chars().all(|c| c.is_ascii_graphic()) && !text.starts_with(['/', '-']);
    if usual {
        Ok(text.clone())
    } else {
        Err(given.blame(&format!(
        "mount {}: name: {text:?} is not a word such as shop, without blanks and not beginning with / or -",
        declared.shown()
    )))
    }
}

/// The name of a mount that nobody has named.
pub fn name_of(path: &str) -> String {
    path.strip_prefix('/').filter(|name| !name.is_empty()).unwrap_or("/").into()
}

/// Refuses two mounts at one place, and two of one name.
pub(super) fn unique(mounts: &[Mount], declared: &[Declared]) -> Result<(), String> {
    let mut places: BTreeMap<(&str, &str), &Declared> = BTreeMap::new();
    let mut names: BTreeMap<&str, &Declared> = BTreeMap::new();
    for (mount, said) in mounts.iter().zip(declared) {
        let anywhere = mount.hosts.is_empty().then_some("");
        for host in mount.hosts.iter().map(String::as_str).chain(anywhere) {
            if let Some(first) = places.insert((host, &mount.path), said) {
                let of = if host.is_empty() { String::new() } else { format!(" of {host}") };
                return Err(said.blame(&format!(
                    "there is a mount there{of} already ({}): give one of them another path or host",
                    first.origin
                )));
            }
        }
        if let Some(first) = names.insert(&mount.name, said) {
            return Err(said.blame(&format!(
                "another mount is called {} already ({}): give one of them a name of its own",
                mount.name, first.origin
            )));
        }
    }
    Ok(())
}
