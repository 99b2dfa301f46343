//! The control socket and its clients. A few of them, each with a bounded request and a time to
//! say it in; none can make the supervisor wait.

use crate::children::Token;
use crate::control::{REQUEST_MAX, Reply, Request, line, runtime};
use crate::listen::{SocketFile, remove_stale};
use crate::plan::MountId;
use rustix::event::PollFlags;
use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, listen, send,
    socket_with,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Clients at once.
const CLIENTS: usize = 16;
/// Clients that the kernel keeps until the supervisor gets to them.
const BACKLOG: i32 = 128;
/// What a client gets to send its request, and to read the end of its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a client waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// What becomes of these mounts.
    Outcome(Outcome),
    /// The server's end, which closes the connection.
    End,
}

/// What has been asked for, of which mounts it is not decided yet, and what has been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What.
    pub what: What,
    /// Since when.
    pub since: Instant,
    /// Those that are not through.
    pub left: BTreeSet<MountId>,
    /// What became of the others.
    pub words: Vec<String>,
    /// Whether any of that was not what was asked for.
    pub failed: bool,
}

/// What a client has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// New generations, or new mounts.
    Restart,
    /// The generation before.
    Rollback,
    /// A mount's end.
    Stop,
}

enum Stage {
    /// Its request comes.
    Asks { until: Instant },
    /// Its answer comes.
    Waits(Wait),
    /// It takes what is left of its answer.
    Leaves { until: Instant },
}

struct Client {
    socket: UnixStream,
    heard: Vec<u8>,
    unsent: Vec<u8>,
    stage: Stage,
    /// It may ask, but change nothing.
    only_asks: bool,
}

/// The socket and whoever has come to it.
pub struct Desk {
    /// The socket, and its file, which is removed with it.
    listener: Option<(UnixListener, SocketFile)>,
    clients: BTreeMap<u64, Client>,
    next: u64,
}

impl Desk {
    /// At the path that somebody has chosen, or else in the user's own directory.
    pub fn open(chosen: Option<&Path>, pid: u32) -> Result<Desk, String> {
        let Some(path) = chosen else {
            let path = runtime::own(pid)?;
            return Desk::replace(&path).map_err(|error| explain(&path, &error));
        };
        let path = std::path::absolute(path).unwrap_or(path.into());
        let bound = remove_stale(&path).and_then(|()| Desk::bind(&path, &path));
        bound.map_err(|error| explain(&path, &error))
    }

    /// Without a socket: for those who are brought.
    pub fn closed() -> Desk {
        Desk { listener: None, clients: BTreeMap::new(), next: 1 }
    }

    /// Puts the socket where it is looked for only once it listens: one that does not is taken for
    /// a dead server's.
    fn replace(path: &Path) -> io::Result<Desk> {
        let before = path.with_extension("new");
        let _ = fs::remove_file(&before);
        Desk::bind(&before, path)
    }

    fn bind(first: &Path, path: &Path) -> io::Result<Desk> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // The file gets the mode that the socket has: at no time is it open to others.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        bind(&socket, &SocketAddrUnix::new(first)?)?;
        listen(&socket, BACKLOG)?;
        if first != path {
            fs::rename(first, path)?;
        }
        let file = SocketFile::at(path)?;
        Ok(Desk { listener: Some((socket.into(), file)), ..Desk::closed() })
    }

    /// What to poll, and for what.
    pub fn fds(&self) -> impl Iterator<Item = (Token, BorrowedFd<'_>, PollFlags)> {
        let clients = self.clients.iter().map(|(id, client)| {
            // One that waits has said all it may; that it hangs up is told unasked.
            let hears = matches!(client.stage, Stage::Asks { .. });
            let mut flags = if hears { PollFlags::IN } else { PollFlags::empty() };
            flags.set(PollFlags::OUT, !client.unsent.is_empty());
            (Token::Client(*id), client.socket.as_fd(), flags)
        });
        let listener = self.listener.iter();
        listener.map(|(socket, _)| (Token::Control, socket.as_fd(), PollFlags::IN)).chain(clients)
    }

    /// How long until somebody's time is over.
    pub fn due_in(&self, now: Instant) -> Option<Duration> {
        let limits = self.clients.values().filter_map(Client::until);
        limits.min().map(|until| until.saturating_duration_since(now))
    }

    /// Sends those away whose time is over.
    pub fn sweep(&mut self, now: Instant) {
        self.clients.retain(|_, client| client.until().is_none_or(|until| now < until));
    }

    /// Takes in whoever has come.
    pub fn welcome(&mut self, now: Instant) {
        while let Some(Ok((socket, _))) = self.listener.as_ref().map(|(one, _)| one.accept()) {
            let allowed = is_allowed(&socket);
            self.seat(socket, now, false, allowed);
        }
    }

    /// Takes in somebody who has not come to the socket, and may only ask how things are.
    pub fn bring(&mut self, socket: UnixStream, now: Instant) {
        self.seat(socket, now, true, true);
    }

    fn seat(&mut self, socket: UnixStream, now: Instant, only_asks: bool, allowed: bool) {
        if self.clients.len() >= CLIENTS {
            self.make_room();
        }
        let stage = Stage::Asks { until: now + PATIENCE };
        let (heard, unsent) = (Vec::new(), Vec::new());
        let mut client = Client { socket, heard, unsent, stage, only_asks };
        let refusal = match client.socket.set_nonblocking(true) {
            _ if self.clients.len() >= CLIENTS => "too many clients: ask again later",
            Ok(()) if allowed => {
                self.clients.insert(self.next, client);
                self.next += 1;
                return;
            }
            _ => "this server is another user's",
        };
        client.push(&Reply::Failed(refusal.into()));
        client.pump();
    }

    /// The one who has said nothing for longest goes.
    fn make_room(&mut self) {
        let silent = |client: &Client| matches!(client.stage, Stage::Asks { .. });
        let longest = self.clients.iter().find(|(_, client)| silent(client)).map(|(id, _)| *id);
        longest.map(|id| self.clients.remove(&id));
    }

    /// Whether a client is there.
    pub fn has(&self, id: u64) -> bool {
        self.clients.contains_key(&id)
    }

    /// Goes on with a client: its request, when that is complete.
    pub fn hear(&mut self, id: u64) -> Option<Request> {
        let client = self.clients.get_mut(&id)?;
        if !matches!(client.stage, Stage::Asks { .. }) {
            if !client.pump() || client.has_hung_up() || client.is_through() {
                self.clients.remove(&id);
            }
            return None;
        }
        let line = match client.listen() {
            Ok(Some(line)) => line,
            Ok(None) => return None,
            Err(_) => {
                self.clients.remove(&id);
                return None;
            }
        };
        let only_asks = client.only_asks;
        match Request::parse(&line) {
            Ok(request) if only_asks && request != Request::Status => {
                self.end(id, &Reply::Failed("nothing is changed from here".into()));
                None
            }
            Ok(request) => Some(request),
            Err(why) => {
                self.end(id, &Reply::Failed(why));
                None
            }
        }
    }

    /// A client's last line.
    pub fn end(&mut self, id: u64, reply: &Reply) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.push(reply);
        client.stage = Stage::Leaves { until: Instant::now() + PATIENCE };
        if !client.pump() || client.is_through() {
            self.clients.remove(&id);
        }
    }

    /// Lets a client wait, and tells it so if there is something to tell.
    pub fn keep(&mut self, id: u64, wait: Wait, word: Option<&str>) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.stage = Stage::Waits(wait);
        word.iter().for_each(|word| client.push(&Reply::Progress((*word).into())));
        client.pump();
    }

    /// Tells those who wait and whom it concerns how far it has come.
    pub fn progress(&mut self, word: &str, concerns: impl Fn(&Wait) -> bool) {
        for client in self.clients.values_mut() {
            if matches!(&client.stage, Stage::Waits(wait) if concerns(wait)) {
                client.push(&Reply::Progress(word.into()));
                client.pump();
            }
        }
    }

    /// Has each who waits judged; those who get a reply are through.
    pub fn settle(&mut self, mut judge: impl FnMut(&mut Wait) -> Option<Reply>) {
        let judged: Vec<(u64, Reply)> = (self.clients.iter_mut())
            .filter_map(|(id, client)| match &mut client.stage {
                Stage::Waits(wait) => Some((*id, judge(wait)?)),
                _ => None,
            })
            .collect();
        judged.iter().for_each(|(id, reply)| self.end(*id, reply));
    }
}

impl Client {
    fn until(&self) -> Option<Instant> {
        match self.stage {
            Stage::Asks { until } | Stage::Leaves { until } => Some(until),
            Stage::Waits(_) => None,
        }
    }

    /// Reads; a line once there is one. An error: nothing will come of this client.
    fn listen(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = [0; REQUEST_MAX];
        let count = match self.socket.read(&mut bytes) {
            Ok(0) if self.heard.is_empty() => return Err(ErrorKind::UnexpectedEof.into()),
            // Its last line needs no end.
            Ok(0) => return Ok(Some(std::mem::take(&mut self.heard))),
            Ok(count) => count,
            Err(error) if is_later(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        self.heard.extend_from_slice(&bytes[..count]);
        let end = self.heard.iter().position(|byte| *byte == b'\n');
        if end.is_none() && self.heard.len() < REQUEST_MAX {
            return Ok(None);
        }
        // Without an end it is too long, and the parser says what it begins with.
        self.heard.truncate(end.unwrap_or(REQUEST_MAX));
        Ok(Some(std::mem::take(&mut self.heard)))
    }

    fn push(&mut self, reply: &Reply) {
        self.unsent.extend(line(reply));
    }

    /// Sends what can be sent; false when nothing more ever can.
    fn pump(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match send(&self.socket, &self.unsent, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(Errno::AGAIN | Errno::INTR) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    fn is_through(&self) -> bool {
        self.unsent.is_empty() && matches!(self.stage, Stage::Leaves { .. })
    }

    /// Asked of one that is polled for hanging up, or for room.
    fn has_hung_up(&self) -> bool {
        let mut fds = [rustix::event::PollFd::new(&self.socket, PollFlags::empty())];
        let now = rustix::event::Timespec::default();
        let gone = rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0);
        gone && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }
}

/// The mode of the file says the same, but not to those who got in before somebody changed it.
fn is_allowed(socket: &UnixStream) -> bool {
    socket_peercred(socket)
        .is_ok_and(|peer| peer.uid.is_root() || peer.uid.as_raw() == runtime::uid())
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn explain(path: &Path, error: &io::Error) -> String {
    let why = match error.kind() {
        ErrorKind::AddrInUse => "another server listens there: choose another with --control",
        ErrorKind::NotFound => "its directory does not exist: choose another with --control",
        _ if error.raw_os_error() == Some(Errno::NAMETOOLONG.raw_os_error()) => {
            "the path is longer than sockets may have: choose a shorter one with --control"
        }
        _ => return format!("control socket {}: {error}", path.display()),
    };
    format!("control socket {}: {why}", path.display())
}

#[cfg(test)]
mod tests;
