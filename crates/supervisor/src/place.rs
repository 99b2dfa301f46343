//! Where the server was started, by the name people know: `/srv/app/current`, and not the directory
//! that this symlink led to at the time. Whatever is started later goes through the name again.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bundler's name for the Gemfile, which it resolves.
const GEMFILE: &str = "BUNDLE_GEMFILE";

/// A directory by its name.
#[derive(Clone, Debug)]
pub struct Place {
    /// The name, an absolute path.
    pub directory: PathBuf,
    /// Where it led to when the server was started.
    at_start: Option<PathBuf>,
}

impl Place {
    /// The directory this process is in, as the shell named it.
    pub fn here() -> io::Result<Place> {
        let real = std::env::current_dir()?;
        let named = std::env::var_os("PWD").map(PathBuf::from);
        let named = named.filter(|named| named.is_absolute() && is_same(named, &real));
        Ok(Place::of(named.unwrap_or(real)))
    }

    /// A directory of this name.
    pub fn of(directory: PathBuf) -> Place {
        let at_start = fs::canonicalize(&directory).ok();
        Place { directory, at_start }
    }

    /// A file by its name, seen from here.
    pub fn file(&self, path: &Path) -> PathBuf {
        self.directory.join(path.strip_prefix(".").unwrap_or(path))
    }

    /// Goes to another directory with the whole process.
    pub fn change(self, to: &Path) -> Result<Place, String> {
        let directory = self.file(to);
        std::env::set_current_dir(&directory).map_err(|error| {
            format!("chdir: {}: {error}: name a directory that is there", directory.display())
        })?;
        Ok(Place::of(directory))
    }

    /// Has the command run here, wherever the name leads by now.
    pub fn enter(&self, command: &mut Command) {
        command.current_dir(&self.directory).env("PWD", &self.directory);
        if let Some(gemfile) = std::env::var_os(GEMFILE)
            && let Some(at_start) = &self.at_start
            && let Ok(inside) = Path::new(&gemfile).strip_prefix(at_start)
        {
            command.env(GEMFILE, self.directory.join(inside));
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept() {
        let root = std::env::temp_dir().join(format!("oribi-place-{}", std::process::id()));
        fs::create_dir_all(root.join("releases/1")).unwrap();
        std::os::unix::fs::symlink("releases/1", root.join("current")).unwrap();
        assert!(is_same(&root.join("current"), &root.join("releases/1")));
        assert!(!is_same(&root.join("current"), &root));
        let place = Place::of(root.join("current"));
        assert_eq!(place.file(Path::new("config.ru")), root.join("current/config.ru"));
        assert_eq!(place.file(Path::new("./a.ru")), root.join("current/a.ru"));
        assert_eq!(place.file(Path::new("/b.ru")), Path::new("/b.ru"));
        fs::remove_dir_all(&root).unwrap();
    }
}
