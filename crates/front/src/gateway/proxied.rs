//! A request of CGI variables that another server is to answer: as the request of HTTP it once was.

use super::record;
use crate::body::{Payload, Stop};
use crate::here::Held;
use crate::peer::Peer;
use crate::proxy::{Answer, Outgoing, Proxy, Sender};
use crate::refuse::Refusal;
use crate::relay::ReplyBody;
use crate::rules::{self, Asked, Word};
use crate::stats;
use door::cgi::{Request, Variables};
use door::forwarded::{self, Claims};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, Uri};
use std::sync::Arc;
use wire::control::MountId;

/// The request; `logged` is the access log's view of it, if there is a log.
pub fn outgoing(
    variables: &Variables<'_>,
    request: &Request<'_>,
    payload: Payload,
    logged: Option<Parts>,
    peer: &Peer,
    mount: MountId,
) -> Result<Outgoing, Refusal> {
    let mut head = logged.unwrap_or_else(|| {
        let mut head = hyper::Request::new(()).into_parts().0;
        head.headers = record::headers(variables);
        head
    });
    head.method = Method::from_bytes(request.method.as_bytes()).map_err(|_| Refusal::Malformed)?;
    head.uri = Uri::try_from(&*request.uri).map_err(|_| Refusal::Malformed)?;
    // What the web server's connection with its client can become is between these two.
    head.version = hyper::Version::HTTP_10;
    let kind = variables.others().find(|(name, _)| *name == b"CONTENT_TYPE");
    let kind = kind.and_then(|(_, value)| HeaderValue::from_bytes(value).ok());
    kind.map(|kind| head.headers.insert(CONTENT_TYPE, kind));
    let word = Word::of(request.remote_addr);
    let claims = match word {
        Word::Taken(field) => forwarded::read(&head.headers, field, rules::trust()),
        Word::Unjudged => Claims::default(),
    };
    let (instead_of_host, authority) = (claims.host.is_some(), claims.host.or(request.authority));
    let asked = Asked { authority, instead_of_host, claims };
    let address = request.remote_addr.map(|address| address.to_string()).unwrap_or_default();
    let (address, https) = (address.into(), request.https);
    let sender = Sender { word, address, home: &peer.home, https };
    Ok(Outgoing::new(&head, &asked, payload, &sender, mount))
}

/// The answer.
pub async fn answer(
    proxy: Arc<Proxy>,
    outgoing: Outgoing,
    mount: MountId,
) -> Result<Response<ReplyBody>, Stop> {
    let _held = Held::by(mount);
    let counted = stats::Answer::to_come(mount);
    let answer = match proxy.answer(outgoing, None).await {
        Ok(Answer::Reply(response)) => Ok(response),
        // Nobody has asked for it.
        Ok(Answer::Switched(_)) => Err(Refusal::BadBackend.into()),
        Err(refusal) => Err(refusal.into()),
    };
    counted.is(&answer);
    answer
}
