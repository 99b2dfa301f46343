//! Bodies on disk: unlinked files in `spool_dir`, written and read beside the front threads, which
//! a slow disk must not hold up.

use crate::refuse::log;
use bytes::Bytes;
use rustix::fs::{Mode, OFlags, open, statfs, unlink};
use rustix::io::Errno;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

/// Fewer bytes than this are not worth a step on disk of their own, unless they are the last.
pub const PIECE: usize = 256 * 1024;
/// `f_type` of a tmpfs, statfs(2).
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

/// What went wrong on disk: one line with the remedy.
#[derive(Debug)]
pub struct Failed {
    directory: &'static Path,
    error: io::Error,
}

impl Failed {
    fn remedy(&self) -> &'static str {
        match Errno::from_io_error(&self.error) {
            Some(Errno::NOSPC | Errno::DQUOT) => {
                "free space there, or let spool_dir name another directory"
            }
            Some(Errno::FBIG) => "raise the limit on file sizes (ulimit -f)",
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
                "make it writable, or let spool_dir name another directory"
            }
            Some(Errno::NOENT | Errno::NOTDIR) => {
                "create it, or let spool_dir name another directory"
            }
            Some(Errno::MFILE | Errno::NFILE) => "raise the limit on open files (ulimit -n)",
            _ => "look at the disk, or let spool_dir name another directory",
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spool_dir {}: {}: {}", self.directory.display(), self.error, self.remedy())
    }
}

impl std::error::Error for Failed {}

/// A step on disk under way, and then what came of it. Dropped, it is still done.
pub struct Job<T>(&'static Path, JoinHandle<Result<T, Failed>>);

impl<T> Future for Job<T> {
    type Output = Result<T, Failed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let done = ready!(Pin::new(&mut self.1).poll(context));
        // Only a panic, or a runtime that ends, leaves a step without a result.
        let lost = |error| Err(Failed { directory: self.0, error: io::Error::other(error) });
        Poll::Ready(done.unwrap_or_else(lost))
    }
}

struct Inner {
    directory: &'static Path,
    file: OnceLock<File>,
}

impl Inner {
    /// The file, which the first write creates.
    fn file(&self) -> io::Result<&File> {
        if self.file.get().is_none() {
            let file = create(self.directory)?;
            return Ok(self.file.get_or_init(|| file));
        }
        self.file.get().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn run<T: Send + 'static>(
        self: &Arc<Self>,
        step: impl FnOnce(&File) -> io::Result<T> + Send + 'static,
    ) -> Job<T> {
        let (inner, directory) = (self.clone(), self.directory);
        let step = move || {
            let done = inner.file().and_then(step);
            done.map_err(|error| Failed { directory, error })
        };
        Job(directory, spawn_blocking(step))
    }
}

/// Bytes on disk in a file without a name, which is gone when nobody has it open any more.
///
/// Made on a thread of a tokio runtime; so are its steps.
pub struct Spool {
    inner: Arc<Inner>,
    length: u64,
}

impl Spool {
    /// Nothing yet, and no file: the first `append` creates it.
    pub fn new(directory: &'static Path) -> Spool {
        Spool { inner: Arc::new(Inner { directory, file: OnceLock::new() }), length: 0 }
    }

    /// Writes behind what is there already. The job is to be awaited before the next `append` and
    /// before what it writes is read.
    pub fn append(&mut self, bytes: Bytes) -> Job<()> {
        let offset = self.length;
        self.length += bytes.len() as u64;
        self.inner.run(move |file| file.write_all_at(&bytes, offset))
    }

    /// Reads `length` bytes, which must have been written, from `offset`.
    pub fn read_at(&self, offset: u64, length: usize) -> Job<Bytes> {
        self.inner.run(move |file| {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset)?;
            Ok(bytes.into())
        })
    }

    /// Bytes appended so far.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// The file, once something was appended.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.file.get().map(File::as_fd)
    }
}

impl Drop for Spool {
    /// The last close gives the file's blocks back, and may have to wait for the disk to do so.
    fn drop(&mut self) {
        if self.length > 0
            && let Ok(runtime) = Handle::try_current()
        {
            let inner = self.inner.clone();
            runtime.spawn_blocking(move || drop(inner));
        }
    }
}

/// A file without a name, for this user's eyes only.
fn create(directory: &Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::EXCL;
    match open(directory, flags | OFlags::TMPFILE, mode) {
        // File systems that cannot do it, and kernels that do not know the flag.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
        opened => return Ok(opened?.into()),
    }
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let (pid, number) = (std::process::id(), COUNT.fetch_add(1, Relaxed));
        let path = directory.join(format!(".oribi-{pid}-{number}"));
        match open(&path, flags | OFlags::CREATE | OFlags::NOFOLLOW, mode) {
            Err(Errno::EXIST) => {}
            opened => {
                let file = opened?.into();
                unlink(&path)?;
                return Ok(file);
            }
        }
    }
}

/// Says in the log, at the start, why bodies will not go to disk.
pub fn check(directory: &'static Path) {
    if let Err(error) = create(directory) {
        let failed = Failed { directory, error };
        return log(&format!("bodies that do not fit into memory will be refused: {failed}"));
    }
    if statfs(directory).is_ok_and(|info| info.f_type == TMPFS) {
        let directory = directory.display();
        log(&format!(
            "spool_dir {directory} is memory (tmpfs), so large bodies are no smaller there: let \
             it name a directory on a disk"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_a_runtime<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    }

    fn directory() -> &'static Path {
        Box::leak(std::env::temp_dir().into_boxed_path())
    }

    #[test]
    fn what_was_appended_is_read_and_has_no_name() {
        on_a_runtime(async {
            let mut spool = Spool::new(directory());
            assert!(spool.fd().is_none());
            spool.append(Bytes::from_static(b"one, ")).await.unwrap();
            spool.append(Bytes::from_static(b"two")).await.unwrap();
            assert_eq!(spool.len(), 8);
            assert_eq!(spool.read_at(3, 5).await.unwrap(), &b", two"[..]);
            let file = rustix::fs::fstat(spool.fd().unwrap()).unwrap();
            assert_eq!((file.st_nlink, file.st_mode & 0o777), (0, 0o600));
            assert!(spool.read_at(3, 6).await.is_err());
        });
    }

    #[test]
    fn a_full_disk_and_a_forbidden_directory_have_their_remedies() {
        let text = |errno: Errno| {
            Failed { directory: Path::new("/spool"), error: errno.into() }.to_string()
        };
        assert!(
            text(Errno::NOSPC)
                .ends_with("free space there, or let spool_dir name another directory")
        );
        assert!(text(Errno::DQUOT).contains("free space"));
        assert!(text(Errno::ACCESS).contains("make it writable"));
        assert!(text(Errno::IO).contains("look at the disk"));
    }

    #[test]
    fn a_failure_names_the_directory_and_the_remedy() {
        on_a_runtime(async {
            let mut spool = Spool::new(Path::new("/nowhere/at/all"));
            let failed = spool.append(Bytes::from_static(b"x")).await.unwrap_err().to_string();
            assert!(failed.starts_with("spool_dir /nowhere/at/all: No such file"), "{failed}");
            assert!(failed.ends_with("create it, or let spool_dir name another directory"));
        });
    }
}
