//! From what can be read to events.

use super::*;
use crate::channel::Arrival;
use crate::children::{self, Worker};
use crate::listen;
use crate::options::Mount;
use signal_hook::consts::*;
use wire::control::{FromFront, FromMold, ToFront};
use wire::counters::server::Cause;

/// Exit status after a second INT.
const INTERRUPTED: u8 = 130;
/// Exit status after a QUIT.
pub(super) const QUIT: u8 = 131;

impl Supervisor {
    pub(super) fn hear(&mut self, token: Token) {
        match token {
            Token::Signal(signal) => self.hear_signal(signal),
            Token::Caller => {
                self.caller = None;
                say("the process that started the server is gone, ending");
                self.pending.push_back(Event::StopNow(1));
            }
            Token::Seats => self.hear_seats(),
            Token::Reread => self.hear_settings(),
            Token::Control => {
                self.desk.iter_mut().for_each(|desk| desk.welcome(Instant::now()));
            }
            Token::Client(id) => self.hear_client(id),
            Token::FrontTalks => self.hear_front(),
            Token::FrontDead => self.front_died(),
            Token::MoldTalks(generation) => self.hear_mold(generation),
            Token::MoldDead(generation) => {
                // Its last messages may still be unread.
                self.hear_mold(generation);
                self.mold_died(generation);
            }
            Token::WorkerDead(generation, nr) => self.worker_died(generation, nr),
        }
    }

    fn hear_signal(&mut self, signal: i32) {
        for _ in 0..self.signals.take(signal) {
            match signal {
                SIGCHLD => self.children.reap(),
                SIGTERM => {
                    let event = self.stop("TERM", false);
                    self.pending.push_back(event);
                }
                SIGINT => {
                    let event = self.stop("INT", true);
                    self.pending.push_back(event);
                }
                SIGQUIT => self.pending.push_back(Event::StopNow(QUIT)),
                SIGHUP => self.hup(),
                SIGUSR2 => self.for_all(Event::Restart),
                SIGTTIN => self.for_all(Event::More),
                SIGTTOU => self.for_all(Event::Fewer),
                SIGUSR1 if self.stops_slowly() => self.pending.push_back(Event::SlowStop),
                SIGUSR1 => self.reopen_logs("USR1"),
                _ => {}
            }
        }
    }

    /// A signal names no mount: it is for all that have an app.
    fn for_all(&mut self, event: fn(MountId) -> Event) {
        self.pending.extend(self.state.mounts().map(event));
    }

    fn stops_slowly(&self) -> bool {
        self.apps.values().any(|app| !app.settings.spawn_interval.is_zero())
    }

    /// Under start_server HUP means that another server has taken over.
    fn hup(&mut self) {
        let exits = match self.settings.hup_action.as_deref() {
            Some("exit") => true,
            Some("recycle") => {
                self.count_recycling();
                return self.for_all(Event::Recycle);
            }
            None => listen::started_by_start_server(),
            _ => false,
        };
        if !exits {
            return self.for_all(Event::Restart);
        }
        let event = self.stop("HUP", false);
        self.pending.push_back(event);
    }

    /// Their files have been renamed. Nothing that the plan knows changes.
    pub(super) fn reopen_logs(&mut self, name: &str) {
        self.error_log.iter().for_each(ErrorLog::reopen);
        self.tell_front(ToFront::Reopen, &[]);
        say(&format!("{name}: logs are opened again"));
    }

    /// The first TERM or INT is gentle. An INT after that comes from somebody at a terminal who
    /// does not want to wait.
    pub(super) fn stop(&mut self, name: &str, impatient: bool) -> Event {
        self.stops += 1;
        if self.stops == 1 {
            say(&format!("{name}: finishing what runs and waits (INT again ends at once)"));
        }
        if self.stops > 1 && impatient { Event::StopNow(INTERRUPTED) } else { Event::Stop }
    }

    fn hear_front(&mut self) {
        loop {
            let Some(front) = &mut self.children.front else { return };
            let Some(channel) = &front.channel else { return };
            match channel.receive() {
                Ok(Arrival::Packet(packet, mut fds)) => match FromFront::parse(&packet) {
                    Ok(FromFront::Ready) => self.pending.push_back(Event::FrontReady),
                    Ok(FromFront::Drained) => self.pending.push_back(Event::FrontDrained),
                    Ok(FromFront::Unmounted(id)) => self.unmounted(id),
                    Ok(FromFront::Ask) => {
                        fds.pop().into_iter().for_each(|stream| self.welcome_from_front(stream));
                    }
                    Err(unknown) => {
                        say(&format!("front: {unknown}"));
                        children::kill(&front.pidfd);
                    }
                },
                Ok(Arrival::Nothing) => return,
                Ok(Arrival::Closed) | Err(_) => {
                    // It ends, or cannot be told anything any more, which is the same.
                    front.channel = None;
                    return;
                }
            }
        }
    }

    fn front_died(&mut self) {
        self.hear_front();
        let Some(front) = self.children.front.take() else { return };
        let how = self.children.how(Some(front.pid));
        let drained = how == "exit 0" && self.stops > 0;
        if !drained && !front.is_unwanted {
            say(&format!("the front (pid {}) ended: {how}", front.pid.as_raw_nonzero()));
        }
        for app in self.apps.values() {
            let board = app.segment.board();
            board.settle_front();
            board.ring_all();
        }
        self.forget_going();
        self.pending.push_back(Event::FrontDied);
    }

    fn hear_mold(&mut self, generation: GenerationId) {
        loop {
            let Some(mold) = self.children.molds.get_mut(&generation) else { return };
            let Some(channel) = &mold.channel else { return };
            match channel.receive() {
                Ok(Arrival::Packet(packet, fds)) => match FromMold::parse(&packet) {
                    Ok(message) => self.mold_says(generation, message, fds),
                    Err(unknown) => {
                        let GenerationId { mount: _, number } = generation;
                        say(&format!("mold of generation {number}: {unknown}"));
                        mold.pidfd.iter().for_each(children::kill);
                    }
                },
                Ok(Arrival::Nothing) => return,
                Ok(Arrival::Closed) | Err(_) => {
                    mold.channel = None;
                    // A mold that cannot be talked to is of no use; one that has never said hello
                    // cannot be seen to die either.
                    match &mold.pidfd {
                        Some(pidfd) => children::kill(pidfd),
                        None => self.mold_died(generation),
                    }
                    return;
                }
            }
        }
    }

    fn mold_says(&mut self, generation: GenerationId, message: FromMold, mut fds: Vec<OwnedFd>) {
        let Some(mold) = self.children.molds.get_mut(&generation) else { return };
        match message {
            FromMold::Hello { pid } => {
                mold.pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
                mold.pidfd = fds.pop().or(mold.pidfd.take());
                self.send_init(generation);
            }
            FromMold::Ready { ruby, milliseconds } => {
                mold.ruby = ruby;
                let seconds = milliseconds as f64 / 1000.0;
                let tag = self.tag(generation.mount);
                let word = format!("{tag}the app is loaded ({seconds:.1} s), workers start");
                self.progress(generation, &word);
                self.pending.push_back(Event::MoldReady(generation));
            }
            FromMold::Failed { reason } => {
                self.pending.push_back(Event::MoldFailed(generation, reason));
            }
            FromMold::Forked { nr, pid } => {
                let seat = self.children.asked.remove(&(generation, nr));
                let (Some(seat), Some(pidfd)) = (seat, fds.pop()) else {
                    let number = generation.number;
                    say(&format!("generation {number} forked a worker {nr} nobody asked for"));
                    return;
                };
                let app = self.apps.get(&generation.mount);
                let lives = app.and_then(|app| app.settings.recycling.draw_age());
                let (born, is_worn, overdue) = (Instant::now(), false, false);
                let (is_retired, leaves) = (false, None);
                let worker =
                    Worker { pid, pidfd, seat, born, lives, is_worn, is_retired, leaves, overdue };
                self.count_start(generation.mount);
                self.children.workers.insert((generation, nr), worker);
                self.pending.push_back(Event::Forked(generation, nr));
            }
            FromMold::Up { nr } => self.pending.push_back(Event::Up(generation, nr)),
            FromMold::Unfit { nr, reason } => {
                if let Some(worker) = self.children.workers.get_mut(&(generation, nr)) {
                    worker.leaves = Some(Cause::Unfit);
                }
                self.pending.push_back(Event::Unfit(generation, nr, reason));
                // A hook in the mold has kept it from being forked: no death will follow.
                if self.children.asked.remove(&(generation, nr)).is_some() {
                    let (served, failed) = (false, true);
                    self.pending.push_back(Event::WorkerDied { generation, nr, served, failed });
                }
            }
            FromMold::Reaped { nr, pid, status } => {
                let tag = self.tag(generation.mount);
                worker_ended(&tag, generation.number, nr, pid, &status);
            }
        }
    }

    fn mold_died(&mut self, generation: GenerationId) {
        let Some(mold) = self.children.molds.remove(&generation) else { return };
        let how = self.children.how(mold.pid);
        // Workers it had been asked for and not told us about never start (see `Oribi::Mold`).
        self.children.asked.retain(|(other, _), _| *other != generation);
        self.pending.push_back(Event::MoldDied(generation, how));
    }

    fn worker_died(&mut self, generation: GenerationId, nr: u16) {
        let Some(worker) = self.children.workers.remove(&(generation, nr)) else { return };
        let (tag, number) = (self.tag(generation.mount), generation.number);
        if let Some(how) = self.children.how_orphan(worker.pid) {
            worker_ended(&tag, number, nr, worker.pid, &how);
        }
        self.count_death(generation, &worker);
        self.hear_seat(generation, nr, worker.seat);
        let Some(app) = self.apps.get_mut(&generation.mount) else { return };
        // One that was killed for a request is no reason to wait before the next one is forked.
        let served = worker.overdue || app.has_served(&worker);
        let failed = !worker.overdue && !app.is_told_to_leave(&worker);
        let Mount { threads, retry_idempotent, .. } = app.settings;
        let settled = app.segment.board().settle_seats(worker.seat, threads, retry_idempotent);
        for (index, bell) in self.bells.iter().enumerate() {
            if settled.ring_fronts >> index & 1 == 1 {
                let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
            }
        }
        app.pruning |= settled.returned > 0;
        if settled.lost + settled.returned > 0 {
            say(&format!(
                "{tag}worker {nr} gen {number} (pid {}) died with requests: {} lost, {} back in \
                 the queue",
                worker.pid, settled.lost, settled.returned
            ));
        }
        self.pending.push_back(Event::WorkerDied { generation, nr, served, failed });
    }
}

fn worker_ended(tag: &str, generation: u64, nr: u16, pid: u32, how: &str) {
    if how != "exit 0" {
        say(&format!("{tag}worker {nr} gen {generation} (pid {pid}) ended: {how}"));
    }
}
