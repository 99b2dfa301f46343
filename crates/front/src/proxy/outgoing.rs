//! A request as its backend gets it: the client's, without what belongs to the client's connection,
//! and with what the backend cannot know otherwise.

use super::reply::named_by_connection;
use crate::access_log::{self, Times};
use crate::body::Payload;
use crate::here;
use crate::options::MountOptions;
use crate::peer::Home;
use crate::rules::{Asked, Word};
use crate::spool::{Failed, Job};
use crate::stats;
use bytes::Bytes;
use door::forwarded::{Claims, Field};
use http_body::{Body, Frame, SizeHint};
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Uri, Version};
use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use wire::control::MountId;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const REQUEST_START: HeaderName = HeaderName::from_static("x-request-start");
/// Bytes of a body read from disk at a time.
const PIECE: u64 = 256 * 1024;

/// A request that can be sent, more than once if need be.
pub struct Outgoing {
    method: Method,
    target: Uri,
    headers: HeaderMap,
    payload: Payload,
    /// It may be sent twice.
    pub idempotent: bool,
    /// Its client would go on with another protocol.
    pub upgrade: bool,
    mount: MountId,
    /// The mount's settings.
    pub options: MountOptions,
    asked_at: Instant,
    sent_at: OnceLock<Instant>,
    times: Option<Arc<Times>>,
}

impl Outgoing {
    /// A request of a mount with this head, as it was sent, and this body. Its whole path is passed.
    pub fn new(
        head: &Parts,
        asked: &Asked<'_>,
        payload: Payload,
        sender: &Sender<'_>,
        mount: MountId,
    ) -> Outgoing {
        let upgrade = wants_upgrade(head, &payload);
        let names = named_by_connection(&head.headers);
        let passes = |name: &HeaderName| {
            !is_hop_by_hop(name)
                && !names.contains(name)
                && is_for_backends(name.as_str())
                && sender.word.passes(name.as_str())
        };
        let mut headers = HeaderMap::with_capacity(head.headers.len() + 8);
        for (name, value) in head.headers.iter().filter(|(name, _)| passes(name)) {
            headers.append(name, value.clone());
        }
        let authority = asked.authority.map(|authority| authority.text);
        sender.introduce(&mut headers, authority, &asked.claims);
        if upgrade {
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            head.headers.get(UPGRADE).map(|to| headers.insert(UPGRADE, to.clone()));
        }
        let times = access_log::times(head);
        let target = head.uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
        let options = here::mount_options(mount);
        let built = Outgoing::build(head.method.clone(), target, headers, payload, options);
        Outgoing { upgrade, idempotent: built.idempotent && !upgrade, mount, times, ..built }
    }

    pub(super) fn build(
        method: Method,
        target: Uri,
        mut headers: HeaderMap,
        payload: Payload,
        options: MountOptions,
    ) -> Outgoing {
        let has_body = matches!(method, Method::POST | Method::PUT | Method::PATCH);
        if payload.len() > 0 || has_body {
            headers.insert(CONTENT_LENGTH, payload.len().into());
        }
        let idempotent = matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
        let (asked_at, sent_at) = (Instant::now(), OnceLock::new());
        Outgoing {
            method,
            target,
            headers,
            payload,
            idempotent,
            upgrade: false,
            mount: MountId::default(),
            options,
            asked_at,
            sent_at,
            times: None,
        }
    }

    /// The request for hyper.
    pub fn request(this: &Arc<Outgoing>) -> Request<OutBody> {
        let _ = this.sent_at.set(Instant::now());
        let body = match &this.payload.spool {
            Some(_) => OutBody::Disk { of: this.clone(), sent: 0, reading: None },
            None => OutBody::Memory(this.payload.bytes.clone()),
        };
        let mut request = Request::new(body);
        *request.method_mut() = this.method.clone();
        *request.uri_mut() = this.target.clone();
        *request.headers_mut() = this.headers.clone();
        request
    }

    /// The backend has answered: for the access log and the counters.
    pub fn has_ended(&self) {
        let Some(sent_at) = self.sent_at.get() else { return };
        let (queued, service) = (*sent_at - self.asked_at, sent_at.elapsed());
        stats::answers(self.mount, queued, service);
        self.times.iter().for_each(|times| times.proxied(queued, service));
    }
}

/// RFC 9110, section 7.6.1, and what has been met here already.
fn is_hop_by_hop(name: &HeaderName) -> bool {
    [
        CONNECTION,
        CONTENT_LENGTH,
        EXPECT,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ]
    .contains(name)
        || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// What apps of our own do not get either: `Proxy` would become HTTP_PROXY, which programs obey; an
/// underscore would make a name pass as its dashed twin.
fn is_for_backends(name: &str) -> bool {
    name != "proxy" && !name.contains('_')
}

/// RFC 9110, section 7.8. A body would have to be sent before the protocol changes.
fn wants_upgrade(head: &Parts, payload: &Payload) -> bool {
    head.version == Version::HTTP_11
        && payload.len() == 0
        && head.headers.contains_key(UPGRADE)
        && named_by_connection(&head.headers).contains(&UPGRADE)
}

/// Who sends a request, as far as its head does not say.
pub struct Sender<'a> {
    /// Whether what it says of others counts.
    pub word: Word,
    /// Its address, empty if it has none.
    pub address: Cow<'a, str>,
    /// The listener it came to.
    pub home: &'a Home,
    /// Whether it speaks HTTPS.
    pub https: bool,
}

impl Sender<'_> {
    /// Adds whom the request is from and whom it was addressed to, to what proxies before us say if
    /// their word counts.
    fn introduce(&self, headers: &mut HeaderMap, host: Option<&str>, claims: &Claims<'_>) {
        let home = || format!("{}:{}", self.home.name, self.home.port);
        let host = host.map_or_else(home, str::to_owned);
        let Ok(host) = HeaderValue::try_from(host) else { return };
        headers.insert(HOST, host.clone());
        let said = headers.get_all(&FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
        let mut chain: Vec<String> = said.map(str::to_owned).collect();
        // Said by another field, which is not passed on in that form.
        if let (Word::Taken(Field::Forwarded), Some(client)) = (self.word, claims.client) {
            chain.push(client.to_string());
        }
        chain.extend((!self.address.is_empty()).then(|| self.address.to_string()));
        if let (false, Ok(chain)) = (chain.is_empty(), HeaderValue::try_from(chain.join(", "))) {
            headers.insert(FORWARDED_FOR, chain);
        }
        headers.entry(FORWARDED_HOST).or_insert(host);
        let scheme = if claims.https.unwrap_or(self.https) { "https" } else { "http" };
        headers.entry(FORWARDED_PROTO).or_insert(HeaderValue::from_static(scheme));
        // RFC 9110, section 7.6.3.
        headers.append(VIA, HeaderValue::from_static("1.1 oribi"));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = format!("t={}.{:06}", now.as_secs(), now.subsec_micros());
        if let Ok(now) = HeaderValue::try_from(now) {
            headers.entry(REQUEST_START).or_insert(now);
        }
    }
}

/// A request's body on its way to the backend.
pub enum OutBody {
    /// It is in memory.
    Memory(Bytes),
    /// It lies on disk.
    Disk {
        /// Whose it is.
        of: Arc<Outgoing>,
        /// Bytes handed over.
        sent: u64,
        /// The next ones.
        reading: Option<Job<Bytes>>,
    },
}

impl Body for OutBody {
    type Data = Bytes;
    type Error = Failed;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failed>>> {
        match self.get_mut() {
            OutBody::Memory(bytes) if bytes.is_empty() => Poll::Ready(None),
            OutBody::Memory(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            OutBody::Disk { of, sent, reading } => {
                let Some(spool) = &of.payload.spool else { return Poll::Ready(None) };
                let length = (spool.len() - *sent).min(PIECE) as usize;
                if length == 0 {
                    return Poll::Ready(None);
                }
                let read = reading.get_or_insert_with(|| spool.read_at(*sent, length));
                let done = ready!(Pin::new(read).poll(context));
                *reading = None;
                *sent += length as u64;
                Poll::Ready(Some(done.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}

impl OutBody {
    fn left(&self) -> u64 {
        match self {
            OutBody::Memory(bytes) => bytes.len() as u64,
            OutBody::Disk { of, sent, .. } => of.payload.len() - sent,
        }
    }
}
