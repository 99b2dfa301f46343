//! The one table of options. The command line, the Ruby configuration file and the documentation
//! all come from it.

use std::fmt;

/// What an option's value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text without control characters.
    Text,
    /// A file's path.
    Path,
    /// `tcp://HOST:PORT` or `unix://PATH`.
    Address,
    /// A whole number within bounds.
    Count {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// A duration in seconds, fractions allowed.
    Seconds,
    /// On or off; on the command line its name alone means on.
    Flag,
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

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// As the configuration file writes it; the command line has `-` for `_`.
    pub name: &'static str,
    /// The one-letter form.
    pub short: Option<char>,
    /// How help names the value.
    pub metavar: &'static str,
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
}

const PLAIN: Setting = Setting {
    name: "",
    short: None,
    metavar: "N",
    doc: "",
    kind: Kind::Text,
    fallback: Fallback::None,
    repeatable: false,
    place: Place::Anywhere,
};

/// Workers times threads may not be more than this: two generations must fit beside each other.
pub const SEATS_PER_GENERATION: u32 = crate::SEATS as u32 / 2;

/// Every option there is.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "bind",
        short: Some('b'),
        metavar: "ADDRESS",
        doc: "Listen on tcp://HOST:PORT or unix://PATH; may be given several times",
        kind: Kind::Address,
        fallback: Fallback::Fixed("tcp://127.0.0.1:9292"),
        repeatable: true,
        ..PLAIN
    },
    Setting {
        name: "port",
        short: Some('p'),
        metavar: "PORT",
        doc: "Listen on this port of 127.0.0.1, short for -b tcp://127.0.0.1:PORT",
        kind: Kind::Count { min: 0, max: 65535 },
        ..PLAIN
    },
    Setting {
        name: "workers",
        short: Some('w'),
        doc: "Worker processes",
        kind: Kind::Count { min: 1, max: SEATS_PER_GENERATION },
        fallback: Fallback::Found("as many as there are cores, at least 2"),
        ..PLAIN
    },
    Setting {
        name: "threads",
        short: Some('t'),
        doc: "Threads of each worker, that is requests it runs at once",
        kind: Kind::Count { min: 1, max: 64 },
        fallback: Fallback::Fixed("1"),
        ..PLAIN
    },
    Setting {
        name: "environment",
        short: Some('e'),
        metavar: "NAME",
        doc: "Rack environment",
        fallback: Fallback::Found("RACK_ENV, else development"),
        ..PLAIN
    },
    Setting {
        name: "config",
        short: Some('C'),
        metavar: "FILE",
        doc: "Ruby configuration file; the command line wins over it",
        kind: Kind::Path,
        place: Place::CommandLine,
        ..PLAIN
    },
    Setting {
        name: "front_threads",
        doc: "Threads of the front, which holds the clients' connections",
        kind: Kind::Count { min: 1, max: crate::FRONTS as u32 },
        fallback: Fallback::Found("one for every four cores, at least 1"),
        ..PLAIN
    },
    Setting {
        name: "backlog",
        doc: "Connections the kernel holds for each listener until they are accepted",
        kind: Kind::Count { min: 1, max: 65535 },
        fallback: Fallback::Fixed("1024"),
        ..PLAIN
    },
    Setting {
        name: "queue_timeout",
        metavar: "SECONDS",
        doc: "How long a request may wait in the queue before it is answered with 503; 0: for ever",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("0"),
        ..PLAIN
    },
    Setting {
        name: "shutdown_timeout",
        metavar: "SECONDS",
        doc: "How long running requests may take to finish before their worker is killed",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("30"),
        ..PLAIN
    },
    Setting {
        name: "retry_idempotent",
        metavar: "BOOL",
        doc: "Run a GET, HEAD or OPTIONS request again when its worker died before replying",
        kind: Kind::Flag,
        fallback: Fallback::Fixed("false"),
        ..PLAIN
    },
];

/// The option of this name, with `_` or `-`.
pub fn find(name: &str) -> Option<&'static Setting> {
    let name = name.replace('-', "_");
    SETTINGS.iter().find(|setting| setting.name == name)
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
}

/// Where a listener is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host (a name or an address, IPv6 without its brackets) and port.
    Tcp(String, u16),
    /// A socket file.
    Unix(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "tcp://{host}:{port}"),
            Address::Unix(path) => write!(f, "unix://{path}"),
        }
    }
}

impl Address {
    /// Reads `tcp://HOST:PORT`, `unix://PATH`, and a bare `HOST:PORT`.
    pub fn parse(text: &str) -> Result<Address, String> {
        let refuse = || {
            format!(
                "{text:?} is no address: write tcp://HOST:PORT, tcp://[::1]:PORT or unix://PATH"
            )
        };
        if let Some(path) = text.strip_prefix("unix://") {
            return if path.is_empty() { Err(refuse()) } else { Ok(Address::Unix(path.into())) };
        }
        let rest = text.strip_prefix("tcp://").unwrap_or(text);
        let (host, port) = rest.rsplit_once(':').ok_or_else(refuse)?;
        let port = port.parse().map_err(|_| refuse())?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match bare {
            Some(host) if host.parse::<std::net::Ipv6Addr>().is_ok() => {
                Ok(Address::Tcp(host.into(), port))
            }
            None if !host.is_empty() && !host.contains([':', '/', '[', ']']) => {
                Ok(Address::Tcp(host.into(), port))
            }
            _ => Err(refuse()),
        }
    }
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
            Kind::Count { min, max } => match text.parse() {
                Ok(n) if (min..=max).contains(&n) => Ok(Value::Count(n)),
                _ => wrong(&format!("a number from {min} to {max}")),
            },
            Kind::Seconds => match text.parse::<f64>() {
                Ok(s) if (0.0..=86_400.0).contains(&s) => Ok(Value::Seconds(s)),
                _ => wrong("a number of seconds from 0 to 86400"),
            },
            Kind::Flag => match text {
                "true" => Ok(Value::Flag(true)),
                "false" => Ok(Value::Flag(false)),
                _ => wrong("true or false"),
            },
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_fixed_fallback_passes_its_own_check() {
        for setting in SETTINGS {
            if let Fallback::Fixed(text) = setting.fallback {
                assert!(setting.check(text).is_ok(), "{}", setting.name);
            }
        }
    }

    #[test]
    fn names_and_letters_are_unique() {
        for (i, one) in SETTINGS.iter().enumerate() {
            for other in &SETTINGS[i + 1..] {
                assert_ne!(one.name, other.name);
                assert!(one.short.is_none() || one.short != other.short, "{}", one.name);
            }
        }
        assert_eq!(find("front-threads").map(|s| s.name), Some("front_threads"));
        assert!(find("frontthreads").is_none());
    }

    #[test]
    fn addresses() {
        let tcp = |host: &str, port| Ok(Address::Tcp(host.into(), port));
        assert_eq!(Address::parse("tcp://127.0.0.1:9292"), tcp("127.0.0.1", 9292));
        assert_eq!(Address::parse("tcp://[::1]:80"), tcp("::1", 80));
        assert_eq!(Address::parse("localhost:0"), tcp("localhost", 0));
        assert_eq!(Address::parse("unix:///run/a.sock"), Ok(Address::Unix("/run/a.sock".into())));
        assert_eq!(Address::Tcp("::1".into(), 80).to_string(), "tcp://[::1]:80");
        for wrong in ["", "9292", "tcp://:80", "tcp://::1:80", "tcp://a:b", "unix://", "http://a:1"]
        {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn checks_say_what_they_want() {
        let workers = find("workers").unwrap();
        assert_eq!(workers.check("3"), Ok(Value::Count(3)));
        assert_eq!(workers.check("0"), Err("workers: \"0\" is not a number from 1 to 512".into()));
        assert!(find("shutdown_timeout").unwrap().check("NaN").is_err());
        assert!(find("retry_idempotent").unwrap().check("yes").is_err());
        assert!(find("environment").unwrap().check("a\nb").is_err());
    }
}
