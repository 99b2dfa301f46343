//! One request of a FastCGI connection: what has come of it, and the task that answers it.

use super::out::Out;
use super::shared::Shared;
use super::{Asking, head};
use crate::access_log::{self, Entry};
use crate::body::Stop;
use crate::errors::Outlet;
use crate::peer::Peer;
use crate::refuse::Refusal;
use crate::relay::ReplyBody;
use crate::stats;
use crate::stream::CutShort;
use bytes::Bytes;
use door::cgi::Variables;
use door::fastcgi::{self, kind, status};
use http_body::Body;
use hyper::Response;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The parts of a request's body that its task has not taken yet, and how far that has come.
#[derive(Default)]
pub struct Inbox {
    parts: VecDeque<Bytes>,
    bytes: usize,
    ended: bool,
    answers: bool,
}

impl Inbox {
    /// The next part of STDIN; an empty one ends it.
    pub fn add(&mut self, part: &[u8]) {
        self.ended |= part.is_empty();
        if !self.ended {
            self.bytes += part.len();
            self.parts.push_back(Bytes::copy_from_slice(part));
        }
    }

    /// Bytes that wait here.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// All of the body has come.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The reply has begun.
    pub fn answers(&self) -> bool {
        self.answers
    }

    fn poll_part(&mut self) -> Poll<Option<Bytes>> {
        match self.parts.pop_front() {
            Some(part) => {
                self.bytes -= part.len();
                Poll::Ready(Some(part))
            }
            None if self.ended => Poll::Ready(None),
            // The connection asks again when it has read on.
            None => Poll::Pending,
        }
    }
}

/// How a request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its reply is on its way out; these are the statuses of its END_REQUEST.
    Whole(u32, u8),
    /// The reply is not whole, and nothing says so yet.
    CutShort,
}

type Task = Pin<Box<dyn Future<Output = Ending> + Send>>;

/// A request whose variables are all there.
pub struct Running {
    /// Its body.
    pub inbox: Shared<Inbox>,
    /// Its `rack.errors`.
    outlet: Arc<Outlet>,
    task: Task,
}

impl Running {
    /// Begins to answer the request of these variables; or refuses it.
    pub fn start(
        id: u16,
        variables: Vec<u8>,
        peer: Arc<Peer>,
        out: Shared<Out>,
        refusal: Option<Refusal>,
    ) -> Running {
        let inbox = Shared::new(Inbox::default());
        let outlet = Arc::<Outlet>::default();
        let reply = Reply { id, out, inbox: inbox.clone(), outlet: outlet.clone() };
        Running { inbox, outlet, task: Box::pin(run(reply, variables, peer, refusal)) }
    }

    /// Goes on with it. `out` gets what the app wrote to `rack.errors` meanwhile.
    pub fn poll(&mut self, id: u16, out: &Shared<Out>, context: &mut Context<'_>) -> Poll<Ending> {
        let ended = self.task.as_mut().poll(context);
        let mut out = out.get();
        while (ended.is_ready() || !out.is_full())
            && let Poll::Ready(errors) = self.outlet.poll_take(context)
        {
            out.stream(kind::STDERR, id, errors.into());
        }
        ended
    }
}

/// Where a request's reply goes.
struct Reply {
    id: u16,
    out: Shared<Out>,
    inbox: Shared<Inbox>,
    outlet: Arc<Outlet>,
}

async fn run(
    reply: Reply,
    variables: Vec<u8>,
    peer: Arc<Peer>,
    refusal: Option<Refusal>,
) -> Ending {
    let door = wire::slot::door::GATEWAY_WITH_ERRORS;
    let errors = Some(reply.outlet.clone());
    let mut asking = Asking { peer: &peer, door, errors, entry: None };
    let answered = match refusal {
        Some(refusal) => Err(refusal.into()),
        None => match Variables::read(fastcgi::pairs(&variables)) {
            Err(fault) => Err(Refusal::Fault(fault).into()),
            Ok(variables) => {
                let body = |_: &mut Context<'_>| reply.inbox.get().poll_part().map(Ok);
                asking.answer(&variables, body).await
            }
        },
    };
    let (response, overloaded) = match answered {
        Ok(response) => (response, false),
        Err(Stop::Refused(refusal)) => {
            if asking.entry.is_none() {
                access_log::refused(refusal.status(), &peer);
            }
            stats::refuses_at_door(refusal);
            (refusal.response(), refusal.sheds())
        }
        // Neither comes of a gateway's connection.
        Err(Stop::Gone(_) | Stop::Given(_)) => return Ending::CutShort,
    };
    reply.send(response, overloaded, asking.entry).await
}

impl Reply {
    /// Sends the response and its end.
    async fn send(
        &self,
        mut response: Response<ReplyBody>,
        overloaded: bool,
        mut entry: Option<Box<Entry>>,
    ) -> Ending {
        entry.iter_mut().for_each(|entry| entry.answers(&response));
        let app_status = head::exit_status(&mut response);
        let wants_body = head::has_body(response.status());
        self.inbox.get().answers = true;
        self.begin(&mut response, wants_body, &mut entry);
        let mut whole = Ok(());
        if wants_body {
            let mut body = response.into_body();
            whole = poll_fn(|context| self.poll_body(context, &mut body, &mut entry)).await;
        }
        if whole.is_err() {
            return Ending::CutShort;
        }
        // A web server that does not look at this has seen the 503.
        let protocol = if overloaded { status::OVERLOADED } else { status::REQUEST_COMPLETE };
        Ending::Whole(app_status, protocol)
    }

    /// The head, and with it in one record what is there of a short body.
    fn begin(
        &self,
        response: &mut Response<ReplyBody>,
        wants_body: bool,
        entry: &mut Option<Box<Entry>>,
    ) {
        let mut out = self.out.get();
        let began = out.begin_record(kind::STDOUT, self.id);
        head::write(out.small(), response, wants_body);
        if let ReplyBody::Full(body) = response.body_mut()
            && wants_body
            && let Some(body) = body.take_if(|body| body.len() <= fastcgi::CONTENT_MAX / 4)
        {
            out.small().extend_from_slice(&body);
            entry.iter_mut().for_each(|entry| entry.has_sent(body.len()));
        }
        out.end_record(kind::STDOUT, self.id, began);
    }

    fn poll_body(
        &self,
        context: &mut Context<'_>,
        body: &mut ReplyBody,
        entry: &mut Option<Box<Entry>>,
    ) -> Poll<Result<(), CutShort>> {
        loop {
            // Asked again when some of it has been written.
            if self.out.get().is_full() {
                return Poll::Pending;
            }
            let part = ready!(Pin::new(&mut *body).poll_frame(context));
            entry.iter_mut().for_each(|entry| entry.sends(&part, body.is_end_stream()));
            match part {
                None => return Poll::Ready(Ok(())),
                Some(Err(cut)) => return Poll::Ready(Err(cut)),
                Some(Ok(frame)) => {
                    let Ok(part) = frame.into_data() else { continue };
                    self.out.get().stream(kind::STDOUT, self.id, part);
                }
            }
        }
    }
}
