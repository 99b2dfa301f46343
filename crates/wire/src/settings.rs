//! The one table of options. The command line, the Ruby configuration file and the documentation
//! all come from it.

mod address;
mod table;

pub use address::{Address, Door, Socket};
pub use table::{GROUPS, Group, MOUNT_WORDS, all};
use table::{OF_MOUNT, PLAIN};

/// What an option's value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text without control characters.
    Text,
    /// A file's path.
    Path,
    /// What `Address` reads: `tcp://HOST:PORT`, `unix://PATH` and other doors'.
    Address,
    /// Such an address of HTTP that other machines cannot reach: a unix socket, or TCP on a loopback
    /// address.
    Local,
    /// A whole number within bounds.
    Count {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// What `Socket` reads: `unix:PATH` or `HOST:PORT`.
    Socket,
    /// A duration in seconds, fractions allowed.
    Seconds,
    /// On or off; on the command line its name alone means on.
    Flag,
    /// A number of bytes; `k`, `m` and `g` behind it mean KiB, MiB and GiB.
    Bytes,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Permissions of a file in octal, such as `0660`.
    Mode,
    /// An IP address, a network such as `10.0.0.0/8`, or `unix` for every client of a unix socket.
    Network,
}

/// What holds when nobody says anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// No value.
    None,
    /// This value.
    Fixed(&'static str),
    /// Found out at start, in these words.
    Found(&'static str),
}

/// Who may set an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Command line and configuration file.
    Anywhere,
    /// The command line alone.
    CommandLine,
}

/// Whose an option is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The server's: there is one value.
    Server,
    /// Each mount's: what is said beside them holds for all that do not say otherwise.
    Mount,
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// As the configuration file writes it; the command line has `-` for `_`.
    pub name: &'static str,
    /// The one-letter form.
    pub short: Option<char>,
    /// How help names the value.
    pub metavar: &'static str,
    /// Other names that mean the same: those of Rhebok that are no mere spelling of ours.
    pub also: &'static [&'static str],
    /// One sentence.
    pub doc: &'static str,
    /// What a value must be.
    pub kind: Kind,
    /// What holds otherwise.
    pub fallback: Fallback,
    /// May be given several times.
    pub repeatable: bool,
    /// Who may set it.
    pub place: Place,
    /// Whose it is.
    pub scope: Scope,
}

/// Workers times threads may not be more than this: two generations must fit beside each other.
pub const SEATS_PER_GENERATION: u32 = crate::SEATS as u32 / 2;

/// The option of this name, with `_` or `-`.
pub fn find(name: &str) -> Option<&'static Setting> {
    let name = name.replace('-', "_");
    all().find(|setting| setting.name == name || setting.also.contains(&&*name))
}

/// What may be said in a mount by this name, with `_` or `-`: a word of its own or an option.
pub fn find_in_mount(name: &str) -> Option<&'static Setting> {
    let plain = name.replace('-', "_");
    let word = MOUNT_WORDS.iter().find(|setting| setting.name == plain);
    word.or_else(|| find(name).filter(|setting| setting.scope == Scope::Mount))
}

/// A checked value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text, path or address.
    Text(String),
    /// A whole number.
    Count(u32),
    /// Seconds.
    Seconds(f64),
    /// On or off.
    Flag(bool),
    /// Bytes.
    Bytes(u64),
}

impl Setting {
    /// The option as the command line writes it, without dashes in front.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Reads a value, or says in one line what is wrong with it.
    pub fn check(&self, text: &str) -> Result<Value, String> {
        let wrong = |what: &str| Err(format!("{}: {text:?} is not {what}", self.name));
        match self.kind {
            Kind::Text | Kind::Path if text.is_empty() => wrong("a value: it is empty"),
            Kind::Text | Kind::Path if text.contains(char::is_control) => {
                wrong("plain text: it contains control characters")
            }
            Kind::Text | Kind::Path => Ok(Value::Text(text.into())),
            Kind::Address => match Address::parse(text) {
                Ok(_) => Ok(Value::Text(text.into())),
                Err(why) => Err(format!("{}: {why}", self.name)),
            },
            Kind::Socket if Socket::parse(text).is_some() => Ok(Value::Text(text.into())),
            Kind::Socket => wrong("a socket: write unix:PATH or HOST:PORT"),
            Kind::Local => match Address::parse(text) {
                Ok(address) if address.is_local() => Ok(Value::Text(text.into())),
                _ => wrong(
                    "an address of this machine alone: write unix://PATH, tcp://127.0.0.1:PORT or \
                     tcp://[::1]:PORT",
                ),
            },
            Kind::Count { min, max } => match text.parse() {
                Ok(n) if (min..=max).contains(&n) => Ok(Value::Count(n)),
                _ => wrong(&format!("a number from {min} to {max}")),
            },
            Kind::Seconds => match text.parse::<f64>() {
                Ok(s) if (0.0..=86_400.0).contains(&s) => Ok(Value::Seconds(s)),
                _ => wrong("a number of seconds from 0 to 86400"),
            },
            Kind::Flag => match &*text.to_ascii_lowercase() {
                "true" | "yes" | "on" | "1" => Ok(Value::Flag(true)),
                "false" | "no" | "off" | "0" => Ok(Value::Flag(false)),
                _ => wrong("true or false"),
            },
            Kind::Bytes => match bytes(text) {
                Some(count) => Ok(Value::Bytes(count)),
                None => wrong("a number of bytes such as 4096, 64k, 10m or 1g"),
            },
            Kind::Choice(words) if words.contains(&text) => Ok(Value::Text(text.into())),
            Kind::Choice(words) => wrong(&format!("one of {}", words.join(", "))),
            Kind::Mode => match u32::from_str_radix(text, 8) {
                Ok(mode) if mode <= 0o777 => Ok(Value::Count(mode)),
                _ => wrong("a mode in octal, such as 0660"),
            },
            Kind::Network if text == "unix" || network(text).is_some() => {
                Ok(Value::Text(text.into()))
            }
            Kind::Network => wrong("an IP address, a network such as 10.0.0.0/8, or unix"),
        }
    }
}

fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|count| *count <= 1 << 40)
}

/// Address and prefix length of a network; a bare address is a network of one.
pub fn network(text: &str) -> Option<(std::net::IpAddr, u8)> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: std::net::IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let prefix = prefix.unwrap_or(longest);
    (prefix <= longest).then_some((address, prefix))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_fixed_fallback_passes_its_own_check() {
        for setting in all().chain(MOUNT_WORDS) {
            if let Fallback::Fixed(text) = setting.fallback {
                assert!(setting.check(text).is_ok(), "{}", setting.name);
            }
        }
    }

    #[test]
    fn names_and_letters_are_unique() {
        for (i, one) in all().enumerate() {
            for other in all().skip(i + 1) {
                assert_ne!(one.name, other.name);
                assert!(!one.also.contains(&other.name) && !other.also.contains(&one.name));
                assert!(one.short.is_none() || one.short != other.short, "{}", one.name);
            }
        }
        assert_eq!(find("front-threads").map(|s| s.name), Some("front_threads"));
        assert!(find("frontthreads").is_none());
        assert_eq!(find_in_mount("max-workers").map(|s| s.name), Some("workers"));
        assert!(find_in_mount("path").is_some_and(|s| s.kind == Kind::Text));
        assert!(find_in_mount("bind").is_none());
        assert_eq!(find("max_workers").map(|s| s.name), Some("workers"));
        assert_eq!(find("reuseport").map(|s| s.name), Some("reuse_port"));
    }

    #[test]
    fn bytes_words_and_networks() {
        let limit = find("body_limit").unwrap();
        assert_eq!(limit.check("64k"), Ok(Value::Bytes(65536)));
        assert_eq!(limit.check("2G"), Ok(Value::Bytes(2 << 30)));
        for wrong in ["", "k", "-1", "1kb", "1.5m", "99999999999g"] {
            assert!(limit.check(wrong).is_err(), "{wrong}");
        }
        let format = find("access_log_format").unwrap();
        assert!(format.check("json").is_ok());
        assert!(format.check("xml").unwrap_err().ends_with("one of common, combined, json, ltsv"));
        let trusted = find("trusted_proxies").unwrap();
        for right in ["unix", "127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8"] {
            assert!(trusted.check(right).is_ok(), "{right}");
        }
        for wrong in ["", "10.0.0/8", "10.0.0.0/33", "::1/129", "here"] {
            assert!(trusted.check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn modes_are_octal() {
        let mode = find("socket_mode").unwrap();
        assert_eq!(mode.check("0660"), Ok(Value::Count(0o660)));
        assert!(mode.check("rw").is_err() && mode.check("1777").is_err());
    }

    #[test]
    fn checks_say_what_they_want() {
        let workers = find("workers").unwrap();
        assert_eq!(workers.check("3"), Ok(Value::Count(3)));
        assert_eq!(workers.check("0"), Err("workers: \"0\" is not a number from 1 to 512".into()));
        assert!(find("shutdown_timeout").unwrap().check("NaN").is_err());
        let flag = find("retry_idempotent").unwrap();
        for (text, value) in [("true", true), ("Yes", true), ("1", true), ("NO", false)] {
            assert_eq!(flag.check(text), Ok(Value::Flag(value)));
        }
        assert!(flag.check("maybe").is_err());
        assert!(find("environment").unwrap().check("a\nb").is_err());
    }
}
