//! One connection from its first byte to its last, through as many of hyper's connections as it
//! takes: one that rests has none.

use crate::accept::Held;
use crate::access_log;
use crate::aside::Hijack;
use crate::io::{Io, Socket};
use crate::limits::{OfClient, Turned, USUAL_FIELDS};
use crate::link::{Due, Phase};
use crate::peer::Peer;
use crate::refuse::{Refusal, log};
use crate::{Options, gateway, here, hijack, http, introduce, rules, stats, sweep};
use bytes::{Buf, Bytes};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use wire::settings::Door;

/// What becomes of a connection that hyper had.
enum After {
    /// It can be closed.
    Close,
    /// Nothing is under way: it may wait for its next request without buffers.
    Rest(Io),
    /// This goes out, if it is not empty, then it is closed with care, for the client may still be
    /// sending.
    Part(Io, Bytes),
    /// It goes to the app, with what the client has sent behind its request.
    Hijacked(Socket, Bytes, Hijack),
}

/// Serves one connection to its end.
pub async fn serve(mut socket: Socket, mut peer: Arc<Peer>, held: Held) {
    let Held { counted, load: _load, of_listener: _of_listener } = held;
    let mut early = Bytes::new();
    if introduce::is_due(&peer) {
        match introduce::introduce(&mut socket, peer).await {
            Some(known) => (peer, early) = known,
            None => return,
        }
    }
    if peer.home.door != Door::Http {
        // In a box: connections that speak HTTP do not keep its room.
        return Box::pin(gateway::serve(socket, peer, early, None)).await;
    }
    let options = here::options();
    // A proxy has as many connections as it has clients.
    let client = peer.client.filter(|_| !rules::trust().covers(peer.client));
    let _of_client = match OfClient::one_more(client, options) {
        Ok(client) => client,
        Err(refusal) => return turn_away(socket, peer, refusal).await,
    };
    let watched = sweep::watch(peer.clone()).await;
    let mut io = Io::new(socket, peer.clone(), early);
    loop {
        match speak(io, &peer, options).await {
            After::Close => return,
            After::Part(io, last) => return part(io, last, &peer).await,
            After::Rest(resting) => io = resting,
            After::Hijacked(socket, early, hijack) => {
                // It may last for ever, so nobody waits for it, and it has no timeouts.
                drop((counted, watched));
                return Box::pin(hijack::carry(socket, early, hijack)).await;
            }
        }
        if !rest(&io, &peer).await {
            return;
        }
    }
}

/// Turns a new connection away; without a word when many are being turned away.
pub async fn turn_away(socket: Socket, peer: Arc<Peer>, refusal: Refusal) {
    if let Some(_turned) = Turned::one_more() {
        if peer.home.door != Door::Http {
            return Box::pin(gateway::serve(socket, peer, Bytes::new(), Some(refusal))).await;
        }
        let _watched = sweep::watch(peer.clone()).await;
        let io = Io::new(socket, peer.clone(), Bytes::new());
        part(io, refuse(refusal, &peer), &peer).await;
    }
}

/// Has hyper serve requests until there is a reason to take the connection from it.
async fn speak(io: Io, peer: &Arc<Peer>, options: &Options) -> After {
    let owner = peer.clone();
    let service = service_fn(move |request| http::serve(request, owner.clone()));
    // `Io` gathers small replies and spares large ones hyper's copy. Not `pipeline_flush`: it holds
    // answers back while bytes of the next request, be it a stray line end, lie there.
    let mut builder = http1::Builder::new();
    builder.writev(true).max_header_size(options.head_limit);
    // Saying so costs hyper an allocation for each request.
    if options.header_count > USUAL_FIELDS {
        builder.max_headers(options.header_count);
    }
    // In a box: a connection that rests does not keep its room.
    let mut connection = Box::new(builder.serve_connection(TokioIo::new(io), service));
    let end = poll_fn(|context| {
        if let Poll::Ready(result) = Pin::new(&mut *connection).poll(context) {
            return Poll::Ready(Err(result.err()));
        }
        if peer.aside.is_given() {
            return Poll::Ready(Ok(Due::Close));
        }
        match peer.link.take_due().then(|| sweep::due(peer)).flatten() {
            Some(due) => Poll::Ready(Ok(due)),
            None => Poll::Pending,
        }
    });
    let end = end.await;
    let parts = connection.into_parts();
    let mut io = parts.io.into_inner();
    if peer.aside.is_given()
        && let Some(hijack) = peer.aside.take()
    {
        let (socket, early) = io.into_socket();
        return After::Hijacked(socket, [parts.read_buf, early].concat().into(), hijack);
    }
    match end {
        Ok(Due::Rest) => {
            io.put_back(&parts.read_buf);
            After::Rest(io)
        }
        Ok(Due::Close | Due::Gone) => After::Close,
        Ok(Due::TooSlow) => After::Part(io, refuse(Refusal::HeadTooSlow, peer)),
        Ok(Due::Stuck) => {
            cut_off(&io.socket, peer);
            After::Close
        }
        Err(Some(error)) if error.is_parse() && peer.link.is_between_requests() => {
            let refusal = unreadable(&error, &io, peer, options);
            After::Part(io, refuse(refusal, peer))
        }
        Err(_) if peer.link.phase() == Phase::Refused => After::Part(io, Bytes::new()),
        // The app's reply was cut short, which a client must be able to tell from its end.
        Err(Some(error)) if error.is_user() && peer.aside.end_is_ambiguous() => {
            io.socket.forsake();
            After::Close
        }
        Err(_) => After::Close,
    }
}

/// Closing the connection, which follows, drops what the client has not taken of its reply.
pub fn cut_off(socket: &Socket, peer: &Peer) {
    log(&format!("{} takes nothing of its reply, and is cut off", peer.who()));
    socket.forsake();
}

/// The last words to a client that has not sent a request.
fn refuse(refusal: Refusal, peer: &Arc<Peer>) -> Bytes {
    access_log::refused(refusal.status(), peer);
    stats::refuses_at_door(refusal);
    refusal.bytes()
}

/// Why hyper could not read a head.
fn unreadable(error: &hyper::Error, io: &Io, peer: &Peer, options: &Options) -> Refusal {
    match peer.watch.fault() {
        Some(fault) => Refusal::Fault(fault),
        None if !error.is_parse_too_large() => Refusal::Malformed,
        None if io.line_length() > options.uri_limit => Refusal::TargetTooLong,
        None => Refusal::HeadTooLarge,
    }
}

/// Waits for the next request without any buffers. False: none will be served.
async fn rest(io: &Io, peer: &Peer) -> bool {
    if io.has_early() {
        return true;
    }
    peer.link.rests(true);
    let comes = poll_fn(|context| {
        if io.socket.poll_readable(context).is_ready() {
            return Poll::Ready(true);
        }
        let over = peer.link.take_due() && sweep::due(peer).is_some();
        if over { Poll::Ready(false) } else { Poll::Pending }
    });
    let comes = comes.await;
    peer.link.rests(false);
    comes
}

/// The last words, then no more of ours.
async fn part(mut io: Io, mut last: Bytes, peer: &Peer) {
    peer.link.refuse();
    let written = poll_fn(|context| {
        if is_due(peer) {
            return Poll::Ready(false);
        }
        while !last.is_empty() {
            match ready!(Pin::new(&mut io).poll_write(context, &last)) {
                Ok(count) => last.advance(count),
                Err(_) => return Poll::Ready(false),
            }
        }
        Poll::Ready(true)
    });
    if written.await {
        linger(&mut io.socket, peer).await;
    }
}

/// Says no more, but reads for a while what the client still sends of a request that was refused,
/// since closing on it would reset the connection under the answer (RFC 9112, section 9.6).
pub async fn linger(socket: &mut Socket, peer: &Peer) {
    peer.link.stands(Phase::Refused);
    poll_fn(|context| match socket.poll_shutdown(context) {
        Poll::Ready(Ok(())) if !is_due(peer) => discard(socket, context),
        _ => Poll::Ready(()),
    })
    .await;
}

fn is_due(peer: &Peer) -> bool {
    peer.link.take_due() && sweep::due(peer).is_some()
}

/// Reads until the client has nothing more to say.
fn discard(socket: &mut Socket, context: &mut Context<'_>) -> Poll<()> {
    /// So many reads, then others have their turn.
    const TURNS: usize = 16;
    let mut room = [0; 4096];
    for _ in 0..TURNS {
        if !matches!(ready!(socket.poll_read(context, &mut room)), Ok(1..)) {
            return Poll::Ready(());
        }
    }
    context.waker().wake_by_ref();
    Poll::Pending
}
