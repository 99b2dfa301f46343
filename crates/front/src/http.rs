//! Step 2, the HTTP/1.1 door: hyper turns bytes into request heads and bodies, and replies back
//! into bytes.

use crate::access_log::{self, Entry};
use crate::admit::{self, About};
use crate::assets;
use crate::body::{self, Payload, Stop};
use crate::drain;
use crate::here::{self, Held};
use crate::limits;
use crate::peer::Peer;
use crate::proxy::{self, Answer, Proxy, Sender};
use crate::record;
use crate::refuse::Refusal;
use crate::relay::{self, ReplyBody};
use crate::rules;
use crate::stats;
use crate::stream::CutShort;
use crate::until_close;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, HeaderValue, IF_NONE_MATCH};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use wire::control::MountId;
use wire::slot;

/// A reply on its way out; its connection learns when it ends, and so does the access log.
pub struct Outgoing {
    body: ReplyBody,
    peer: Arc<Peer>,
    entry: Option<Box<Entry>>,
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.peer.link.reply_ends();
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        let Outgoing { body, entry, .. } = &mut *self;
        let polled = Pin::new(&mut *body).poll_frame(context);
        if let (Some(entry), Poll::Ready(part)) = (entry, &polled) {
            entry.sends(part, body.is_end_stream());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The service: one request to one response. An error means the client is gone.
pub fn serve(
    mut request: Request<Incoming>,
    peer: Arc<Peer>,
) -> impl Future<Output = Result<Response<Outgoing>, hyper::Error>> + Send {
    let number = peer.watch.next();
    peer.link.head_is_whole(!request.body().is_end_stream());
    let mut entry = access_log::begin(&mut request, &peer);
    async move {
        let mut response = match answer(request, &peer, number).await {
            Ok(response) => response,
            Err(Stop::Refused(refusal)) => {
                if refusal.closes() {
                    peer.link.refuse();
                }
                stats::refuses_at_door(refusal);
                refusal.response()
            }
            Err(Stop::Gone(error)) => return Err(error),
            Err(Stop::Given(status)) => {
                entry.iter_mut().for_each(|entry| entry.is_given(status));
                drop(entry);
                // The connection is taken from under us.
                return std::future::pending().await;
            }
        };
        if drain::is_giving_way() && !response.status().is_informational() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        peer.link.reply_begins();
        entry.iter_mut().for_each(|entry| entry.answers(&response));
        Ok(response.map(|body| Outgoing { body, peer, entry }))
    }
}

async fn answer(
    request: Request<Incoming>,
    peer: &Peer,
    number: u64,
) -> Result<Response<ReplyBody>, Stop> {
    let (head, body) = request.into_parts();
    let options = here::options();
    limits::check_head(&head, options)?;
    if let Some(response) = asset(&head, !body.is_end_stream(), peer, number)? {
        return Ok(response);
    }
    let asked = rules::judge(&head, peer, number).map_err(Refusal::Fault)?;
    access_log::speaks_for(&head, asked.claims.client);
    let place = rules::place(&head, &asked).map_err(Refusal::Fault)?;
    access_log::goes_to(&head, place.mount);
    if body::expects_too_much(&head) {
        return Err(Refusal::BadExpectation.into());
    }
    let payload = if body.is_end_stream() {
        Payload::default()
    } else {
        // On the heap only while there is a body: what is kept for each connection stays small.
        let payload = Box::pin(body::collect(body, place.mount)).await?;
        peer.link.body_is_whole();
        payload
    };
    // A chunked body has line ends of its own.
    peer.watch.check(number).map_err(Refusal::Fault)?;
    if let Some(proxy) = here::proxy(place.mount) {
        let address = peer.address.as_str().into();
        let sender = Sender { word: peer.word, address, home: &peer.home, https: false };
        let outgoing = proxy::Outgoing::new(&head, &asked, payload, &sender, place.mount);
        return Box::pin(proxied(proxy, outgoing, &head, place.mount, peer)).await;
    }
    let about =
        About::new(place.mount, head.method.as_str(), slot::door::HTTP, access_log::times(&head));
    let length = payload.len();
    let write = |record: &mut Vec<u8>| record::write(record, &head, &asked, &place, length, peer);
    let ticket = admit::admit(about, payload, peer, write)?;
    relay::reply(ticket, Some((&peer.aside, head.version))).await
}

/// The answer of another server.
async fn proxied(
    proxy: Arc<Proxy>,
    outgoing: proxy::Outgoing,
    head: &Parts,
    mount: MountId,
    peer: &Peer,
) -> Result<Response<ReplyBody>, Stop> {
    let _held = Held::by(mount);
    let counted = stats::Answer::to_come(mount);
    let answer = match proxy.answer(outgoing, Some(&peer.link)).await {
        Ok(Answer::Reply(mut response)) => {
            if head.method != Method::HEAD {
                until_close::prepare(&mut response, &peer.aside, head.version, mount).await;
            }
            Ok(response)
        }
        Ok(Answer::Switched(hijack)) => {
            peer.aside.give(hijack);
            Err(Stop::Given(101))
        }
        Err(refusal) => Err(refusal.into()),
    };
    counted.is(&answer);
    answer
}

/// The answer that needs no app. It is looked for first, so that only one of both judges the head.
fn asset(
    head: &Parts,
    has_body: bool,
    peer: &Peer,
    number: u64,
) -> Result<Option<Response<ReplyBody>>, Refusal> {
    let known = head.headers.get_all(IF_NONE_MATCH).iter().map(HeaderValue::as_bytes);
    let path = head.uri.path();
    let Some(response) = assets::answer(head.method.as_str(), path, known, has_body) else {
        return Ok(None);
    };
    let asked = rules::judge(head, peer, number).map_err(Refusal::Fault)?;
    access_log::speaks_for(head, asked.claims.client);
    Ok(Some(response))
}
