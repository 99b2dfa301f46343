//! `oribi reload`: the settings are read anew by another process, for reading them takes a Ruby and
//! its time; what has changed becomes events.

use super::*;
use crate::options::{Changed, Changes, diff};
use crate::spawn;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};

/// More than settings can be, bytes.
const LONGEST: usize = 4 << 20;

/// Settings that are being read.
pub(in super::super) struct Reread {
    _reader: Reader,
    pipe: std::io::PipeReader,
    heard: Vec<u8>,
    client: u64,
    /// What `--mount` would have said beside the command line.
    more: Vec<String>,
}

/// Who reads them, with the Ruby it has started: ended with whoever wanted to know.
struct Reader(Pid);

impl Drop for Reader {
    fn drop(&mut self) {
        // Most often there is nobody any more.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

impl Reread {
    /// To poll it.
    pub(in super::super) fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl Supervisor {
    /// Begins to read the settings, with one mount more if somebody wants that.
    pub(super) fn reload(&mut self, client: u64, mount: Option<String>) -> Result<(), String> {
        if self.state.word() != "running" {
            return Err("the server is still starting".into());
        }
        if self.reread.is_some() {
            return Err("the settings are being read already: ask again".into());
        }
        if !self.heirs.is_empty() {
            return Err("a mount is just being replaced: ask again".into());
        }
        let Some(origin) = &self.origin else {
            return Err("this server's settings are its caller's: start it anew with others".into());
        };
        let mut more = self.more.clone();
        more.extend(mount);
        let (reader, pipe) = spawn::reread(origin, &more)
            .map_err(|error| format!("cannot read the settings: {error}"))?;
        let _reader = Reader(reader);
        self.reread = Some(Reread { _reader, pipe, heard: Vec::new(), client, more });
        self.keep(client, Wait::End, Some("reading the settings"));
        Ok(())
    }

    /// Whoever wanted the settings read has gone, perhaps because a file that is read never ends.
    pub(super) fn give_up_reading(&mut self, client: u64) {
        let is_gone = self.desk.as_ref().is_none_or(|desk| !desk.has(client));
        if self.reread.take_if(|reread| is_gone && reread.client == client).is_some() {
            say("reload: nobody waits for it any more; everything stays as it was");
        }
    }

    /// Something comes, or all has come.
    pub(in super::super) fn hear_settings(&mut self) {
        let Some(reread) = &mut self.reread else { return };
        let mut bytes = [0; 65536];
        match reread.pipe.read(&mut bytes) {
            Ok(0) => {}
            Ok(count) if reread.heard.len() + count < LONGEST => {
                return reread.heard.extend_from_slice(&bytes[..count]);
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Err(_) => {}
        }
        let Some(Reread { heard, client, more, .. }) = self.reread.take() else { return };
        let read = serde_json::from_slice::<Result<Settings, String>>(&heard);
        let read = read.unwrap_or_else(|_| Err("they could not be read: see the log".into()));
        let changes = read.and_then(|new| diff(&self.settings, &new).map(|found| (new, found)));
        if let Err(why) = changes.and_then(|(new, found)| self.apply(client, new, found, more)) {
            let why = format!("reload: {why}; everything stays as it was");
            say(&why);
            self.answer(client, &Reply::Failed(why));
        }
    }

    /// Everything that can fail comes first, so that nothing has been done when it does.
    fn apply(
        &mut self,
        client: u64,
        mut new: Settings,
        changes: Changes,
        more: Vec<String>,
    ) -> Result<(), String> {
        let changed = changes.changed.iter().map(|changed| changed.index);
        for index in changes.new.iter().copied().chain(changed) {
            if new.mounts[index].has_app() {
                self.lines.of(&new.mounts[index])?;
            }
        }
        // By their names now: one that serves something else comes under the same name.
        let gone = changes.gone.iter().filter_map(|name| self.named(name).ok());
        let mut waits: Vec<MountId> = gone.collect();
        let gone = waits.clone();
        for index in changes.new {
            waits.extend(self.begin(new.mounts[index].clone())?);
        }
        for changed in changes.changed {
            waits.extend(self.change(new.mounts[changed.index].clone(), &changed)?);
        }
        gone.into_iter().for_each(|id| self.unmount(id));
        std::mem::swap(&mut self.settings.mounts, &mut new.mounts);
        self.more = more;
        if waits.is_empty() {
            say("reload: done");
            self.answer(client, &Reply::Done("done".into()));
        } else {
            self.wait_for(client, What::Restart, &waits);
        }
        Ok(())
    }

    /// A mount comes; it is waited for if it has an app.
    fn begin(&mut self, mount: options::Mount) -> Result<Option<MountId>, String> {
        let has_app = mount.has_app();
        say(&format!("{}the mount comes, at {}", mount::tag(&mount), mount.place()));
        let id = self.mount(mount).map_err(|error| error.to_string())?;
        Ok(has_app.then_some(id))
    }

    /// A mount is to be another way; what of it is to be waited for.
    fn change(
        &mut self,
        mount: options::Mount,
        changed: &Changed,
    ) -> Result<Option<MountId>, String> {
        let Ok(id) = self.named(&mount.name) else { return self.begin(mount) };
        let Some(app) = self.apps.get_mut(&id) else {
            self.plain.insert(id, mount);
            self.route(id);
            return Ok(None);
        };
        if is_laid_out_otherwise(&app.settings, &mount) {
            let heir = self.begin(mount)?;
            self.heirs.extend(heir.map(|heir| (heir, id)));
            return Ok(heir);
        }
        if changed.restart {
            app.mold_line = self.lines.of(&mount)?;
        }
        let limits = App::limits(&mount, self.settings.shutdown_timeout);
        app.renew(mount);
        self.pending.push_back(Event::Limit(id, limits));
        if self.state.routed().any(|routed| routed == id) {
            self.route(id);
        }
        if !changed.restart {
            return Ok(None);
        }
        self.pending.push_back(Event::Restart(id));
        Ok(Some(id))
    }
}

/// How workers and seats belong together, and what molds are, is settled when a mount begins: with
/// other ones it is another mount in the same place.
fn is_laid_out_otherwise(one: &options::Mount, other: &options::Mount) -> bool {
    let layout = |mount: &options::Mount| (mount.threads, mount.engine, mount.isolation);
    layout(one) != layout(other)
}
