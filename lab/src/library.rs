//! The scenarios and servers there are, read from TOML files.

pub mod check;
pub mod nearest;
pub mod understand;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::library::nearest::nearest;
use crate::library::understand::understand;
use crate::recipe::Recipe;
use crate::scenario::{Case, Contender, Stack};

/// What `ORIBI_LAB_HOME` holds, and what stands beside scenarios given by path.
pub struct Library {
    home: PathBuf,
    recipes: BTreeMap<String, Recipe>,
}

/// A scenario's cases, merged but not yet understood, and the name for messages.
struct Raw {
    source: String,
    folder: PathBuf,
    cases: Vec<Table>,
}

impl Library {
    /// Reads all servers of the lab's folder.
    pub fn open(home: &Path) -> Result<Self, String> {
        let absolute = fs::canonicalize(home);
        let home = absolute.map_err(|error| {
            format!("{}: {error}: ORIBI_LAB_HOME must name the lab's folder", home.display())
        })?;
        let mut library = Self { recipes: BTreeMap::new(), home };
        library.add_servers(&library.home.join("servers"))?;
        Ok(library)
    }

    /// The lab's folder, absolute.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Names of the scenarios in the lab's folder, sorted.
    pub fn names(&self) -> Result<Vec<String>, String> {
        Ok(toml_files(&self.home.join("scenarios"))?.iter().map(|file| stem(file)).collect())
    }

    /// The cases of a scenario, checked: by name, or by path to a `.toml` file (then servers in
    /// the folder `servers` beside it are known from now on). With `of` they are laid over the
    /// first case of that scenario instead of the one the file names.
    pub fn scenario_of(&mut self, name: &str, of: Option<&str>) -> Result<Vec<Case>, String> {
        let raw = self.raw(name)?;
        let mut cases = Vec::new();
        for table in raw.cases {
            let below = of.or_else(|| table.get("of").and_then(Value::as_str)).map(str::to_owned);
            let table = match below {
                Some(below) => self.laid_over(&raw.source, &below, table)?,
                None => table,
            };
            let named = match table.get("case") {
                Some(case) => format!("{}: case {case}", raw.source),
                None => raw.source.clone(),
            };
            let mut case: Case = understand(&named, &table)?;
            check::keys(&named, &table, &case)?;
            self.find_apps(&raw.folder, &mut case);
            cases.push(self.complete(&named, case)?);
        }
        for (index, case) in cases.iter().enumerate() {
            if cases[..index].iter().any(|other| other.case == case.case) {
                let named = if case.case.is_empty() { "no name" } else { &case.case };
                return Err(format!("{}: two cases are called `{named}`", raw.source));
            }
        }
        Ok(cases)
    }

    /// Makes contenders of a case's `servers`, and checks all of it; `source` is for messages.
    pub fn complete(&self, source: &str, mut case: Case) -> Result<Case, String> {
        let named = std::mem::take(&mut case.servers).into_iter().map(|server| Contender {
            name: server.clone(),
            server,
            app: None,
            stack: Stack::default(),
        });
        let contenders: Vec<Contender> = named.chain(std::mem::take(&mut case.contender)).collect();
        case.contender = contenders;
        check::case(self, &case).map_err(|wrong| format!("{source}: {wrong}"))?;
        Ok(case)
    }

    /// A server by name.
    pub fn recipe(&self, name: &str) -> Result<&Recipe, String> {
        self.recipes.get(name).ok_or_else(|| {
            format!("there is no server `{name}`{}", nearest(name, self.recipes.keys()))
        })
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

    /// Apps stand in the lab's folder, or beside a scenario that is elsewhere: those get their
    /// absolute path.
    fn find_apps(&self, folder: &Path, case: &mut Case) {
        let apps = case.contender.iter_mut().filter_map(|its| its.app.as_mut());
        for app in apps.chain([&mut case.app]).filter(|app| !app.is_empty()) {
            let beside = folder.join(&*app);
            if !self.home.join(&*app).is_file() && beside.is_file() {
                *app = beside.to_string_lossy().into_owned();
            }
        }
    }

    fn laid_over(&mut self, source: &str, below: &str, over: Table) -> Result<Table, String> {
        let raw = self.raw(below).map_err(|error| format!("{source}: of: {error}"))?;
        let mut table = raw.cases.into_iter().next().unwrap_or_default();
        if table.contains_key("of") {
            return Err(format!("{source}: of: {below} is itself laid over another scenario"));
        }
        // Its own name would be taken for the name of one of this scenario's cases.
        table.remove("case");
        if over.contains_key("phase") {
            // What is said about phases goes with them.
            for about in ["show", "target", "published"] {
                table.remove(about);
            }
        }
        lay_over(&mut table, &over);
        table.insert("of".into(), below.into());
        Ok(table)
    }

    fn raw(&mut self, name_or_path: &str) -> Result<Raw, String> {
        let by_path = name_or_path.ends_with(".toml") || name_or_path.contains('/');
        let path = if by_path {
            fs::canonicalize(name_or_path).map_err(|error| format!("{name_or_path}: {error}"))?
        } else {
            self.home.join("scenarios").join(format!("{name_or_path}.toml"))
        };
        if !path.is_file() {
            let near = nearest(name_or_path, self.names()?.iter());
            return Err(format!("there is no scenario `{name_or_path}`{near}"));
        }
        let folder = path.parent().unwrap_or(&self.home).to_path_buf();
        let source = self.shown(&path);
        let mut top = read_table(&source, &path)?;
        if by_path && folder != self.home.join("scenarios") {
            self.add_servers(&folder.join("servers"))?;
        } else if top.get("name").and_then(Value::as_str) != Some(&stem(&path)) {
            return Err(format!("{source}: name: must be the file's, \"{}\"", stem(&path)));
        }
        Ok(Raw { cases: cases(&source, &mut top)?, source, folder })
    }

    fn add_servers(&mut self, folder: &Path) -> Result<(), String> {
        if !folder.is_dir() {
            return Ok(());
        }
        for path in toml_files(folder)? {
            let source = self.shown(&path);
            let recipe: Recipe = understand(&source, &read_table(&source, &path)?)?;
            if recipe.name != stem(&path) {
                return Err(format!("{source}: name: must be the file's, \"{}\"", stem(&path)));
            }
            check::recipe(&recipe).map_err(|wrong| format!("{source}: {wrong}"))?;
            self.recipes.insert(recipe.name.clone(), recipe);
        }
        Ok(())
    }

    /// Files of the lab without its folder, others as they are.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.home).unwrap_or(path).display().to_string()
    }
}

/// Takes the `[[case]]` tables out and lays each over the rest.
fn cases(source: &str, top: &mut Table) -> Result<Vec<Table>, String> {
    let overs = match top.remove("case") {
        None => return Ok(vec![top.clone()]),
        Some(Value::Array(overs)) if !overs.is_empty() => overs,
        Some(_) => return Err(format!("{source}: case: must be [[case]] tables")),
    };
    let laid = |over: Value| match over {
        Value::Table(over) if over.contains_key("name") => {
            Err(format!("{source}: case: name: is the scenario's; a case is named by `case`"))
        }
        Value::Table(over) => {
            let mut table = top.clone();
            lay_over(&mut table, &over);
            Ok(table)
        }
        _ => Err(format!("{source}: case: must be [[case]] tables")),
    };
    overs.into_iter().map(laid).collect()
}

/// Tables merge, key by key; everything else is replaced.
fn lay_over(below: &mut Table, over: &Table) {
    for (key, value) in over {
        match (below.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(over)) => lay_over(below, over),
            _ => drop(below.insert(key.clone(), value.clone())),
        }
    }
}

fn read_table(source: &str, path: &Path) -> Result<Table, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{source}: {error}"))?;
    text.parse::<Table>().map_err(|error| {
        let before = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..before].iter().filter(|&&byte| byte == b'\n').count() + 1;
        format!("{source}:{line}: {}", error.message().replace('\n', " "))
    })
}

fn toml_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let is_toml = |path: &PathBuf| path.extension().is_some_and(|its| its == "toml");
    let mut files: Vec<PathBuf> = paths.filter(is_toml).collect();
    files.sort();
    Ok(files)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
