//! Servers that an application's Gemfile does not name. Bundler hides every gem but the bundle's,
//! so such a server gets a bundle of its own: the application's, with the same versions, and itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of those bundles; it goes with its owner.
pub struct Bundles(PathBuf);

impl Bundles {
    /// For this process.
    pub fn new() -> Self {
        Self(std::env::temp_dir().join(format!("oribi-lab-bundles-{}", std::process::id())))
    }

    /// What must be in the environment of `server`: nothing where there is no Gemfile, where it
    /// names the server already, or where the server is no gem.
    pub fn environment(
        &self,
        config: &Path,
        server: &str,
    ) -> Result<BTreeMap<String, String>, String> {
        let gemfile = config.with_file_name("Gemfile");
        let locked = fs::read_to_string(config.with_file_name("Gemfile.lock")).unwrap_or_default();
        // `thin-threaded` is a way to start the gem `thin`.
        let gem = server.split('-').next().unwrap_or(server);
        if !gemfile.is_file() || names(&locked, gem) || !installed(gem) {
            return Ok(BTreeMap::new());
        }
        let dir = self.0.join(server);
        let own = dir.join("Gemfile");
        let text = format!("eval_gemfile {:?}\ngem {gem:?}\n", gemfile.to_string_lossy());
        fs::create_dir_all(&dir)
            .and_then(|()| fs::write(&own, text))
            .and_then(|()| fs::write(dir.join("Gemfile.lock"), locked))
            .map_err(|error| format!("{}: {error}", dir.display()))?;
        Ok(BTreeMap::from([("BUNDLE_GEMFILE".into(), own.to_string_lossy().into_owned())]))
    }
}

impl Drop for Bundles {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(locked: &str, gem: &str) -> bool {
    locked.lines().any(|line| line.trim_start().starts_with(&format!("{gem} (")))
}

fn installed(gem: &str) -> bool {
    let asks = "exit Gem::Specification.find_all_by_name(ARGV[0]).any?";
    let mut ruby = Command::new("ruby");
    // Bundler, if it runs us, would answer for its bundle alone.
    let ruby = ruby.args(["-e", asks, gem]).env_remove("RUBYOPT");
    ruby.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_in_the_bundle_joins_it() {
        let app = std::env::temp_dir().join(format!("oribi-lab-bundled-{}", std::process::id()));
        fs::create_dir_all(&app).expect("a folder");
        fs::write(app.join("Gemfile"), "").expect("a Gemfile");
        let lock = "GEM\n  specs:\n    puma (5.6.5)\n\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n";
        fs::write(app.join("Gemfile.lock"), lock).expect("a lock");
        let (config, bundles) = (app.join("config.ru"), Bundles::new());
        let environment = |server| bundles.environment(&config, server).expect("it is written");
        assert!(environment("puma").is_empty(), "it is in the bundle");
        assert!(environment("no-such-gem-anywhere").is_empty());
        // Comes with Ruby, so that it is there.
        let with_rake = environment("rake-fast");
        let asks = ["-rbundler/setup", "-e", "print Gem.loaded_specs.key?('rake')"];
        let said = Command::new("ruby").args(asks).envs(with_rake).output().expect("ruby");
        assert_eq!(String::from_utf8_lossy(&said.stdout), "true", "{said:?}");
        let folder = bundles.0.clone();
        drop(bundles);
        assert!(!folder.exists());
        fs::remove_dir_all(&app).expect("it is ours");
    }
}
