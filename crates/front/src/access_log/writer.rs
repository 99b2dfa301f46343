//! The thread that writes the access log: nobody who answers requests waits for a disk, or for
//! whoever reads standard output.

use crate::refuse;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lines are gathered for so long.
const GATHER: Duration = Duration::from_millis(100);
/// Bytes that wait to be written; what comes beyond that is lost, and the error log says so.
const WAITING_MAX: usize = 64 << 20;
/// The least time between two complaints.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// Where lines go.
pub struct Writer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines there was no room for.
    lost: u64,
    reopen: bool,
    closed: bool,
}

impl Shared {
    /// A thread that panicked has left at worst half a line.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Starts the thread; a file that cannot be opened is complained about and tried again by
    /// `reopen`.
    pub fn start(path: PathBuf) -> Writer {
        let shared = Arc::<Shared>::default();
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name("access log".into())
            .spawn(move || Sink::open(path).run(&theirs));
        let thread = thread.inspect_err(|error| complain(&format!("no thread: {error}")));
        Writer { shared, thread: Mutex::new(thread.ok()) }
    }

    /// Takes a line, its end included.
    pub fn add(&self, line: &[u8]) {
        let mut state = self.shared.lock();
        if state.waiting.len() + line.len() > WAITING_MAX {
            state.lost += 1;
            return;
        }
        let first = state.waiting.is_empty();
        state.waiting.extend_from_slice(line);
        drop(state);
        if first {
            self.shared.changed.notify_one();
        }
    }

    /// What waits goes into the old file, all that follows into the new one.
    pub fn reopen(&self) {
        self.shared.lock().reopen = true;
        self.shared.changed.notify_one();
    }

    /// Returns when all has been written.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.map(JoinHandle::join);
    }
}

fn complain(what: &str) {
    refuse::log(&format!("access log: {what}"));
}

/// The file, as the thread has it.
struct Sink {
    path: PathBuf,
    file: Option<Box<dyn Write>>,
    /// A write failed in the middle of a line.
    torn: bool,
    said: Option<Instant>,
}

impl Sink {
    fn open(path: PathBuf) -> Sink {
        let mut sink = Sink { path, file: None, torn: false, said: None };
        sink.reopen();
        sink
    }

    /// Keeps the old file when the new one cannot be opened.
    fn reopen(&mut self) {
        match target(&self.path) {
            Ok(file) => {
                self.file = Some(file);
                self.torn = false;
            }
            Err(error) => complain(&format!(
                "cannot open {}: {error}: see to it, then send USR1",
                self.path.display()
            )),
        }
    }

    fn run(mut self, shared: &Shared) {
        let mut lines = Vec::new();
        loop {
            let mut state = shared.lock();
            while state.waiting.is_empty() && !state.reopen && !state.closed {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if !state.reopen && !state.closed {
                let gathered = |state: &mut State| !state.reopen && !state.closed;
                let waited = shared.changed.wait_timeout_while(state, GATHER, gathered);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            std::mem::swap(&mut lines, &mut state.waiting);
            let lost = std::mem::take(&mut state.lost);
            let reopen = std::mem::take(&mut state.reopen);
            let closed = state.closed;
            drop(state);
            self.write(&lines, lost);
            lines.clear();
            lines.shrink_to(1 << 20);
            if reopen {
                self.reopen();
            }
            if closed {
                return;
            }
        }
    }

    fn write(&mut self, lines: &[u8], mut lost: u64) {
        let mut why = "they come faster than they can be written".to_string();
        let Some(file) = &mut self.file else { return };
        // Whoever reads the file finds the torn line by itself, and every other one whole.
        let mend: &[u8] = if self.torn { b"\n" } else { b"" };
        match write_all(file, mend, lines) {
            Ok(()) => self.torn = false,
            Err((written, error)) => {
                let rest = &lines[written..];
                self.torn = written > 0 && lines[written - 1] != b'\n' || self.torn && written == 0;
                lost += rest.iter().filter(|c| **c == b'\n').count() as u64;
                why = error.to_string();
            }
        }
        if lost > 0 && self.said.is_none_or(|said| said.elapsed() > SAY_EVERY) {
            self.said = Some(Instant::now());
            complain(&format!("{}: {why}: {lost} lines lost", self.path.display()));
        }
    }
}

/// As far as it goes; how many bytes of `lines` that was.
fn write_all(file: &mut dyn Write, mend: &[u8], lines: &[u8]) -> Result<(), (usize, io::Error)> {
    file.write_all(mend).map_err(|error| (0, error))?;
    let mut written = 0;
    while written < lines.len() {
        match file.write(&lines[written..]) {
            Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}

/// Opened to append, so that several may write into one file.
fn target(path: &PathBuf) -> io::Result<Box<dyn Write>> {
    // Not `io::stdout`, which keeps the last part of what it was given.
    match path.to_str() {
        Some("stdout") => Ok(Box::new(File::from(rustix::io::dup(rustix::stdio::stdout())?))),
        Some("stderr") => Ok(Box::new(File::from(rustix::io::dup(rustix::stdio::stderr())?))),
        _ => Ok(Box::new(OpenOptions::new().append(true).create(true).open(path)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn temporary(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("oribi-access-{}-{name}", std::process::id()))
    }

    #[test]
    fn lines_added_before_a_reopen_are_in_the_old_file() {
        let (path, old) = (temporary("a"), temporary("b"));
        let writer = Writer::start(path.clone());
        writer.add(b"one\n");
        let deadline = Instant::now() + Duration::from_secs(10);
        while !path.exists() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        std::fs::rename(&path, &old).unwrap();
        writer.add(b"two\n");
        writer.reopen();
        while !path.exists() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        writer.add(b"three\n");
        writer.close();
        let read = |path| std::fs::read_to_string(path).unwrap();
        assert_eq!((read(&old).as_str(), read(&path).as_str()), ("one\ntwo\n", "three\n"));
        std::fs::remove_file(old).unwrap();
        std::fs::remove_file(path).unwrap();
    }

    /// A disk with room for so many bytes.
    struct Small(Rc<std::cell::RefCell<Vec<u8>>>, Rc<std::cell::Cell<usize>>);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.1.get());
            if count == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.1.set(self.1.get() - count);
            self.0.borrow_mut().extend_from_slice(&bytes[..count]);
            Ok(count)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_torn_by_a_full_disk_stays_alone() {
        let (disk, room) = (Rc::default(), Rc::new(std::cell::Cell::new(6)));
        let file = Box::new(Small(Rc::clone(&disk), room.clone()));
        let mut sink = Sink { path: "small".into(), file: Some(file), torn: false, said: None };
        sink.write(b"one\ntwo\n", 0);
        sink.write(b"lost\n", 0);
        assert!(sink.torn);
        room.set(100);
        sink.write(b"three\n", 0);
        assert_eq!(disk.borrow().as_slice(), b"one\ntw\nthree\n");
        assert!(!sink.torn);
    }
}
