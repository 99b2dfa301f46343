//! From actions to what is really done.

use super::*;
use crate::children;
use crate::spawn;
use serde_json::{Value, json};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering::{Relaxed, Release};
use wire::control::{ToFront, ToMold};
use wire::doorbell::{ONCE, OPEN, SHUT};

impl Supervisor {
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::StartFront => self.start_front(),
            Action::Accept => self.tell_front(ToFront::Accept),
            Action::Yield => self.tell_front(ToFront::Yield),
            Action::Drain => self.leave(),
            Action::KillFront => {
                if let Some(front) = &mut self.children.front {
                    front.is_unwanted = true;
                    children::kill(&front.pidfd);
                }
            }
            Action::StartMold(generation) => {
                self.start_mold(generation);
                if self.state.serving() != 0 && generation > self.state.serving() {
                    self.notify.reloading(&format!("generation {generation} boots"));
                }
                self.progress(generation, &format!("generation {generation} boots"));
            }
            Action::QuitMold(generation) => self.tell_mold(generation, &ToMold::Quit, &[]),
            Action::KillMold(generation) => self.kill_mold(generation),
            Action::Fork { generation, nr, seat } => self.fork(generation, nr, seat),
            Action::Open(generation, nr) => self.open(generation, nr),
            Action::Retire(generation, nr) => self.retire(generation, nr),
            Action::Kill(generation, nr) => {
                let worker = self.children.workers.get(&(generation, nr));
                worker.iter().for_each(|worker| children::kill(&worker.pidfd));
            }
            Action::Serve(generation) => {
                let board = self.segment.board();
                board.header.serving.store(generation, Release);
                board.ring_all();
                self.tell_mold(generation, &ToMold::Serve, &[]);
            }
            Action::Settled { generation, outcome } => {
                self.settled(generation, &outcome);
                self.notify.ready(&self.status_line());
            }
            Action::Announce => self.announce(),
            Action::Say(line) => say(&line),
            Action::Exit(_) => {}
        }
    }

    fn start_front(&mut self) {
        let listeners: Vec<Value> = (self.listeners.iter())
            .map(|one| json!({ "fd": one.as_fd().as_raw_fd(), "address": one.address, "shared": one.shared }))
            .collect();
        let numbers =
            |fds: &[OwnedFd]| -> Vec<i32> { fds.iter().map(AsRawFd::as_raw_fd).collect() };
        let setup = json!({
            "supervisor": self.pidfd.as_raw_fd(),
            "counters": self.counters.as_fd().as_raw_fd(),
            "bells": numbers(&self.bells),
            "listeners": listeners,
            "options": self.settings.front,
            "identity": self.identity.as_ref().map(Identity::to_json),
        });
        let mut fds: Vec<BorrowedFd> = vec![self.pidfd.as_fd(), self.counters.as_fd()];
        fds.extend(self.bells.iter().map(AsFd::as_fd));
        fds.extend(self.listeners.iter().map(AsFd::as_fd));
        match spawn::front(setup, &fds) {
            Ok(spawned) => {
                self.children.front = Some(spawned.into());
                self.mount();
            }
            Err(error) => {
                say(&format!("cannot start the front: {error}"));
                self.pending.push_back(Event::FrontDied);
            }
        }
    }

    /// Tells the front of the mount, with the ways to its workers.
    fn mount(&self) {
        let mount = &self.settings.mounts[0];
        let mount = front::Mount {
            id: 0,
            name: mount.name.clone(),
            hosts: mount.hosts.clone(),
            path: mount.path.clone(),
            declared: mount.declared,
            serves: front::Serves::App {},
            options: mount.front,
        };
        let mut fds: Vec<BorrowedFd> = vec![self.segment.as_fd()];
        fds.extend(self.exchanges.fronts.iter().map(AsFd::as_fd));
        self.tell_front_with(&ToFront::Mount(json!(mount).to_string()), &fds);
    }

    pub(super) fn tell_front(&self, message: ToFront) {
        self.tell_front_with(&message, &[]);
    }

    fn tell_front_with(&self, message: &ToFront, fds: &[BorrowedFd]) {
        let Some(front) = &self.children.front else { return };
        let sent = front.channel.as_ref().map(|channel| channel.send(&message.to_string(), fds));
        if !matches!(sent, Some(Ok(()))) {
            children::kill(&front.pidfd);
        }
    }

    fn start_mold(&mut self, generation: u64) {
        if let Some(mold) = self.joined.take() {
            self.children.molds.insert(generation, mold);
            return;
        }
        match spawn::mold(&self.mold_line) {
            Ok(spawned) => {
                self.children.molds.insert(generation, spawned.into());
            }
            Err(error) => {
                let (program, place) = (self.mold_line.program(), self.mold_line.place());
                let why = format!("cannot run {program} in {}: {error}", place.directory.display());
                self.pending.push_back(Event::MoldFailed(generation, why.clone()));
                self.pending.push_back(Event::MoldDied(generation, why));
            }
        }
    }

    fn kill_mold(&mut self, generation: u64) {
        let Some(mold) = self.children.molds.get_mut(&generation) else { return };
        match &mold.pidfd {
            Some(pidfd) => children::kill(pidfd),
            // Not even introduced: it ends when it finds its socket closed.
            None => {
                self.children.molds.remove(&generation);
                self.pending.push_back(Event::MoldDied(generation, "no hello".into()));
            }
        }
    }

    fn tell_mold(&mut self, generation: u64, message: &ToMold, fds: &[BorrowedFd]) {
        let Some(mold) = self.children.molds.get(&generation) else { return };
        let sent = mold.channel.as_ref().map(|channel| channel.send(&message.to_string(), fds));
        if let Some(Err(error)) = sent {
            say(&format!("the mold of generation {generation} does not listen: {error}"));
            mold.pidfd.iter().for_each(children::kill);
        }
    }

    pub(super) fn send_init(&mut self, generation: u64) {
        let mut init = json!({
            "generation": generation,
            "mount": "/",
            "isolation": self.settings.mounts[0].isolation,
            "threads": self.settings.mounts[0].threads,
            "workers": self.state.target(),
            "environment": self.settings.mounts[0].environment,
            "rackup": self.settings.mounts[0].rackup().map(|path| path.to_string_lossy()),
            "front_threads": self.settings.front_threads,
            "shutdown_timeout": self.settings.shutdown_timeout.as_secs_f64(),
            "retry_idempotent": self.settings.mounts[0].retry_idempotent,
            "version": env!("CARGO_PKG_VERSION"),
            "error_log": self.error_log.as_ref().map(ErrorLog::mark),
            "error_log_format": self.settings.error_log_format,
            "confinement": self.mold_line.confinement.to_json(),
            "chdir": self.settings.process.chdir,
        });
        if let (Some(init), Ok(Value::Object(told))) =
            (init.as_object_mut(), serde_json::to_value(&self.settings.mounts[0].worker))
        {
            init.extend(told);
        }
        let Some(mold) = self.children.molds.get(&generation) else { return };
        let Some(channel) = &mold.channel else { return };
        let mut fds: Vec<BorrowedFd> = vec![
            self.segment.as_fd(),
            self.pidfd.as_fd(),
            self.bell.as_fd(),
            self.counters.as_fd(),
        ];
        fds.extend(self.bells.iter().map(AsFd::as_fd));
        fds.extend(self.exchanges.workers.iter().map(AsFd::as_fd));
        fds.extend(self.error_log.iter().map(ErrorLog::fd));
        if let Err(error) = channel.send(&ToMold::Init(init.to_string()).to_string(), &fds) {
            say(&format!("the mold of generation {generation} does not listen: {error}"));
            mold.pidfd.iter().for_each(children::kill);
        }
    }

    /// Seats are cleaned before they are given to a worker: nobody else looks at them then.
    fn fork(&mut self, generation: u64, nr: u16, seat: u16) {
        let board = self.segment.board();
        let mount = &self.settings.mounts[0];
        let end = seat + mount.threads;
        let (limit, gate) = match mount.isolation {
            Isolation::Fresh => (1, SHUT),
            _ => (mount.recycling.draw_limit(), OPEN),
        };
        for seat in &board.seats[usize::from(seat)..usize::from(end)] {
            seat.retire.store(0, Relaxed);
            seat.served.store(0, Relaxed);
            for word in [&seat.collecting, &seat.wear, &seat.alarm] {
                word.store(0, Relaxed);
            }
            for word in [&seat.deadline_ns, &seat.soft_ns] {
                word.store(0, Relaxed);
            }
            seat.limit.store(limit, Relaxed);
            seat.gate.store(gate, Relaxed);
            seat.worker.store(nr.into(), Relaxed);
        }
        board.bells.seats_used.fetch_max(u32::from(end), Release);
        self.children.asked.insert((generation, nr), seat);
        self.tell_mold(generation, &ToMold::Fork { nr, seat }, &[]);
    }

    /// A spare may take its one request from now on.
    fn open(&mut self, generation: u64, nr: u16) {
        let Some(worker) = self.children.workers.get(&(generation, nr)) else { return };
        let seat = &self.segment.board().seats[usize::from(worker.seat)];
        seat.gate.store(ONCE, Release);
        seat.ring();
    }

    fn retire(&mut self, generation: u64, nr: u16) {
        let Some(worker) = self.children.workers.get(&(generation, nr)) else { return };
        let board = self.segment.board();
        for seat in worker.seat..worker.seat + self.settings.mounts[0].threads {
            let seat = &board.seats[usize::from(seat)];
            seat.retire.store(1, Release);
            seat.ring();
        }
    }

    fn announce(&mut self) {
        let serving = self.children.molds.get(&self.state.serving());
        let ruby = serving.map_or("", |mold| mold.ruby.as_str());
        let settings = &self.settings.mounts[0];
        let seconds = self.began.elapsed().as_secs_f64();
        let mut lines = vec![format!(
            "{} serves, pid {}, booted in {seconds:.2} s",
            env!("CARGO_PKG_VERSION"),
            self.known_pid.as_raw_nonzero()
        )];
        lines.extend(self.addresses.iter().map(|one| format!("listening on {}", readable(one))));
        let plural = |n: u16| if n == 1 { "" } else { "s" };
        lines.push(format!(
            "{} worker{} of {} thread{}, Ruby {ruby}, environment {}",
            self.state.target(),
            plural(self.state.target()),
            settings.threads,
            plural(settings.threads),
            settings.environment
        ));
        lines.iter().for_each(|line| say(line));
        if let Some(daemon) = self.daemon.take() {
            daemon.serves(&lines);
        }
        self.notify.ready(&self.status_line());
    }

    /// A line for a service manager.
    fn status_line(&self) -> String {
        format!("generation {} serves", self.state.serving())
    }
}

/// A TCP address as something to click on.
pub(super) fn readable(address: &str) -> String {
    address.strip_prefix("tcp://").map_or(address.into(), |rest| format!("http://{rest}"))
}
