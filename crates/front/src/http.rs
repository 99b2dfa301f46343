//! Step 2, the HTTP/1.1 door: hyper turns bytes into request heads and bodies, and replies back
//! into bytes.

use crate::admit;
use crate::body::{self, Payload, Stop};
use crate::drain::{Drain, FIRST_REQUEST};
use crate::refuse::Refusal;
use crate::relay::{self, ReplyBody};
use crate::rules::{self, Watch, Watched, Word};
use crate::table;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncWrite};
use wire::now_ns;

/// What all connections of a listener have in common: our own address, for requests without Host.
pub struct Home {
    /// SERVER_NAME.
    pub name: String,
    /// SERVER_PORT.
    pub port: String,
}

impl Home {
    /// A TCP listener's.
    pub fn tcp(local: SocketAddr) -> Home {
        Home { name: local.ip().to_canonical().to_string(), port: local.port().to_string() }
    }

    /// A unix listener's: the socket has no name a URL could hold.
    pub fn unix() -> Home {
        Home { name: "localhost".into(), port: "80".into() }
    }
}

/// What all requests of a connection have in common.
pub struct Peer {
    /// The client's address, empty over a unix socket.
    pub address: String,
    /// The client's port, empty over a unix socket.
    pub port: String,
    /// The listener's address.
    pub home: Arc<Home>,
    /// When the connection was accepted.
    pub accepted_ns: u64,
    /// What it may say of whom it speaks for.
    pub word: Word,
    /// How many requests it has sent, and what is wrong with its bytes.
    pub watch: Watch,
}

impl Peer {
    /// A client over TCP.
    pub fn tcp(client: SocketAddr, home: Arc<Home>) -> Peer {
        let (address, port) = (client.ip().to_canonical(), client.port());
        Peer::new(address.to_string(), port.to_string(), home, Word::of(Some(address)))
    }

    /// A client over a unix socket, which has neither address nor port.
    pub fn unix(home: Arc<Home>) -> Peer {
        Peer::new(String::new(), String::new(), home, Word::of(None))
    }

    fn new(address: String, port: String, home: Arc<Home>, word: Word) -> Peer {
        Peer { address, port, home, accepted_ns: now_ns(), word, watch: Watch::default() }
    }
}

/// Serves one connection to its end.
pub async fn serve<S>(stream: S, peer: Arc<Peer>, drain: Arc<Drain>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let owner = peer.clone();
    let service = service_fn(move |request| answer(request, owner.clone(), owner.watch.next()));
    let stream = Watched::new(stream, peer.clone());
    // Head and body in one buffer and one write. Not `pipeline_flush`, which does the same and more:
    // it holds answers back while bytes of the next request, be it a stray line end, lie there.
    let mut connection =
        pin!(http1::Builder::new().writev(false).serve_connection(TokioIo::new(stream), service));
    let mut begins = pin!(drain.begins());
    let mut listening = false;
    let finished = poll_fn(|context| {
        // Polled once, it wakes this task when the drain begins; the flag is cheaper to look at.
        if !std::mem::replace(&mut listening, true) {
            let _ = begins.as_mut().poll(context);
        }
        match drain.is_draining() {
            true => Poll::Ready(false),
            false => connection.as_mut().poll(context).map(|_| true),
        }
    });
    if finished.await {
        return;
    }
    if peer.watch.requests() == 0 {
        // The first request may be on its way; it is still answered.
        let first = poll_fn(|context| match connection.as_mut().poll(context) {
            Poll::Pending if peer.watch.requests() == 0 => Poll::Pending,
            polled => Poll::Ready(polled.is_ready()),
        });
        if tokio::time::timeout(FIRST_REQUEST, first).await == Ok(true) {
            return;
        }
    }
    connection.as_mut().graceful_shutdown();
    // Errors here are the client's: it left, or spoke nonsense and got its 400 from hyper.
    let _ = connection.await;
}

/// The service: one request to one response. An error means the client is gone.
async fn answer(
    request: Request<Incoming>,
    peer: Arc<Peer>,
    number: u64,
) -> Result<Response<ReplyBody>, hyper::Error> {
    let (head, body) = request.into_parts();
    let asked = match rules::judge(&head, &peer, number) {
        Ok(asked) => asked,
        Err(fault) => {
            body::discard(body);
            return Ok(Refusal::Fault(fault).response());
        }
    };
    if body::expects_too_much(&head) {
        body::discard(body);
        return Ok(Refusal::BadExpectation.response());
    }
    let payload = if body.is_end_stream() {
        Payload::default()
    } else {
        // On the heap only while there is a body: what is kept for each connection stays small.
        let options = table::with(|table| table.options);
        match Box::pin(body::collect(&head, body, options)).await {
            Ok(payload) => payload,
            Err(Stop::Refused(refusal)) => return Ok(refusal.response()),
            Err(Stop::Gone(error)) => return Err(error),
        }
    };
    // A chunked body has line ends of its own.
    if let Err(fault) = peer.watch.check(number) {
        return Ok(Refusal::Fault(fault).response());
    }
    match admit::admit(&head, &asked, payload, &peer) {
        Ok(ticket) => Ok(relay::reply(ticket).await),
        Err(refusal) => Ok(refusal.response()),
    }
}
