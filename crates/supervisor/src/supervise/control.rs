//! What clients of the control socket ask for, and what they are told.

mod desk;
mod facts;
mod reload;

use super::*;
use crate::control::{Reply, Request};
pub(super) use desk::Desk;
use desk::{Outcome, Wait, What};
use facts::Facts;
pub(super) use reload::Reread;

impl Supervisor {
    /// Opens the control socket. That the usual place cannot be had is no reason not to serve.
    pub(super) fn open_control(&mut self) -> Result<(), String> {
        let chosen = self.settings.process.control.as_deref();
        match Desk::open(chosen, self.known_pid.as_raw_nonzero().get() as u32) {
            Ok(desk) => self.desk = Some(desk),
            Err(why) if chosen.is_some() => return Err(why),
            Err(why) => {
                say(&format!("oribi status and its like will not work here: {why}"));
                self.desk = Some(Desk::closed());
            }
        }
        Ok(())
    }

    pub(super) fn hear_client(&mut self, id: u64) {
        let request = self.desk.as_mut().and_then(|desk| desk.hear(id));
        let Some(request) = request else {
            return self.give_up_reading(id);
        };
        if let Err(why) = self.obey(id, request) {
            self.answer(id, &Reply::Failed(why));
        }
    }

    fn obey(&mut self, id: u64, request: Request) -> Result<(), String> {
        let stopping = self.state.word() == "stopping";
        match request {
            Request::Status => self.answer(id, &Reply::Status(Box::new(self.status()))),
            Request::Stop { now: false, mount: None } => {
                let event = self.stop("stop", false);
                self.keep(id, Wait::End, Some("finishing what runs and waits"));
                self.pending.push_back(event);
            }
            Request::Stop { now: true, mount: None } => {
                say("stop --now: ending at once");
                self.keep(id, Wait::End, None);
                self.pending.push_back(Event::StopNow(hear::QUIT));
            }
            _ if stopping => return Err("the server is stopping".into()),
            Request::Stop { mount: Some(name), .. } => self.stop_mount(id, &name)?,
            Request::Restart { mount } => {
                let apps = match mount {
                    Some(name) => vec![self.app_named(&name)?],
                    None => self.apps.keys().copied().collect(),
                };
                self.wait_for(id, What::Restart, &apps);
                self.pending.extend(apps.into_iter().map(Event::Restart));
            }
            Request::Rollback { mount } => {
                let app = self.the_app(mount.as_deref(), "rollback")?;
                self.wait_for(id, What::Rollback, &[app]);
                self.pending.push_back(Event::Rollback(app));
            }
            Request::Scale { workers, mount } => {
                let app = self.the_app(mount.as_deref(), "scale")?;
                let word = self.scale(app, workers)?;
                self.answer(id, &Reply::Done(word));
            }
            Request::Reload { mount } => self.reload(id, mount)?,
            Request::ReopenLogs => {
                self.reopen_logs("reopen-logs");
                self.answer(id, &Reply::Done("logs are opened again".into()));
            }
        }
        Ok(())
    }

    /// The front brings somebody who wants to know how things are.
    pub(super) fn welcome_from_front(&mut self, stream: OwnedFd) {
        let now = Instant::now();
        if let Some(desk) = &mut self.desk {
            desk.bring(stream.into(), now);
        }
    }

    fn answer(&mut self, id: u64, reply: &Reply) {
        self.desk.iter_mut().for_each(|desk| desk.end(id, reply));
    }

    fn keep(&mut self, id: u64, wait: Wait, word: Option<&str>) {
        self.desk.iter_mut().for_each(|desk| desk.keep(id, wait.clone(), word));
    }

    fn wait_for(&mut self, id: u64, what: What, mounts: &[MountId]) {
        let (since, left) = (Instant::now(), mounts.iter().copied().collect());
        let outcome = Outcome { what, since, left, words: Vec::new(), failed: false };
        self.keep(id, Wait::Outcome(outcome), None);
    }

    /// The mount of this name, or at this path.
    fn named(&self, name: &str) -> Result<MountId, String> {
        let here = |id: &&MountId| self.state.standing(**id) != "leaving";
        let apps = self.apps.iter().map(|(id, app)| (id, &app.settings));
        let mut all: Vec<(&MountId, &options::Mount)> = apps.chain(&self.plain).collect();
        all.retain(|(id, _)| here(id));
        let wanted = |mount: &options::Mount| {
            mount.name == name
                || (name.starts_with('/') && mount.path == name.trim_end_matches('/'))
        };
        if let Some((id, _)) = all.iter().find(|(_, mount)| wanted(mount)) {
            return Ok(**id);
        }
        let names: Vec<&str> = all.iter().map(|(_, mount)| mount.name.as_str()).collect();
        Err(format!("no mount {name}: there are {}", names.join(", ")))
    }

    fn app_named(&self, name: &str) -> Result<MountId, String> {
        let id = self.named(name)?;
        let has_app = self.apps.contains_key(&id);
        has_app.then_some(id).ok_or(format!("{name} has no app: it is a proxy"))
    }

    /// The one that is meant where somebody may have named none.
    fn the_app(&self, name: Option<&str>, command: &str) -> Result<MountId, String> {
        let mut apps = self.apps.iter();
        match (name, apps.next(), apps.next()) {
            (Some(name), ..) => self.app_named(name),
            (None, Some((id, _)), None) => Ok(*id),
            _ => {
                let names: Vec<_> = self.apps.values().map(|app| &*app.settings.name).collect();
                Err(format!("{command}: name the mount that is meant: {}", names.join(", ")))
            }
        }
    }

    fn stop_mount(&mut self, client: u64, name: &str) -> Result<(), String> {
        let id = self.named(name)?;
        if self.apps.len() + self.plain.len() == 1 {
            return Err(format!("{name} is the only mount: `oribi stop` ends the server"));
        }
        self.wait_for(client, What::Stop, &[id]);
        self.unmount(id);
        Ok(())
    }

    fn scale(&mut self, id: MountId, workers: u16) -> Result<String, String> {
        let (before, most) = (self.state.target(id), self.state.most_workers(id));
        let tag = self.tag(id);
        if !(1..=most).contains(&workers) {
            let threads = self.apps.get(&id).map_or(1, |app| app.settings.threads);
            let of = if threads == 1 { String::new() } else { format!(" of {threads} threads") };
            return Err(format!("{workers} workers{of} are not possible: 1 to {most} are"));
        }
        self.pending.push_back(Event::Scale(id, workers));
        let plural = if workers == 1 { "" } else { "s" };
        let word = format!("{workers} worker{plural}, before {before}");
        say(&format!("{tag}scale: {word}"));
        Ok(word)
    }

    /// Tells those who wait for a restart how far it has come.
    pub(super) fn progress(&mut self, generation: GenerationId, word: &str) {
        let GenerationId { mount, number } = generation;
        // A mold of the generation that serves may boot too, in place of one that died.
        if number != self.state.newest(mount) || number == self.state.serving(mount) {
            return;
        }
        let concerns = |wait: &Wait| match wait {
            Wait::Outcome(outcome) => {
                outcome.what == What::Restart && outcome.left.contains(&mount)
            }
            Wait::End => false,
        };
        self.desk.iter_mut().for_each(|desk| desk.progress(word, concerns));
    }

    /// A restart, a rollback or a new mount has been decided.
    pub(super) fn settled(&mut self, generation: GenerationId, result: &Result<(), String>) {
        let GenerationId { mount, number } = generation;
        let (newest, serving) = (self.state.newest(mount), self.state.serving(mount));
        let tag = self.tag(mount);
        let Some(desk) = &mut self.desk else { return };
        desk.settle(|wait| {
            let Wait::Outcome(outcome) = wait else { return None };
            let is_final = match outcome.what {
                // Another restart has taken its place: its outcome will do for all who wait.
                What::Restart => number == newest,
                // Merely a candidate that had to make room.
                What::Rollback => number == serving,
                What::Stop => false,
            };
            if !is_final || !outcome.left.remove(&mount) {
                return None;
            }
            let word = match (result, outcome.what) {
                (Err(why), _) => why.clone(),
                (Ok(()), What::Rollback) => format!("generation {number} serves again"),
                (Ok(()), _) => {
                    let seconds = outcome.since.elapsed().as_secs_f64();
                    format!("generation {number} serves (booted in {seconds:.1} s)")
                }
            };
            outcome.words.push(format!("{tag}{word}"));
            outcome.failed |= result.is_err();
            outcome.reply()
        });
    }

    /// Nothing is left of a mount.
    pub(super) fn forget(&mut self, id: MountId) {
        let tag = self.tag(id);
        let app = self.apps.remove(&id).map(|app| app.settings);
        let Some(mount) = app.or_else(|| self.going.remove(&id)) else { return };
        match self.heirs.remove(&id).and_then(|before| self.apps.get(&before)) {
            // It was to take the place of one that now stays as it was.
            Some(before) => {
                let stays = &before.settings;
                let mut all = self.settings.mounts.iter_mut();
                if let Some(said) = all.find(|one| one.name == stays.name) {
                    said.clone_from(stays);
                }
            }
            None => self.strike_out(&mount),
        }
        say(&format!("{tag}the mount is gone"));
        let Some(desk) = &mut self.desk else { return };
        desk.settle(|wait| {
            let Wait::Outcome(outcome) = wait else { return None };
            if !outcome.left.remove(&id) {
                return None;
            }
            outcome.words.push(format!("{tag}the mount is gone"));
            outcome.failed |= outcome.what == What::Rollback;
            outcome.reply()
        });
    }

    /// Settings that are read anew have it again, unless it was only added by a command.
    fn strike_out(&mut self, mount: &options::Mount) {
        let mut others = self.apps.values().map(|app| &app.settings).chain(self.plain.values());
        if others.any(|other| other.name == mount.name) {
            return;
        }
        self.settings.mounts.retain(|other| other.name != mount.name);
        let place = mount.place();
        let is_there = |added: &String| {
            let at = added.split('=').next().unwrap_or_default();
            at.trim_end_matches('/') == place.trim_end_matches('/')
        };
        self.more.retain(|added| !is_there(added));
    }

    fn status(&self) -> crate::control::status::Status {
        let facts = Facts {
            state: &self.state,
            children: &self.children,
            apps: &self.apps,
            plain: &self.plain,
            now_ns: wire::now_ns(),
        };
        let readable = |address: &String| act::readable(address);
        crate::control::status::Status {
            pid: self.known_pid.as_raw_nonzero().get() as u32,
            supervisor: getpid().as_raw_nonzero().get() as u32,
            uptime_ms: self.began.elapsed().as_millis() as u64,
            directory: self.place.directory.to_string_lossy().into_owned(),
            addresses: self.addresses.iter().map(readable).collect(),
            ..facts.status()
        }
    }
}

impl Outcome {
    /// The last line, once everything is decided.
    fn reply(&self) -> Option<Reply> {
        if !self.left.is_empty() {
            return None;
        }
        let words = self.words.join("; ");
        Some(if self.failed { Reply::Failed(words) } else { Reply::Done(words) })
    }
}
