//! Mounts come and go while the front serves: the supervisor says so to the first thread, which
//! passes it on to the others.

use crate::accept::{Hands, Order};
use crate::here;
use crate::options::MountOptions;
use crate::proxy::Proxy;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use wire::Segment;
use wire::control::MountId;

/// A mount, as the front is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mount {
    /// The number of its `MountId`.
    pub id: u16,
    /// As people call it.
    pub name: String,
    /// The hosts it is for, `*.` before one standing for all of its subdomains; none: for all.
    pub hosts: Vec<String>,
    /// The path it lies under, without a slash at its end; empty: everything.
    pub path: String,
    /// False: the one that a server has that declares none. Its path is the setting `prefix`, and
    /// empty where a web server in front may say.
    pub declared: bool,
    /// What answers.
    pub serves: Serves,
    /// Its settings.
    pub options: MountOptions,
}

/// What answers a mount's requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Serves {
    /// Workers.
    App {},
    /// Other servers.
    Proxy {
        /// Their addresses, `unix:PATH` or `HOST:PORT`.
        to: Vec<String>,
        /// Requests that each may have at once.
        max: u16,
    },
}

impl Mount {
    /// Its id.
    pub fn id(&self) -> MountId {
        MountId(self.id)
    }

    /// Before a line of the log that is about this mount; nothing where there is only one.
    pub fn tag(&self) -> String {
        if self.declared { format!("mount {}: ", self.name) } else { String::new() }
    }
}

/// A mount on its way to a thread.
pub struct Arrival {
    /// What it is.
    pub mount: Arc<Mount>,
    /// The ways to its workers: its segment, and this thread's exchange.
    pub ways: Option<(Arc<Segment>, OwnedFd)>,
    /// The way to the servers that run it, which all threads share.
    pub proxy: Option<Arc<Proxy>>,
}

/// Dropped by the last thread that lets go of a mount, after which nothing of it is left.
pub struct Gone {
    mount: MountId,
    tell: UnboundedSender<MountId>,
}

impl Gone {
    /// Of this mount; says so there.
    pub fn new(mount: MountId, tell: UnboundedSender<MountId>) -> Gone {
        Gone { mount, tell }
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        // Fails when the front has drained, and then nobody waits for it.
        let _ = self.tell.send(self.mount);
    }
}

/// A mount comes. The first thread gets it last, because that is the one that accepts.
pub fn add(json: &str, fds: Vec<OwnedFd>, hands: &Hands) -> io::Result<()> {
    let mount: Arc<Mount> = Arc::new(serde_json::from_str(json)?);
    let threads = hands.threads();
    let mut fds = fds.into_iter();
    let segment = fds.next().map(Segment::open).transpose()?.map(Arc::new);
    let lacks = segment.is_some() && fds.len() != threads;
    let is_new = here::with(|here| !here.has(mount.id()));
    if lacks || segment.is_none() && is_new && matches!(mount.serves, Serves::App {}) {
        return Err(io::Error::other(format!("mount {} lacks its segment", mount.name)));
    }
    let proxy = match &mount.serves {
        Serves::Proxy { to, max } => {
            let proxy = Proxy::new(&mount.name, to, *max).map_err(io::Error::other)?;
            Some(proxy)
        }
        Serves::App {} => None,
    };
    let mut arrivals = (0..threads).map(|_| {
        let ways = segment.clone().zip(fds.next());
        Arrival { mount: mount.clone(), ways, proxy: proxy.clone() }
    });
    let first = arrivals.next();
    arrivals.enumerate().for_each(|(other, arrival)| hands.tell(other, Order::Mount(arrival)));
    first.into_iter().for_each(|arrival| here::with(|here| here.mount(arrival)));
    Ok(())
}

/// A mount is to go; `tell` is told when it has.
pub fn remove(mount: MountId, tell: UnboundedSender<MountId>, hands: &Hands) {
    let gone = Arc::new(Gone::new(mount, tell));
    (1..hands.threads()).for_each(|other| {
        hands.tell(other - 1, Order::Unmount(mount, gone.clone()));
    });
    here::with(|here| here.unmount(mount, gone));
}
