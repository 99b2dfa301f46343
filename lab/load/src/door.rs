//! What is spoken on a connection: HTTP as a browser does, FastCGI or SCGI as a web server does.

/// A protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Door {
    /// HTTP/1.1.
    #[default]
    Http,
    /// FastCGI 1.0, as a responder's client; one request at a time on a connection.
    FastCgi,
    /// SCGI; each request has a connection of its own.
    Scgi,
}

impl Door {
    /// All, as they are called in scenarios.
    pub const NAMES: [&str; 3] = ["http", "fastcgi", "scgi"];

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "http" => Some(Self::Http),
            "fastcgi" => Some(Self::FastCgi),
            "scgi" => Some(Self::Scgi),
            _ => None,
        }
    }

    /// The door of an address, and the same address without it (`tcp://HOST:PORT`, `unix://PATH`):
    /// `fastcgi://HOST:PORT`, `fastcgi+unix://PATH`, the same for SCGI, and the rest is HTTP.
    pub fn of(address: &str) -> (Self, String) {
        for door in [Self::FastCgi, Self::Scgi] {
            let Some(rest) = address.strip_prefix(door.name()) else { continue };
            if let Some(place) = rest.strip_prefix('+') {
                return (door, place.into());
            }
            if rest.starts_with("://") {
                return (door, format!("tcp{rest}"));
            }
        }
        (Self::Http, address.into())
    }

    /// The address of this door at `tcp://HOST:PORT` or `unix://PATH`.
    pub fn at(self, place: &str) -> String {
        match (self, place.strip_prefix("tcp")) {
            (Self::Http, _) => place.into(),
            (_, Some(rest)) => format!("{}{rest}", self.name()),
            (_, None) => format!("{}+{place}", self.name()),
        }
    }

    fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Door;

    #[test]
    fn an_address_names_its_door() {
        for (address, door, place) in [
            ("tcp://127.0.0.1:80", Door::Http, "tcp://127.0.0.1:80"),
            ("unix:///a/b", Door::Http, "unix:///a/b"),
            ("fastcgi://127.0.0.1:9000", Door::FastCgi, "tcp://127.0.0.1:9000"),
            ("fastcgi+unix:///a/b", Door::FastCgi, "unix:///a/b"),
            ("scgi://[::1]:4000", Door::Scgi, "tcp://[::1]:4000"),
            ("scgi+unix:///a", Door::Scgi, "unix:///a"),
        ] {
            assert_eq!(Door::of(address), (door, place.into()));
            assert_eq!(door.at(place), address);
        }
        assert_eq!(Door::of("scgix://a"), (Door::Http, "scgix://a".into()));
        assert!(Door::NAMES.iter().all(|name| Door::named(name).map(Door::name) == Some(*name)));
        assert_eq!(Door::named("spdy"), None);
    }
}
