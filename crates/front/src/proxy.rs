//! A mount whose app other servers run: the same fair queue in front of Thin, Mongrel, Puma, or
//! whatever speaks HTTP.
//!
//! A request is read whole, as for apps of our own, waits for its turn (`queue`), is sent to an idle
//! backend (`outgoing`, `exchange`), and its reply is read as fast as the backend sends it
//! (`reply`), so that no client holds a backend. `docs/proxy.md` says what happens when.

mod backend;
mod exchange;
mod outgoing;
mod queue;
mod reply;
mod upgrade;

pub use outgoing::{Outgoing, Sender};
pub use reply::Reader;

use crate::aside::Hijack;
use crate::link::Link;
use crate::refuse::{Refusal, log};
use crate::relay::ReplyBody;
use backend::{Address, Connection, remedy};
use exchange::Outcome;
use hyper::Response;
use queue::{Asked, Queue, Turn};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// How soon a backend that cannot be reached is tried again, and then at the latest.
const FIRST_TRY: Duration = Duration::from_millis(50);
const LATER_TRIES: Duration = Duration::from_secs(1);

/// The backends of a mount, and the queue before them. All front threads share it.
pub struct Proxy {
    name: String,
    backends: Vec<Address>,
    queue: Arc<Queue<Connection>>,
}

/// What the client gets.
pub enum Answer {
    /// A response.
    Reply(Response<ReplyBody>),
    /// Its connection is the backend's from now on.
    Switched(Hijack),
}

impl Proxy {
    /// For the mount of this name: backends at these addresses, with at most `max` requests each. Fails on an address that
    /// is none.
    pub fn new(name: &str, to: &[String], max: u16) -> Result<Arc<Proxy>, String> {
        let backends: Vec<_> =
            to.iter().map(|text| Address::parse(text)).collect::<Result<_, _>>()?;
        if backends.is_empty() {
            return Err(format!("mount {name}: a proxy needs the address of a server"));
        }
        let queue = Queue::new(backends.len(), usize::from(max));
        Ok(Arc::new(Proxy { name: name.to_owned(), backends, queue }))
    }

    /// Sends the request to a backend when it is its turn, and waits for the reply. Dropped, it
    /// leaves the queue; a backend that has it already is left to finish it. `link` is the
    /// connection that waits for it.
    pub async fn answer(
        self: &Arc<Self>,
        outgoing: Outgoing,
        link: Option<&Link>,
    ) -> Result<Answer, Refusal> {
        let outgoing = Arc::new(outgoing);
        let (mut number, mut in_vain, mut lost) = (None, 0, false);
        loop {
            let turn = self.turn(number, outgoing.options.queue_timeout, link).await?;
            number = Some(turn.number);
            let (tell, told) = oneshot::channel();
            tokio::spawn(exchange::run(self.clone(), turn, outgoing.clone(), tell));
            match told.await.unwrap_or(Outcome::Lost) {
                Outcome::Reply(response) => return Ok(Answer::Reply(response)),
                Outcome::Switched(hijack) => return Ok(Answer::Switched(hijack)),
                Outcome::Unsent => in_vain += 1,
                Outcome::Lost
                    if outgoing.idempotent && outgoing.options.retry_idempotent && !lost =>
                {
                    lost = true;
                }
                Outcome::Lost => return Err(Refusal::BackendLost),
                Outcome::Nonsense => return Err(Refusal::BadBackend),
                Outcome::Late => return Err(Refusal::RanTooLong),
            }
            // One that accepts connections and closes them passes for up.
            if in_vain > 2 * self.backends.len() {
                return Err(Refusal::NoBackend);
            }
        }
    }

    async fn turn(
        &self,
        number: Option<u64>,
        timeout: Duration,
        link: Option<&Link>,
    ) -> Result<Turn<Connection>, Refusal> {
        match self.queue.ask(number)? {
            Asked::Turn(turn) => Ok(turn),
            Asked::Waits(waiting) => {
                let _waits = link.map(Link::waits_for_turn);
                waiting.turn(timeout).await
            }
        }
    }

    /// A backend could not be reached: no request goes there until it can be.
    fn fails(self: &Arc<Self>, turn: Turn<Connection>, error: &io::Error) {
        let index = turn.backend;
        if !turn.has_failed() {
            return;
        }
        let (name, address) = (&self.name, &self.backends[index]);
        let remedy = remedy(error);
        log(&format!("mount {name}: {address} cannot be reached: {error}: {remedy}"));
        let proxy = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut pause = FIRST_TRY;
            loop {
                sleep(pause).await;
                let Some(proxy) = proxy.upgrade() else { return };
                if proxy.backends[index].connect().await.is_ok() {
                    log(&format!("mount {}: {} is back", proxy.name, proxy.backends[index]));
                    return proxy.queue.comes_up(index);
                }
                proxy.queue.refuse_in_the_dark();
                pause = (2 * pause).min(LATER_TRIES);
            }
        });
    }

    /// Its backends by their addresses, and how many requests wait.
    #[cfg(test)]
    fn look(&self) -> (Vec<(String, queue::Seen)>, usize) {
        let (seen, waiting) = self.queue.look();
        (self.backends.iter().map(ToString::to_string).zip(seen).collect(), waiting)
    }
}

#[cfg(test)]
mod tests;
