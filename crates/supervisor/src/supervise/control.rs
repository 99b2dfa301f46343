//! What clients of the control socket ask for, and what they are told.

mod desk;
mod facts;

use super::*;
use crate::control::{Reply, Request};
pub(super) use desk::{Desk, Wait};
use facts::Facts;

impl Supervisor {
    /// Opens the control socket. That the usual place cannot be had is no reason not to serve.
    pub(super) fn open_control(&mut self) -> Result<(), String> {
        let chosen = self.settings.process.control.as_deref();
        match Desk::open(chosen, self.known_pid.as_raw_nonzero().get() as u32) {
            Ok(desk) => self.desk = Some(desk),
            Err(why) if chosen.is_some() => return Err(why),
            Err(why) => say(&format!("oribi status and its like will not work here: {why}")),
        }
        Ok(())
    }

    pub(super) fn hear_client(&mut self, id: u64) {
        let request = self.desk.as_mut().and_then(|desk| desk.hear(id));
        let Some(request) = request else { return };
        let stopping = self.state.word() == "stopping";
        match request {
            Request::Status => self.answer(id, &Reply::Status(Box::new(self.status()))),
            Request::Stop { now: false } => {
                let event = self.stop("stop", false);
                self.keep(id, Wait::End, Some("finishing what runs and waits"), event);
            }
            Request::Stop { now: true } => {
                say("stop --now: ending at once");
                self.keep(id, Wait::End, None, Event::StopNow(hear::QUIT));
            }
            _ if stopping => self.answer(id, &Reply::Failed("the server is stopping".into())),
            Request::Restart => {
                let since = Instant::now();
                self.keep(id, Wait::Restart { since }, None, Event::Restart);
            }
            Request::Rollback => self.keep(id, Wait::Rollback, None, Event::Rollback),
            Request::Scale { workers } => {
                let reply = self.scale(workers);
                self.answer(id, &reply);
            }
            Request::ReopenLogs => {
                self.reopen_logs("reopen-logs");
                self.answer(id, &Reply::Done("logs are opened again".into()));
            }
        }
    }

    fn answer(&mut self, id: u64, reply: &Reply) {
        self.desk.iter_mut().for_each(|desk| desk.end(id, reply));
    }

    fn keep(&mut self, id: u64, wait: Wait, word: Option<&str>, event: Event) {
        self.desk.iter_mut().for_each(|desk| desk.keep(id, wait, word));
        self.pending.push_back(event);
    }

    fn scale(&mut self, workers: u16) -> Reply {
        let (before, most) = (self.state.target(), self.state.most_workers());
        if !(1..=most).contains(&workers) {
            let threads = self.settings.mounts[0].threads;
            let of = if threads == 1 { String::new() } else { format!(" of {threads} threads") };
            return Reply::Failed(format!(
                "{workers} workers{of} are not possible: 1 to {most} are"
            ));
        }
        self.pending.push_back(Event::Scale(workers));
        let plural = if workers == 1 { "" } else { "s" };
        let word = format!("{workers} worker{plural}, before {before}");
        say(&format!("scale: {word}"));
        Reply::Done(word)
    }

    /// Tells those who wait for a restart how far it has come.
    pub(super) fn progress(&mut self, generation: u64, word: &str) {
        // A mold of the generation that serves may boot too, in place of one that died.
        if generation != self.state.newest() || generation == self.state.serving() {
            return;
        }
        let Some(desk) = &mut self.desk else { return };
        for (id, wait) in desk.waiting() {
            if matches!(wait, Wait::Restart { .. }) {
                desk.keep(id, wait, Some(word));
            }
        }
    }

    /// A restart or a rollback has been decided.
    pub(super) fn settled(&mut self, generation: u64, outcome: &Result<(), String>) {
        let (newest, serving) = (self.state.newest(), self.state.serving());
        let Some(desk) = &mut self.desk else { return };
        for (id, wait) in desk.waiting() {
            let reply = match (wait, outcome) {
                // Another restart has taken its place: its outcome will do for all who wait.
                (Wait::Restart { .. }, _) if generation != newest => continue,
                // Merely a candidate that had to make room.
                (Wait::Rollback, _) if generation != serving => continue,
                (Wait::End, _) => continue,
                (_, Err(why)) => Reply::Failed(why.clone()),
                (Wait::Restart { since }, Ok(())) => {
                    let seconds = since.elapsed().as_secs_f64();
                    let word = format!("generation {generation} serves (booted in {seconds:.1} s)");
                    Reply::Done(word)
                }
                (Wait::Rollback, Ok(())) => {
                    Reply::Done(format!("generation {generation} serves again"))
                }
            };
            desk.end(id, &reply);
        }
    }

    fn status(&self) -> crate::control::status::Status {
        let facts = Facts {
            state: &self.state,
            children: &self.children,
            segment: &self.segment,
            threads: self.settings.mounts[0].threads,
            now_ns: wire::now_ns(),
        };
        let readable = |address: &String| act::readable(address);
        crate::control::status::Status {
            pid: self.known_pid.as_raw_nonzero().get() as u32,
            supervisor: getpid().as_raw_nonzero().get() as u32,
            uptime_ms: self.began.elapsed().as_millis() as u64,
            directory: self.directory.to_string_lossy().into_owned(),
            addresses: self.addresses.iter().map(readable).collect(),
            environment: self.settings.mounts[0].environment.clone(),
            ..facts.status()
        }
    }
}
