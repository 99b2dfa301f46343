//! From actions to what is really done.

use super::*;
use crate::children;
use crate::options::{Engine, Isolation, Serves};
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
            Action::Accept => self.tell_front(ToFront::Accept, &[]),
            Action::Yield => self.tell_front(ToFront::Yield, &[]),
            Action::Drain => self.leave(),
            Action::KillFront => {
                if let Some(front) = &mut self.children.front {
                    front.is_unwanted = true;
                    children::kill(&front.pidfd);
                }
            }
            Action::Route(id) => {
                self.route(id);
                // Only now: in between both are there, and either will do.
                if let Some(before) = self.heirs.remove(&id) {
                    self.unmount(before);
                }
            }
            Action::Unroute(id) => self.tell_front(ToFront::Unmount(id), &[]),
            Action::Forget(id) => self.forget(id),
            Action::StartMold(generation) => {
                self.start_mold(generation);
                let (serving, number) = (self.state.serving(generation.mount), generation.number);
                let word = format!("{}generation {number} boots", self.tag(generation.mount));
                if serving != 0 && number > serving {
                    self.notify.reloading(&word);
                }
                self.progress(generation, &word);
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
                let Some(app) = self.apps.get(&generation.mount) else { return };
                let board = app.segment.board();
                board.header.serving.store(generation.number, Release);
                board.ring_all();
                self.tell_mold(generation, &ToMold::Serve, &[]);
            }
            Action::Settled { generation, outcome } => {
                self.count_settled(generation, &outcome);
                self.settled(generation, &outcome);
                if self.state.word() == "running" {
                    self.notify.ready(&self.status_line());
                }
            }
            Action::Announce => self.announce(),
            Action::Say(line) => say(&line),
            Action::Exit(_) => {}
        }
    }

    /// It is told of its mounts before it may accept.
    fn start_front(&mut self) {
        let listeners: Vec<Value> = (self.listeners.iter())
            .map(|one| json!({ "fd": one.as_fd().as_raw_fd(), "address": one.address, "shared": one.shared }))
            .collect();
        let admin: Vec<Value> = (self.admin.iter())
            .map(|one| json!({ "fd": one.as_fd().as_raw_fd(), "address": one.address }))
            .collect();
        let numbers =
            |fds: &[OwnedFd]| -> Vec<i32> { fds.iter().map(AsRawFd::as_raw_fd).collect() };
        let setup = json!({
            "supervisor": self.pidfd.as_raw_fd(),
            "counters": self.counters.as_fd().as_raw_fd(),
            "bells": numbers(&self.bells),
            "listeners": listeners,
            "admin": admin,
            "options": self.settings.front,
            "identity": self.identity.as_ref().map(Identity::to_json),
        });
        let mut fds: Vec<BorrowedFd> = vec![self.pidfd.as_fd(), self.counters.as_fd()];
        fds.extend(self.bells.iter().map(AsFd::as_fd));
        fds.extend(self.listeners.iter().chain(&self.admin).map(AsFd::as_fd));
        match spawn::front(setup, &fds) {
            Ok(spawned) => {
                self.counters.server().fronts.fetch_add(1, Relaxed);
                self.children.front = Some(spawned.into());
            }
            Err(error) => {
                say(&format!("cannot start the front: {error}"));
                self.pending.push_back(Event::FrontDied);
                return;
            }
        }
        let routed: Vec<MountId> = self.plain.keys().copied().chain(self.state.routed()).collect();
        routed.into_iter().for_each(|id| self.route(id));
    }

    /// Tells the front of a mount.
    pub(super) fn route(&mut self, id: MountId) {
        let app = self.apps.get(&id);
        let Some(settings) = app.map(|app| &app.settings).or_else(|| self.plain.get(&id)) else {
            return;
        };
        let mut fds: Vec<BorrowedFd> = Vec::new();
        if let Some(app) = app {
            fds.push(app.segment.as_fd());
            fds.extend(app.exchanges.fronts.iter().map(AsFd::as_fd));
        }
        let message = ToFront::Mount(json!(described(id, settings)).to_string());
        self.tell_front(message, &fds);
    }

    pub(super) fn tell_front(&self, message: ToFront, fds: &[BorrowedFd]) {
        let Some(front) = &self.children.front else { return };
        let sent = front.channel.as_ref().map(|channel| channel.send(&message.to_string(), fds));
        if !matches!(sent, Some(Ok(()))) {
            children::kill(&front.pidfd);
        }
    }

    fn start_mold(&mut self, generation: GenerationId) {
        let Some(app) = self.apps.get_mut(&generation.mount) else { return };
        if let Some(mold) = app.joined.take() {
            self.children.molds.insert(generation, mold);
            return;
        }
        match spawn::mold(&app.mold_line) {
            Ok(spawned) => {
                self.children.molds.insert(generation, spawned.into());
            }
            Err(error) => {
                let (program, place) = (app.mold_line.program(), app.mold_line.place());
                let why = format!("cannot run {program} in {}: {error}", place.directory.display());
                self.pending.push_back(Event::MoldFailed(generation, why.clone()));
                self.pending.push_back(Event::MoldDied(generation, why));
            }
        }
    }

    fn kill_mold(&mut self, generation: GenerationId) {
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

    fn tell_mold(&mut self, generation: GenerationId, message: &ToMold, fds: &[BorrowedFd]) {
        let Some(mold) = self.children.molds.get(&generation) else { return };
        let sent = mold.channel.as_ref().map(|channel| channel.send(&message.to_string(), fds));
        if let Some(Err(error)) = sent {
            self.complain(generation, &error);
            mold.pidfd.iter().for_each(children::kill);
        }
    }

    fn complain(&self, generation: GenerationId, error: &io::Error) {
        let GenerationId { mount, number } = generation;
        say(&format!(
            "{}the mold of generation {number} does not listen: {error}",
            self.tag(mount)
        ));
    }

    pub(super) fn send_init(&mut self, generation: GenerationId) {
        let Some(app) = self.apps.get(&generation.mount) else { return };
        let settings = &app.settings;
        let mut init = json!({
            "generation": generation.number,
            "mount": settings.name,
            "path": settings.path,
            "engine": settings.engine,
            "isolation": settings.isolation,
            "limit_memory": settings.rlimits.memory,
            "limit_file_size": settings.rlimits.file_size,
            "threads": settings.threads,
            "workers": self.state.target(generation.mount),
            "environment": settings.environment,
            "rackup": settings.rackup().map(|path| path.to_string_lossy()),
            "front_threads": self.settings.front_threads,
            "shutdown_timeout": self.settings.shutdown_timeout.as_secs_f64(),
            "retry_idempotent": settings.retry_idempotent,
            "version": env!("CARGO_PKG_VERSION"),
            "error_log": self.error_log.as_ref().map(ErrorLog::mark),
            "error_log_format": self.settings.error_log_format,
            "confinement": app.mold_line.confinement.to_json(),
            "chdir": settings.chdir.as_ref().or(self.settings.process.chdir.as_ref()),
        });
        if let (Some(init), Ok(Value::Object(told))) =
            (init.as_object_mut(), serde_json::to_value(&settings.worker))
        {
            init.extend(told);
        }
        let Some(mold) = self.children.molds.get(&generation) else { return };
        let Some(channel) = &mold.channel else { return };
        let mut fds: Vec<BorrowedFd> =
            vec![app.segment.as_fd(), self.pidfd.as_fd(), self.bell.as_fd(), self.counters.as_fd()];
        fds.extend(self.bells.iter().map(AsFd::as_fd));
        fds.extend(app.exchanges.workers.iter().map(AsFd::as_fd));
        fds.extend(self.error_log.iter().map(ErrorLog::fd));
        if let Err(error) = channel.send(&ToMold::Init(init.to_string()).to_string(), &fds) {
            self.complain(generation, &error);
            mold.pidfd.iter().for_each(children::kill);
        }
    }

    /// Seats are cleaned before they are given to a worker: nobody else looks at them then.
    fn fork(&mut self, generation: GenerationId, nr: u16, seat: u16) {
        let Some(app) = self.apps.get(&generation.mount) else { return };
        let board = app.segment.board();
        let end = seat + app.settings.threads;
        let (limit, gate) = match app.settings.isolation {
            // A worker of mruby's makes a fresh interpreter of its own after each request.
            Isolation::Fresh if app.settings.engine == Engine::Cruby => (1, SHUT),
            _ => (app.settings.recycling.draw_limit(), OPEN),
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
    fn open(&mut self, generation: GenerationId, nr: u16) {
        let Some(worker) = self.children.workers.get(&(generation, nr)) else { return };
        let Some(app) = self.apps.get(&generation.mount) else { return };
        let seat = &app.segment.board().seats[usize::from(worker.seat)];
        seat.gate.store(ONCE, Release);
        seat.ring();
    }

    fn retire(&mut self, generation: GenerationId, nr: u16) {
        let Some(worker) = self.children.workers.get_mut(&(generation, nr)) else { return };
        let Some(app) = self.apps.get(&generation.mount) else { return };
        worker.is_retired = true;
        for seat in app.seats(worker) {
            seat.retire.store(1, Release);
            seat.ring();
        }
    }

    fn announce(&mut self) {
        let seconds = self.began.elapsed().as_secs_f64();
        let mut lines = vec![format!(
            "{} serves, pid {}, booted in {seconds:.2} s",
            env!("CARGO_PKG_VERSION"),
            self.known_pid.as_raw_nonzero()
        )];
        lines.extend(self.addresses.iter().map(|one| format!("listening on {}", readable(one))));
        lines.extend(self.admin.iter().map(|one| format!("admin on {}", readable(&one.address))));
        lines.extend(self.apps.iter().map(|(id, app)| self.introduce(*id, &app.settings)));
        lines.extend(
            self.plain
                .values()
                .map(|one| format!("{}at {}, {}", mount::tag(one), one.place(), backends(one))),
        );
        lines.iter().for_each(|line| say(line));
        if let Some(daemon) = self.daemon.take() {
            daemon.serves(&lines);
        }
        self.notify.ready(&self.status_line());
    }

    /// A mount with an app in a line.
    fn introduce(&self, id: MountId, settings: &options::Mount) -> String {
        let number = self.state.serving(id);
        let mold = self.children.molds.get(&GenerationId { mount: id, number });
        let ruby = mold.map_or("", |mold| mold.ruby.as_str());
        let title = if settings.engine == Engine::Mruby { "mruby " } else { "Ruby " };
        let workers = self.state.target(id);
        let plural = |n: u16| if n == 1 { "" } else { "s" };
        let at = if settings.declared {
            format!("{}at {}, ", mount::tag(settings), settings.place())
        } else {
            String::new()
        };
        format!(
            "{at}{workers} worker{} of {} thread{}, {}{ruby}, environment {}",
            plural(workers),
            settings.threads,
            plural(settings.threads),
            title,
            settings.environment
        )
    }

    /// A line for a service manager.
    fn status_line(&self) -> String {
        let numbers: Vec<String> = (self.apps.iter())
            .map(|(id, app)| {
                format!(
                    "{}generation {} serves",
                    mount::tag(&app.settings),
                    self.state.serving(*id)
                )
            })
            .collect();
        numbers.join(", ")
    }
}

/// Where a proxy sends its requests.
fn backends(mount: &options::Mount) -> String {
    match &mount.serves {
        Serves::Proxy { to, .. } => {
            let to: Vec<String> = to.iter().map(ToString::to_string).collect();
            format!("proxy of {}", to.join(", "))
        }
        Serves::App { .. } => String::new(),
    }
}

/// A mount for the front.
fn described(id: MountId, mount: &options::Mount) -> front::Mount {
    front::Mount {
        id: id.0,
        name: mount.name.clone(),
        hosts: mount.hosts.clone(),
        path: mount.path.clone(),
        declared: mount.declared,
        serves: match &mount.serves {
            Serves::App { .. } => front::Serves::App {},
            Serves::Proxy { to, max } => {
                front::Serves::Proxy { to: to.iter().map(ToString::to_string).collect(), max: *max }
            }
        },
        options: mount.front,
    }
}

/// A TCP address as something to click on.
pub(super) fn readable(address: &str) -> String {
    address.strip_prefix("tcp://").map_or(address.into(), |rest| format!("http://{rest}"))
}
