//! The rules of `door` at a connection: its bytes are scanned as they are read, its heads judged
//! before anything is done for them.

use crate::here;
use crate::peer::Peer;
use door::Fault;
use door::forwarded::{self, Claims, Field, Trust};
use door::host::Authority;
use hyper::http::request::Parts;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wire::control::MountId;
use wire::settings::network;

/// What the scan of a connection's bytes has to say to those who answer its requests.
#[derive(Default)]
pub struct Watch {
    requests: AtomicU64,
    /// The request's number and its fault.
    found: OnceLock<(u64, Fault)>,
}

impl Watch {
    /// Another request has come from the HTTP library: its number.
    pub fn next(&self) -> u64 {
        self.requests.fetch_add(1, Relaxed) + 1
    }

    /// A request's bytes have a fault; they are the last that counts.
    pub fn note(&self, number: u64, fault: Fault) {
        let _ = self.found.set((number, fault));
    }

    /// What is wrong with any of the bytes that have been read.
    pub fn fault(&self) -> Option<Fault> {
        self.found.get().map(|(_, fault)| *fault)
    }

    /// What is wrong with the bytes of this request, as far as they have been read.
    pub fn check(&self, number: u64) -> Result<(), Fault> {
        match self.found.get() {
            Some((at, fault)) if *at <= number => Err(*fault),
            _ => Ok(()),
        }
    }
}

/// The setting `trusted_proxies`.
pub fn trust() -> &'static Trust {
    static TRUST: OnceLock<Trust> = OnceLock::new();
    TRUST.get_or_init(|| {
        let declared = &here::options().trusted_proxies;
        let networks = declared.iter().filter_map(|text| network(text)).collect();
        Trust { networks, unix: declared.iter().any(|text| text == "unix") }
    })
}

/// What a connection's client may say of whom it speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Nobody is declared trusted: the app gets what was sent and judges itself.
    Unjudged,
    /// This field counts; the others would be somebody else's invention. `Neither` for clients
    /// that are not trusted.
    Taken(Field),
}

impl Word {
    /// The word of a client with this address; None is one of a unix socket.
    pub fn of(client: Option<IpAddr>) -> Word {
        let trust = trust();
        if !trust.is_declared() {
            return Word::Unjudged;
        }
        let field = match here::options().forwarded.as_str() {
            "forwarded" => Field::Forwarded,
            "none" => Field::Neither,
            _ => Field::XForwarded,
        };
        Word::Taken(if trust.covers(client) { field } else { Field::Neither })
    }

    /// Whether the app gets a header of this name.
    pub fn passes(self, name: &str) -> bool {
        match self {
            Word::Unjudged => true,
            Word::Taken(field) => field.owns(name).unwrap_or(true),
        }
    }
}

/// Whom a request is addressed to and whom it is from.
pub struct Asked<'a> {
    /// The authority, unless it is empty or missing.
    pub authority: Option<Authority<'a>>,
    /// Whether it is another than Host names.
    pub instead_of_host: bool,
    /// What trusted proxies say.
    pub claims: Claims<'a>,
}

/// Where a request goes.
pub struct Place<'a> {
    /// Its mount.
    pub mount: MountId,
    /// The part of the path that names the mount, as sent.
    pub script_name: &'a str,
    /// The rest of it.
    pub path_info: &'a str,
}

/// Judges a head.
pub fn judge<'a>(head: &'a Parts, peer: &Peer, number: u64) -> Result<Asked<'a>, Fault> {
    peer.watch.check(number)?;
    let asked = door::http::judge(&head.method, &head.uri, head.version, &head.headers)?;
    let claims = match peer.word {
        Word::Taken(field) => forwarded::read(&head.headers, field, trust()),
        Word::Unjudged => Claims::default(),
    };
    let instead_of_host = claims.host.is_some() || head.uri.authority().is_some();
    Ok(Asked { authority: claims.host.or(asked), instead_of_host, claims })
}

/// Finds the mount.
pub fn place<'a>(head: &'a Parts, asked: &Asked) -> Result<Place<'a>, Fault> {
    let path = head.uri.path();
    let host = asked.authority.as_ref().map(|authority| authority.host);
    let (mount, end) = here::route(host, path).ok_or(Fault::NotHere)?;
    let (script_name, path_info) = path.split_at(end);
    Ok(Place { mount, script_name, path_info })
}
