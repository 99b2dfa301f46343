//! The SCGI door: one request, one reply, and the connection ends.

use super::out::Out;
use super::shared::Shared;
use super::{Asking, head};
use crate::access_log::{self, Entry};
use crate::body::Stop;
use crate::io::Socket;
use crate::link::{Due, Phase};
use crate::peer::Peer;
use crate::refuse::{Refusal, Seldom};
use crate::relay::ReplyBody;
use crate::{connection, here, stats, sweep};
use bytes::{Bytes, BytesMut};
use door::cgi::Variables;
use door::scgi;
use http_body::Body;
use hyper::Response;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Bytes read at a time: of the headers, of the body, and of what may come behind it.
const HEAD: usize = 4 * 1024;
const BODY: usize = 16 * 1024;
const BEHIND: usize = 64;

/// Serves the connection's one request.
pub async fn serve(socket: Socket, peer: Arc<Peer>, early: Bytes, refusal: Option<Refusal>) {
    let _watched = sweep::watch(peer.clone()).await;
    let read = BytesMut::from(&early[..]);
    let mut client = Client { socket, peer: peer.clone(), read, left: 0 };
    let Some(length) = poll_fn(|context| client.poll_head(context)).await else { return };
    let head = client.read.split_to(length).freeze();
    peer.link.head_is_whole(true);
    let client = Shared::new(client);
    let mut asking =
        Asking { peer: &peer, door: wire::slot::door::GATEWAY, errors: None, entry: None };
    let answered = match refusal {
        Some(refusal) => Some(Err(refusal.into())),
        None => ask(&mut asking, &head, &client).await,
    };
    let mut response = match answered {
        Some(Ok(response)) => response,
        Some(Err(Stop::Refused(refusal))) => {
            if asking.entry.is_none() {
                access_log::refused(refusal.status(), &peer);
            }
            stats::refuses_at_door(refusal);
            refusal.response()
        }
        _ => return,
    };
    let mut entry = asking.entry.take();
    entry.iter_mut().for_each(|entry| entry.answers(&response));
    peer.link.stands(Phase::Replying);
    head::exit_status(&mut response);
    let mut sending = Sending { out: Out::default(), client: client.clone(), entry, body: None };
    let wants_body = head::has_body(response.status());
    head::write(sending.out.small(), &response, wants_body);
    sending.body = wants_body.then(|| response.into_body());
    poll_fn(|context| sending.poll(context)).await;
    let unread = client.get().left > 0;
    if unread {
        drop(sending);
        if let Some(mut client) = client.only() {
            connection::linger(&mut client.socket, &peer).await;
        }
    }
}

/// The request of these headers to its reply. None: nobody waits for it any more.
async fn ask(
    asking: &mut Asking<'_>,
    head: &[u8],
    client: &Shared<Client>,
) -> Option<Result<Response<ReplyBody>, Stop>> {
    let peer = asking.peer.clone();
    let pairs = match scgi::headers(head, head.len()) {
        Ok(Some((pairs, _))) => pairs,
        Ok(None) => return None,
        Err(fault) => return Some(Err(Refusal::Fault(fault).into())),
    };
    let read = Variables::read(pairs.map(Ok));
    let (variables, length) = match read.and_then(|all| Ok((all.length()?, all))) {
        Ok((length, variables)) => (variables, length),
        Err(fault) => return Some(Err(Refusal::Fault(fault).into())),
    };
    client.get().left = length.unwrap_or(0);
    let body = |context: &mut Context<'_>| client.get().poll_body(context);
    let mut answer = pin!(asking.answer(&variables, body));
    poll_fn(|context| {
        if let Poll::Ready(answer) = answer.as_mut().poll(context) {
            return Poll::Ready(Some(answer));
        }
        let over = is_over(&peer) || client.get().poll_end(context).is_ready();
        if over { Poll::Ready(None) } else { Poll::Pending }
    })
    .await
}

/// What the sweep says: true if the connection is to be closed.
fn is_over(peer: &Peer) -> bool {
    let due = peer.link.take_due().then(|| sweep::due(peer)).flatten();
    due.is_some_and(|due| due != Due::Rest)
}

/// The web server's side of the connection.
struct Client {
    socket: Socket,
    peer: Arc<Peer>,
    /// What was read and is not used yet.
    read: BytesMut,
    /// Bytes of the body still to come.
    left: u64,
}

impl Client {
    /// The length of the headers when they are all there; None: there will be none.
    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Option<usize>> {
        let limit = here::options().head_limit;
        loop {
            match scgi::headers(&self.read, limit) {
                Ok(Some((_, length))) => return Poll::Ready(Some(length)),
                Ok(None) => {}
                Err(fault) => {
                    static LOG: Seldom = Seldom::new();
                    LOG.say(&format!("SCGI from {}: {}", self.peer.who(), fault.text().trim_end()));
                    return Poll::Ready(None);
                }
            }
            if is_over(&self.peer) || !matches!(ready!(self.poll_read(context, HEAD)), Ok(1..)) {
                return Poll::Ready(None);
            }
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        self.read.reserve(most);
        let count = ready!(self.socket.poll_read_into(context, &mut self.read))?;
        self.peer.link.received(&self.read[self.read.len() - count..]);
        Poll::Ready(Ok(count))
    }

    /// The next part of the body, None at its end.
    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(Ok(None));
        }
        if self.read.is_empty() && ready!(self.poll_read(context, BODY))? == 0 {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        let count = self.read.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= count as u64;
        Poll::Ready(Ok(Some(self.read.split_to(count).freeze())))
    }

    /// Ready when the web server is gone. One that has only closed its sending side may still want
    /// its reply.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.left > 0 {
            return Poll::Pending;
        }
        while !self.peer.link.has_ended() {
            // There is nothing to be said behind the body.
            self.read.clear();
            match ready!(self.poll_read(context, BEHIND)) {
                Ok(0) if here::options().half_close_timeout.is_zero() => {
                    return Poll::Ready(());
                }
                Ok(0) => self.peer.link.end_is_hidden(),
                Ok(_) => {}
                Err(_) => return Poll::Ready(()),
            }
        }
        self.socket.trouble().map_or(Poll::Pending, |_| Poll::Ready(()))
    }
}

/// The reply on its way out.
struct Sending {
    out: Out,
    client: Shared<Client>,
    entry: Option<Box<Entry>>,
    /// None: all of it is in `out`.
    body: Option<ReplyBody>,
}

impl Sending {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let client = &mut *self.client.get();
        loop {
            if let Some(due) =
                client.peer.link.take_due().then(|| sweep::due(&client.peer)).flatten()
                && due != Due::Rest
            {
                if due == Due::Stuck {
                    connection::cut_off(&client.socket, &client.peer);
                }
                return Poll::Ready(());
            }
            if !fill(&mut self.out, &mut self.body, &mut self.entry, context) {
                // Nothing but a reset tells that a reply is not whole.
                let _ = self.out.poll_flush(&mut client.socket, &client.peer, context);
                client.socket.forsake();
                return Poll::Ready(());
            }
            let full = self.out.is_full();
            match ready!(self.out.poll_flush(&mut client.socket, &client.peer, context)) {
                Err(_) => return Poll::Ready(()),
                Ok(()) if self.body.is_none() => return Poll::Ready(()),
                Ok(()) if full => {}
                // The body has no more yet, and wakes this task when it has.
                Ok(()) => return Poll::Pending,
            }
        }
    }
}

/// Takes what the body has. False: it has been cut short.
fn fill(
    out: &mut Out,
    body: &mut Option<ReplyBody>,
    entry: &mut Option<Box<Entry>>,
    context: &mut Context<'_>,
) -> bool {
    while let Some(reply) = body
        && !out.is_full()
        && let Poll::Ready(part) = Pin::new(&mut *reply).poll_frame(context)
    {
        entry.iter_mut().for_each(|entry| entry.sends(&part, reply.is_end_stream()));
        match part {
            None => *body = None,
            Some(Err(_)) => return false,
            Some(Ok(frame)) => frame.into_data().into_iter().for_each(|part| out.part(part)),
        }
    }
    true
}
