//! Watched files. When one has changed and all have been still for a moment, a new generation boots
//! as after a USR2. They are looked at by their names from the supervisor's loop; where nothing is
//! watched, it never wakes for this.

use super::*;
use crate::pattern::Pattern;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// How often they are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// How long they must have been as they are: who deploys writes more than one file.
const STILL: Duration = Duration::from_millis(100);
/// A look that took long is followed by a pause of so many times that.
const PAUSES: u32 = 20;

/// What tells a file from what it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    length: u64,
    identity: (u64, u64),
}

type Stamps = BTreeMap<PathBuf, Stamp>;

/// The watched files, as they were and as they are.
pub(super) struct Changes {
    patterns: Vec<Pattern>,
    /// As they were when the newest generation began to load.
    loaded: Stamps,
    /// As they were at the last look, if that was not so.
    seen: Option<Stamps>,
    next: Instant,
}

impl Changes {
    /// Files and patterns as somebody in `place` means them.
    pub(super) fn new(place: &Place, watch: &[String], now: Instant) -> Changes {
        let pattern = |one: &String| Pattern::new(&place.directory, one).ok();
        let patterns: Vec<Pattern> = watch.iter().filter_map(pattern).collect();
        let loaded = look(&patterns);
        Changes { patterns, loaded, seen: None, next: now + LOOK_EVERY }
    }

    fn due_in(&self, now: Instant) -> Option<Duration> {
        (!self.patterns.is_empty()).then(|| self.next.saturating_duration_since(now))
    }

    /// Looks, if it is time; what has changed, once that is still.
    fn changed(&mut self, now: Instant) -> Option<Vec<PathBuf>> {
        if self.patterns.is_empty() || now < self.next {
            return None;
        }
        let stamps = look(&self.patterns);
        let pause = if stamps == self.loaded { LOOK_EVERY } else { STILL };
        self.next = now + pause.max(now.elapsed() * PAUSES);
        if stamps == self.loaded {
            self.seen = None;
            return None;
        }
        if self.seen.as_ref() != Some(&stamps) {
            self.seen = Some(stamps);
            return None;
        }
        self.seen = None;
        let before = std::mem::replace(&mut self.loaded, stamps);
        Some(difference(&before, &self.loaded))
    }
}

fn look(patterns: &[Pattern]) -> Stamps {
    let mut stamps = Stamps::new();
    let mut note = |path: PathBuf| {
        let Ok(found) = fs::metadata(&path) else { return };
        let stamp = Stamp {
            modified: (found.mtime(), found.mtime_nsec()),
            length: found.len(),
            identity: (found.dev(), found.ino()),
        };
        stamps.insert(path, stamp);
    };
    patterns.iter().for_each(|pattern| pattern.find(&mut note));
    stamps
}

/// The files that are not what they were.
fn difference(before: &Stamps, after: &Stamps) -> Vec<PathBuf> {
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    let other = after.iter().filter(|(path, stamp)| before.get(*path) != Some(*stamp));
    gone.chain(other.map(|(path, _)| path)).cloned().collect()
}

fn told(changed: &[PathBuf]) -> String {
    let first = changed.first().map_or(String::new(), |path| path.display().to_string());
    match changed.len() {
        1 => format!("{first} has changed"),
        more => format!("{first} and {} more have changed", more - 1),
    }
}

impl Supervisor {
    /// How long until the watched files are looked at again.
    pub(super) fn changes_due_in(&self) -> Option<Duration> {
        let due = || self.apps.values().filter_map(|app| app.changes.due_in(Instant::now())).min();
        self.state.takes_restarts().then(due).flatten()
    }

    /// Looks at the watched files, if it is time. What changes while no restart is possible is seen
    /// as soon as one is.
    pub(super) fn look_for_changes(&mut self) {
        if !self.state.takes_restarts() {
            return;
        }
        let changed: Vec<(MountId, Vec<PathBuf>)> = (self.apps.iter_mut())
            .filter_map(|(id, app)| Some((*id, app.changes.changed(Instant::now())?)))
            .collect();
        changed.into_iter().for_each(|(id, files)| self.note_changes(id, &files));
    }

    fn note_changes(&mut self, id: MountId, changed: &[PathBuf]) {
        say(&format!("{}watch: {}", self.tag(id), told(changed)));
        let settings = self.renewal.as_ref().filter(|renewal| changed.contains(&renewal.file));
        let event = match settings.map(|renewal| (renewal.check)()) {
            None => Event::Restart(id),
            Some(Ok(())) => {
                say("new settings: ending; the next request starts the server that has them");
                self.stops += 1;
                Event::Stop
            }
            Some(Err(why)) => return say(&format!("{why}: the settings stay as they were")),
        };
        self.pending.push_back(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_when_it_is_still() {
        let root = std::env::temp_dir().join(format!("oribi-[watch]-{}", std::process::id()));
        fs::create_dir_all(root.join("lib")).unwrap();
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        write("app.rb", "1");
        let began = Instant::now();
        let watch = ["app.rb", "lib/**/*.rb"].map(String::from);
        let mut changes = Changes::new(&Place::of(root.clone()), &watch, began);
        let mut at = began;
        let mut later = |changes: &mut Changes| {
            at += Duration::from_secs(3600);
            changes.changed(at)
        };
        assert_eq!(later(&mut changes), None);

        write("app.rb", "23");
        assert_eq!(later(&mut changes), None, "not yet: it may still be written to");
        write("app.rb", "456");
        assert_eq!(later(&mut changes), None);
        let changed = later(&mut changes).unwrap();
        assert_eq!(changed, [root.join("app.rb")]);
        assert!(told(&changed).ends_with("app.rb has changed"));
        assert_eq!(later(&mut changes), None);

        write("lib/new.rb", "");
        write("lib/.hidden.rb", "");
        fs::remove_file(root.join("app.rb")).unwrap();
        assert_eq!(later(&mut changes), None);
        assert!(told(&later(&mut changes).unwrap()).ends_with("app.rb and 1 more have changed"));

        // There and back again.
        write("lib/other.rb", "");
        assert_eq!(later(&mut changes), None);
        fs::remove_file(root.join("lib/other.rb")).unwrap();
        assert_eq!([later(&mut changes), later(&mut changes)], [None, None]);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn nothing_is_due_where_nothing_is_watched() {
        let changes = Changes::new(&Place::of("/".into()), &[], Instant::now());
        assert_eq!(changes.due_in(Instant::now()), None);
    }
}
