//! Patterns of file names, found as Ruby's `Dir.glob` finds them: `*` crosses no `/` and finds no
//! hidden files, and `**` goes through no symbolic link, so that a link to a directory above it is
//! no endless walk.

use glob::MatchOptions;
use std::fs;
use std::path::{Component, Path, PathBuf};

const HOW: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Files by name or pattern.
pub struct Pattern {
    base: PathBuf,
    parts: Vec<Part>,
}

enum Part {
    /// A name as it is.
    Name(String),
    /// Names of this form.
    Form(glob::Pattern),
    /// Any directories.
    Any,
}

impl Pattern {
    /// Where it is relative, to `directory`.
    pub fn new(directory: &Path, text: &str) -> Result<Pattern, String> {
        let is_absolute = Path::new(text).is_absolute();
        let base = if is_absolute { Path::new("/") } else { directory }.to_path_buf();
        let parts = Path::new(text).components().filter_map(|component| match component {
            Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
            Component::ParentDir | Component::Normal(_) => Some(Part::new(component)),
        });
        let parts = parts.collect::<Result<_, _>>();
        let parts = parts.map_err(|why| format!("watch: {text:?} is no pattern: {why}"))?;
        Ok(Pattern { base, parts })
    }

    /// The files of these names. What a pattern calls by its name may not be there.
    pub fn find(&self, found: &mut impl FnMut(PathBuf)) {
        walk(self.base.clone(), &self.parts, found);
    }
}

impl Part {
    fn new(component: Component) -> Result<Part, String> {
        let text = component.as_os_str().to_string_lossy().into_owned();
        if text == "**" {
            return Ok(Part::Any);
        }
        match text.contains(['*', '?', '[']) {
            true => glob::Pattern::new(&text).map(Part::Form).map_err(|error| error.to_string()),
            false => Ok(Part::Name(text)),
        }
    }
}

fn walk(path: PathBuf, parts: &[Part], found: &mut impl FnMut(PathBuf)) {
    let Some((first, rest)) = parts.split_first() else { return found(path) };
    let form = match first {
        Part::Name(name) => return walk(path.join(name), rest, found),
        Part::Form(form) => Some(form),
        Part::Any => None,
    };
    if form.is_none() {
        walk(path.clone(), rest, found);
    }
    // What cannot be read is as if it were not there.
    for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        match form {
            Some(form) if form.matches_with(&name, HOW) => walk(entry.path(), rest, found),
            None if !name.starts_with('.') && entry.file_type().is_ok_and(|kind| kind.is_dir()) => {
                walk(entry.path(), parts, found);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn names_are_found_as_ruby_finds_them() {
        let root = std::env::temp_dir().join(format!("oribi-[find]-{}", std::process::id()));
        fs::create_dir_all(root.join("lib/deep/.git")).unwrap();
        for name in ["a.rb", "lib/b.rb", "lib/deep/c.rb", "lib/deep/.git/d.rb", "lib/.e.rb"] {
            fs::write(root.join(name), "").unwrap();
        }
        symlink(".", root.join("lib/self")).unwrap();
        symlink("..", root.join("lib/deep/up")).unwrap();
        symlink("lib", root.join("current")).unwrap();
        let find = |text: &str| {
            let mut all = Vec::new();
            Pattern::new(&root, text).unwrap().find(&mut |path: PathBuf| {
                all.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
            });
            all.retain(|name| root.join(name).exists());
            all.sort();
            all
        };
        assert_eq!(find("**/*.rb"), ["a.rb", "lib/b.rb", "lib/deep/c.rb"]);
        assert_eq!(find("./lib/**/c.rb"), ["lib/deep/c.rb"]);
        assert_eq!(find("current/*.rb"), ["current/b.rb"]);
        assert_eq!(find("*/[a-c].rb"), ["current/b.rb", "lib/b.rb"]);
        assert_eq!(find("lib/.*.rb"), ["lib/.e.rb"]);
        assert_eq!(find("lib/../a.rb"), ["lib/../a.rb"]);
        assert_eq!(find(root.join("a.r?").to_str().unwrap()).len(), 0, "its [find] is a form");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert!(Pattern::new(Path::new("/"), "lib/***").is_err());
        assert!(Pattern::new(Path::new("/"), "lib/a**b").is_err());
        assert!(Pattern::new(Path::new("/"), "[").is_err());
    }
}
