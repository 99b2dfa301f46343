//! Step 2, the doors behind a web server: FastCGI and SCGI. Both bring a request as the variables of
//! CGI (RFC 3875) and take the reply as CGI writes one; what is between is the same for all doors.

mod fastcgi;
mod head;
mod log;
mod out;
mod proxied;
mod record;
mod requests;
mod scgi;
mod shared;

use crate::access_log::{self, Entry};
use crate::admit::{self, About};
use crate::assets;
use crate::body::{Stop, gather};
use crate::errors::Outlet;
use crate::here;
use crate::io::Socket;
use crate::peer::Peer;
use crate::refuse::Refusal;
use crate::relay::{self, ReplyBody};
use bytes::Bytes;
use door::Fault;
use door::cgi::{Request, Variables};
use hyper::Response;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use wire::control::MountId;
use wire::settings::Door;

/// Serves a web server's connection to its end. `early` are bytes of it that have been read already;
/// with a `refusal` every request gets that.
pub async fn serve(socket: Socket, peer: Arc<Peer>, early: Bytes, refusal: Option<Refusal>) {
    match peer.home.door {
        Door::FastCgi => fastcgi::serve(socket, peer, early, refusal).await,
        _ => scgi::serve(socket, peer, early, refusal).await,
    }
}

/// What the variables say, and the mount that is asked.
fn route<'a>(variables: &Variables<'a>) -> Result<(Request<'a>, MountId), Fault> {
    here::with_routes(|routes| match routes.implied {
        Some(mount) => variables.judge("").map(|request| (request, mount)),
        None => variables.judge_among(&routes.mounts, |client| record::host(variables, client)),
    })
}

/// One request on its way through a gateway.
struct Asking<'a> {
    peer: &'a Arc<Peer>,
    /// A number of `wire::slot::door`.
    door: u32,
    /// Where its `rack.errors` go, if there is a way for them.
    errors: Option<Arc<Outlet>>,
    /// Begun when it is known what is asked for.
    entry: Option<Box<Entry>>,
}

impl Asking<'_> {
    /// From its variables to its reply. The body's length is what CONTENT_LENGTH says; without one
    /// it is what comes.
    async fn answer(
        &mut self,
        variables: &Variables<'_>,
        body: impl FnMut(&mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> + Send,
    ) -> Result<Response<ReplyBody>, Stop> {
        let options = here::options();
        if let Some(response) = self.asset(variables)? {
            return Ok(response);
        }
        let (request, mount) = route(variables).map_err(Refusal::Fault)?;
        if request.uri.len() > options.uri_limit {
            return Err(Refusal::TargetTooLong.into());
        }
        if variables.has_more_headers_than(options.header_count) {
            return Err(Refusal::HeadTooLarge.into());
        }
        let logged = log::begin(variables, &request, self.peer);
        let (entry, head) = logged.unzip();
        self.entry = entry;
        head.iter().for_each(|head| access_log::goes_to(head, mount));
        let payload = gather(body, request.length, mount).await?;
        let times = head.as_ref().and_then(access_log::times);
        let id = head.as_ref().and_then(log::id);
        let errors = self.errors.take();
        let about = About { errors, ..About::new(mount, request.method, self.door, times) };
        if let Some(proxy) = here::proxy(mount) {
            let outgoing = proxied::outgoing(variables, &request, payload, head, self.peer, mount)?;
            return Box::pin(proxied::answer(proxy, outgoing, mount)).await;
        }
        let length = payload.len();
        let write = |pairs: &mut Vec<u8>| {
            record::write(pairs, variables, &request, length, id, self.peer);
        };
        let ticket = admit::admit(about, payload, self.peer, write)?;
        relay::reply(ticket, None).await
    }

    /// The answer that needs no app.
    fn asset(&mut self, variables: &Variables<'_>) -> Result<Option<Response<ReplyBody>>, Stop> {
        if !assets::any() {
            return Ok(None);
        }
        let request = variables.judge("").map_err(Refusal::Fault)?;
        let path = [&request.script_name[..], &request.path_info].concat();
        let Ok(path) = std::str::from_utf8(&path) else { return Ok(None) };
        let others = variables.others().filter(|(name, _)| *name == b"HTTP_IF_NONE_MATCH");
        let known = others.map(|(_, value)| value);
        let answer = assets::answer(request.method, path, known, false);
        if answer.is_some() {
            self.entry = log::begin(variables, &request, self.peer).map(|(entry, _)| entry);
        }
        Ok(answer)
    }
}
