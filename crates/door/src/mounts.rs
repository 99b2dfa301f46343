//! Which of several mounts a request goes to: by its host, then by the longest path it lies under.
//!
//! Mounts of the very host go before those of `*.example.com`, the longer of which go before the
//! shorter, and these before mounts of any host; among those of one kind the longest path wins. Where
//! a host has no mount for a path, the next kind is asked.
//!
//! The app gets a path as it was sent, but programs do not agree on what `/a/../b`, `//b` and
//! `/a%2Fb` name. A path goes to a mount only if none of the ways to read it leads to another one:
//! who is kept out of `/admin` does not get there by another mount's app, nor the other way round.

use crate::path::{Letters, boundary};

/// Mounts by host and path. `T` names one.
#[derive(Clone, Debug)]
pub struct Mounts<T> {
    /// In the order in which they are asked.
    places: Vec<Place<T>>,
    /// The only mount there is has no path and no host.
    everything: Option<T>,
    has_hosts: bool,
}

#[derive(Clone, Debug)]
struct Place<T> {
    host: Host,
    path: String,
    mount: T,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Exactly(String),
    /// With its dot.
    EndsWith(String),
    Any,
}

impl<T> Default for Mounts<T> {
    fn default() -> Mounts<T> {
        Mounts { places: Vec::new(), everything: None, has_hosts: false }
    }
}

impl<T: Copy + PartialEq> Mounts<T> {
    /// Of each mount its name here, its hosts and its path: plain text, not percent-encoded, without
    /// a slash at its end, empty for everything. No hosts: any. Of two that say the same the first
    /// one wins.
    pub fn new<'a>(mounts: impl IntoIterator<Item = (T, &'a [String], &'a str)>) -> Mounts<T> {
        let mut places = Vec::new();
        let mut count = 0;
        for (mount, hosts, path) in mounts {
            count += 1;
            let path = path.trim_end_matches('/').to_string();
            if hosts.is_empty() {
                places.push(Place { host: Host::Any, path: path.clone(), mount });
            }
            let of = |host: &String| Place { host: Host::read(host), path: path.clone(), mount };
            places.extend(hosts.iter().map(of));
        }
        // Stable: the first of two that are alike stays before the other.
        places.sort_by_key(|place| {
            (place.host.kind(), usize::MAX - place.host.len(), usize::MAX - place.path.len())
        });
        let only = places.first().filter(|only| count == 1 && only.is_everything());
        let has_hosts = places.iter().any(|place| place.host != Host::Any);
        Mounts { everything: only.map(|only| only.mount), places, has_hosts }
    }

    /// Whether a request's host makes a difference.
    pub fn has_hosts(&self) -> bool {
        self.has_hosts
    }

    /// Where a request of this host goes whose path was sent so, and how much of the path names that
    /// place. The host is without its port.
    pub fn find(&self, host: Option<&str>, path: &[u8]) -> Option<(T, usize)> {
        if let Some(only) = self.everything {
            return matches!(path.first(), None | Some(b'/')).then_some((only, 0));
        }
        let host = host.map(|host| host.strip_suffix('.').unwrap_or(host));
        let (mount, end) = self.first(host, |place| boundary(path, place))?;
        let elsewhere = |reading: Vec<u8>| {
            let read = self.first(host, |place| lies_under(&reading, place));
            read.is_some_and(|(other, _)| other != mount)
        };
        let ambiguous =
            !means_one_thing(path) && READINGS.iter().any(|way| elsewhere(way.read(path)));
        (!ambiguous).then_some((mount, end))
    }

    /// Where a request goes that asks about the server as a whole (`OPTIONS *`): to the root's mount,
    /// or to the only one there is.
    pub fn of_server(&self, host: Option<&str>) -> Option<T> {
        let (first, others) = self.places.split_first()?;
        if others.iter().all(|place| place.mount == first.mount) {
            return Some(first.mount);
        }
        self.find(host, b"/").map(|(mount, _)| mount)
    }

    /// The first place of the host that the path lies under; `under` says where it then ends.
    fn first(
        &self,
        host: Option<&str>,
        under: impl Fn(&[u8]) -> Option<usize>,
    ) -> Option<(T, usize)> {
        let mut places = self.places.iter().filter(|place| place.host.covers(host));
        places.find_map(|place| Some((place.mount, under(place.path.as_bytes())?)))
    }
}

impl<T> Place<T> {
    fn is_everything(&self) -> bool {
        self.host == Host::Any && self.path.is_empty()
    }
}

impl Host {
    fn read(text: &str) -> Host {
        let text = text.strip_suffix('.').unwrap_or(text);
        match text.strip_prefix('*') {
            Some(end) if end.starts_with('.') => Host::EndsWith(end.to_ascii_lowercase()),
            _ => Host::Exactly(text.to_ascii_lowercase()),
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Host::Exactly(_) => 0,
            Host::EndsWith(_) => 1,
            Host::Any => 2,
        }
    }

    fn len(&self) -> usize {
        match self {
            Host::EndsWith(end) => end.len(),
            // Of these no two cover the same host.
            Host::Exactly(_) | Host::Any => 0,
        }
    }

    fn covers(&self, host: Option<&str>) -> bool {
        let Some(host) = host else { return *self == Host::Any };
        match self {
            Host::Exactly(name) => host.eq_ignore_ascii_case(name),
            Host::EndsWith(end) => host
                .len()
                .checked_sub(end.len())
                .filter(|rest| *rest > 0)
                .and_then(|rest| host.as_bytes().get(rest..))
                .is_some_and(|there| there.eq_ignore_ascii_case(end.as_bytes())),
            Host::Any => true,
        }
    }
}

/// Whether a decoded path lies under a plain one.
fn lies_under(path: &[u8], place: &[u8]) -> Option<usize> {
    let rest = path.strip_prefix(place)?;
    matches!(rest.first(), None | Some(b'/')).then_some(place.len())
}

/// Whether nobody would read the path in another way than letter by letter: no segment that is empty
/// or begins with a dot, no slash that is encoded, no encoding that is none.
fn means_one_thing(path: &[u8]) -> bool {
    let mut before = 0;
    for letter in Letters(path) {
        let Some((letter, encoded)) = letter else { return false };
        let strange = match letter {
            b'/' => encoded || before == b'/',
            b'.' => before == b'/',
            _ => false,
        };
        if strange {
            return false;
        }
        before = letter;
    }
    true
}

/// A way to read a path; dots are resolved in all of them (RFC 3986, section 5.2.4).
struct Reading {
    /// An encoded slash is one.
    slashes_decoded: bool,
    /// Slashes next to each other are one.
    slashes_merged: bool,
}

const READINGS: [Reading; 4] = {
    const fn way(slashes_decoded: bool, slashes_merged: bool) -> Reading {
        Reading { slashes_decoded, slashes_merged }
    }
    [way(false, false), way(false, true), way(true, false), way(true, true)]
};

impl Reading {
    /// The path, decoded; what climbs above the root stays there.
    fn read(&self, path: &[u8]) -> Vec<u8> {
        let mut segments: Vec<Vec<u8>> = vec![Vec::new()];
        let letters = Letters(path.strip_prefix(b"/").unwrap_or(path));
        for letter in letters {
            // What follows an encoding that is none is not read by us either.
            let Some((letter, encoded)) = letter else { break };
            let ends = letter == b'/' && (self.slashes_decoded || !encoded);
            match segments.last_mut() {
                Some(last) if !ends => last.push(letter),
                _ => segments.push(Vec::new()),
            }
        }
        let mut read: Vec<&[u8]> = Vec::new();
        let count = segments.len();
        for (index, segment) in segments.iter().enumerate() {
            let last = index + 1 == count;
            match &segment[..] {
                b"." => {}
                b".." => drop(read.pop()),
                b"" if self.slashes_merged || last => {}
                name => read.push(name),
            }
        }
        let mut path = Vec::new();
        for segment in read {
            path.push(b'/');
            path.extend_from_slice(segment);
        }
        path
    }
}

#[cfg(test)]
mod tests;
