//! One request and its reply, between us and a backend: in a task of its own, because the backend is
//! busy until it has answered, whether or not the client still waits.

use super::backend::Connection;
use super::outgoing::Outgoing;
use super::queue::Turn;
use super::reply::{self, Put, Store};
use super::{Proxy, upgrade};
use crate::aside::Hijack;
use crate::here;
use crate::relay::ReplyBody;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::http::response::Parts;
use hyper::{Response, StatusCode};
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};

/// How long a backend that has run over its time is left alone with the request: it is busy, and
/// only its answer says that it no longer is.
const STUCK: Duration = Duration::from_secs(60);
/// How long a reply that nobody wants any more is read, so that its connection can be used again.
const DISCARD: Duration = Duration::from_secs(1);
/// A reply up to so many bytes that is all there goes out in one piece.
const PIECE: usize = 64 * 1024;

/// What has come of a request.
pub enum Outcome {
    /// A reply, or the beginning of one.
    Reply(Response<ReplyBody>),
    /// The client's connection is the backend's from now on.
    Switched(Hijack),
    /// No backend has seen anything of it.
    Unsent,
    /// The backend has closed the connection instead of answering.
    Lost,
    /// What it has answered is not HTTP.
    Nonsense,
    /// It has not answered within `request_timeout`.
    Late,
}

/// Sends the request to the backend whose turn it is, and says what has come of it. Gives the turn
/// back when the backend is free.
pub async fn run(
    proxy: Arc<Proxy>,
    mut turn: Turn<Connection>,
    asked: Arc<Outgoing>,
    tell: oneshot::Sender<Outcome>,
) {
    let limit = asked.options.request_timeout;
    let deadline = (!limit.is_zero()).then(|| Instant::now() + limit);
    let mut kept = turn.take_kept().filter(SendRequest::is_ready);
    loop {
        let reused = kept.is_some();
        let opened = match kept.take() {
            Some(connection) => Ok(connection),
            None => proxy.backends[turn.backend].open().await,
        };
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(error) => {
                proxy.fails(turn, &error);
                let _ = tell.send(Outcome::Unsent);
                return;
            }
        };
        let mut answer = pin!(connection.try_send_request(Outgoing::request(&asked)));
        let answered = tokio::select! {
            answered = &mut answer => answered,
            () = passes(deadline) => {
                let _ = tell.send(Outcome::Late);
                if let Ok(Ok(response)) = timeout(STUCK, answer).await {
                    discard(response.into_body(), connection, turn).await;
                }
                return;
            }
        };
        let error = match answered {
            Ok(response) => {
                let exchange = Exchange { turn, connection, deadline, tell };
                return exchange.relay(response, &asked).await;
            }
            Err(error) => error,
        };
        let unsent = error.message().is_some();
        // The backend has closed it at that very moment.
        if reused && (unsent || asked.idempotent) {
            continue;
        }
        turn.has_lost();
        let _ = tell.send(match error.error() {
            _ if unsent => Outcome::Unsent,
            error if error.is_parse() => Outcome::Nonsense,
            _ => Outcome::Lost,
        });
        return;
    }
}

async fn passes(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// A request whose reply has begun.
struct Exchange {
    turn: Turn<Connection>,
    connection: Connection,
    deadline: Option<Instant>,
    tell: oneshot::Sender<Outcome>,
}

impl Exchange {
    async fn relay(self, mut response: Response<Incoming>, asked: &Outgoing) {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let switched = match asked.upgrade {
                true => upgrade::switch(response, self.turn).await,
                false => None,
            };
            let _ = self.tell.send(switched.map_or(Outcome::Nonsense, Outcome::Switched));
            return;
        }
        reply::clean(response.headers_mut());
        let (head, mut body) = response.into_parts();
        match begin(&mut body).await {
            Begun::Whole(bytes) => {
                asked.has_ended();
                let response = Response::from_parts(head, ReplyBody::full(bytes));
                let _ = self.tell.send(Outcome::Reply(response));
                keep(self.connection, self.turn).await;
            }
            Begun::Broken => {
                self.turn.has_lost();
                drop(self.tell.send(Outcome::Lost));
            }
            Begun::More(bytes) => self.stream(head, bytes, body, asked).await,
        }
    }

    /// Reads the rest of the reply as fast as the backend sends it, for the client to take as fast
    /// as it can.
    async fn stream(self, head: Parts, first: Bytes, mut body: Incoming, asked: &Outgoing) {
        let Exchange { turn, connection, deadline, tell } = self;
        let store = Store::new(asked.options.reply_spool, here::options().spool_dir.as_path());
        let mut put = store.put(first);
        let response = Response::from_parts(head, ReplyBody::Proxied(store.reader()));
        if tell.send(Outcome::Reply(response)).is_err() {
            return discard(body, connection, turn).await;
        }
        let mut passed = pin!(passes(deadline));
        loop {
            match put {
                Put::InMemory => {}
                Put::OnDisk(job) => store.written(job.await),
                Put::NoRoom(bytes) => {
                    store.room().await;
                    put = store.put(bytes);
                    continue;
                }
                Put::Unwanted => return discard(body, connection, turn).await,
            }
            let next = tokio::select! {
                next = body.frame() => next,
                () = &mut passed => {
                    asked.has_ended();
                    return store.end(false);
                }
            };
            put = match next {
                Some(Ok(frame)) => store.put(frame.into_data().unwrap_or_default()),
                Some(Err(_)) => {
                    asked.has_ended();
                    return store.end(false);
                }
                None => break,
            };
        }
        asked.has_ended();
        store.end(true);
        keep(connection, turn).await;
    }
}

/// How a reply's body begins.
enum Begun {
    Whole(Bytes),
    More(Bytes),
    Broken,
}

/// What is there of the body at once. Its bytes are read by another task of this thread, and only
/// when they have been asked for; so that has its turn before a second look.
async fn begin(body: &mut Incoming) -> Begun {
    let mut parts: Vec<Bytes> = Vec::new();
    let mut length = 0;
    for look in 0..2 {
        if look > 0 {
            yield_now().await;
        }
        loop {
            let polled = poll_fn(|context| Poll::Ready(Pin::new(&mut *body).poll_frame(context)));
            match polled.await {
                Poll::Pending => break,
                Poll::Ready(None) => return Begun::Whole(join(parts, length)),
                Poll::Ready(Some(Err(_))) => return Begun::Broken,
                Poll::Ready(Some(Ok(frame))) => {
                    let data = frame.into_data().unwrap_or_default();
                    length += data.len();
                    parts.extend((!data.is_empty()).then_some(data));
                    if body.is_end_stream() {
                        return Begun::Whole(join(parts, length));
                    }
                }
            }
            if length > PIECE {
                return Begun::More(join(parts, length));
            }
        }
    }
    Begun::More(join(parts, length))
}

fn join(mut parts: Vec<Bytes>, length: usize) -> Bytes {
    if parts.len() < 2 {
        return parts.pop().unwrap_or_default();
    }
    let mut joined = BytesMut::with_capacity(length);
    parts.iter().for_each(|part| joined.extend_from_slice(part));
    joined.freeze()
}

/// The backend is free; its connection is kept if it can be used again.
async fn keep(mut connection: Connection, turn: Turn<Connection>) {
    if let Ok(Ok(())) = timeout(DISCARD, connection.ready()).await {
        turn.keep(connection);
    }
}

/// Nobody wants the reply. Its connection is closed if it does not end soon.
async fn discard(mut body: Incoming, connection: Connection, turn: Turn<Connection>) {
    let read = async {
        while let Some(frame) = body.frame().await {
            frame?;
        }
        Ok::<_, hyper::Error>(())
    };
    if let Ok(Ok(())) = timeout(DISCARD, read).await {
        keep(connection, turn).await;
    }
}
