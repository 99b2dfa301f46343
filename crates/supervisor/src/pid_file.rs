//! The pid file.

use rustix::process::{Pid, test_kill_process};
use std::fs;
use std::path::{Path, PathBuf};

/// A file with the server's pid; dropping it removes the file if it is still this server's.
pub struct PidFile {
    path: PathBuf,
    text: String,
}

impl PidFile {
    /// Writes the file. Another server's is not touched while that server lives, unless it is to be
    /// `succeeded` by this one.
    pub fn write(path: PathBuf, pid: Pid, succeeded: bool) -> Result<PidFile, String> {
        if let Some(other) = living(&path).filter(|other| *other != pid && !succeeded) {
            return Err(format!(
                "pid_file: process {other} of {} lives: stop it, or remove the file if that \
                 process is no server",
                path.display()
            ));
        }
        let text = format!("{pid}\n");
        let fresh = beside(&path);
        // By a rename, so that nobody reads half of it.
        let written = fs::write(&fresh, &text).and_then(|()| fs::rename(&fresh, &path));
        written.map_err(|error| {
            let _ = fs::remove_file(&fresh);
            let path = path.display();
            format!("pid_file: cannot write {path}: {error}: may this user write there?")
        })?;
        Ok(PidFile { path, text })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The process a pid file names, if it exists.
fn living(path: &Path) -> Option<Pid> {
    let pid = Pid::from_raw(fs::read_to_string(path).ok()?.trim().parse().ok()?)?;
    match test_kill_process(pid) {
        Ok(()) | Err(rustix::io::Errno::PERM) => Some(pid),
        Err(_) => None,
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpid;

    #[test]
    fn it_is_removed_by_its_owner_alone() {
        let directory = std::env::temp_dir().join(format!("oribi-pid-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("pid");
        let write = |pid| PidFile::write(path.clone(), pid, false);

        let ours = write(getpid()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", getpid()));
        let error = write(Pid::INIT).err().unwrap();
        assert!(error.contains(&format!("process {} of", getpid())), "{error}");
        drop(ours);
        assert!(!path.exists());

        let replaced = write(getpid()).unwrap();
        fs::write(&path, "1\n").unwrap();
        drop(replaced);
        assert!(path.exists(), "another server's file was removed");
        assert!(PidFile::write(path.clone(), getpid(), true).is_ok());

        // Beyond what the kernel gives out: nobody has it.
        fs::write(&path, "4194305\n").unwrap();
        assert!(write(getpid()).is_ok());
        fs::remove_dir_all(&directory).unwrap();
    }
}
