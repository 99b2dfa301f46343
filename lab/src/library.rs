//! The scenarios and servers there are, read from TOML files and checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::recipe::Recipe;
use crate::scenario::{Case, Contender};

/// What `ORIBI_LAB_HOME` holds, and what stands beside scenarios given by path.
pub struct Library {
    home: PathBuf,
    recipes: BTreeMap<String, Recipe>,
}

impl Library {
    /// Reads all servers of the lab's folder.
    pub fn open(home: &Path) -> Result<Self, String> {
        Ok(Self { home: home.into(), recipes: BTreeMap::new() })
    }

    /// The lab's folder, absolute.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Names of the scenarios in the lab's folder, sorted.
    pub fn names(&self) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    /// The cases of a scenario, checked: by name, or by path to a `.toml` file (then servers in
    /// the folder `servers` beside it are known from now on).
    pub fn scenario(&mut self, name_or_path: &str) -> Result<Vec<Case>, String> {
        Err(format!("{name_or_path}: not written yet"))
    }

    /// Checks a case that was not read from a file, and makes contenders of its `servers`.
    pub fn complete(&self, source: &str, case: Case) -> Result<Case, String> {
        let _ = source;
        Ok(case)
    }

    /// A server by name.
    pub fn recipe(&self, name: &str) -> Result<&Recipe, String> {
        self.recipes.get(name).ok_or_else(|| format!("there is no server {name}"))
    }

    /// All servers, by name.
    pub fn recipes(&self) -> impl Iterator<Item = &Recipe> {
        self.recipes.values()
    }

    /// The rackup file of a contender, absolute; None where there is none.
    pub fn app(&self, case: &Case, contender: &Contender) -> Option<PathBuf> {
        let app = contender.app.as_ref().unwrap_or(&case.app);
        (!app.is_empty()).then(|| self.home.join(app))
    }
}
