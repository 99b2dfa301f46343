//! The command by which a running server takes up new code.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::stack::surroundings::Changes;

/// The variable that names the file with the release that is on disk.
pub const RELEASE: &str = "LAB_RELEASE";

/// How one instance is told, and where its code is.
#[derive(Clone, Debug)]
pub struct Order {
    /// The command.
    pub words: Vec<String>,
    /// Its environment: the server's.
    pub changes: Changes,
    /// Where it runs: where the server was started.
    pub folder: PathBuf,
    /// What it says goes into a file here.
    pub dir: PathBuf,
}

impl Order {
    /// Gives it.
    pub fn give(&self) -> Result<Child, String> {
        let failed = |error| format!("`{}`: {error}", self.words.join(" "));
        let (program, arguments) = self.words.split_first().ok_or("deploy: comes to nothing")?;
        let said = File::create(self.log()).map_err(failed)?;
        let mut command = Command::new(program);
        adapt(&mut command, &self.changes);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(said.try_clone().map_err(failed)?)
            .stderr(said);
        command.spawn().map_err(failed)
    }

    /// The last line it has said.
    pub fn said(&self) -> String {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().last().unwrap_or_default().to_owned()
    }

    fn log(&self) -> PathBuf {
        self.dir.join("deploy.log")
    }
}

/// Where the release of a stack stands whose folder this is.
pub fn release_file(dir: &Path) -> PathBuf {
    dir.join("release")
}

/// Puts another release on disk, whole at any moment.
pub fn release(dir: &Path, number: u64) -> Result<(), String> {
    let (new, file) = (dir.join("release.new"), release_file(dir));
    let written = fs::write(&new, format!("{number}\n")).and_then(|()| fs::rename(&new, &file));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

/// Makes a command's environment the one of a server.
pub fn adapt(command: &mut Command, changes: &BTreeMap<String, Option<String>>) {
    for (name, value) in changes {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}
