//! `oribi check`: whether what mounts serve could be served.

use crate::answer::print;
use crate::options::{Engine, Mount, Serves};
use crate::ruby::Ruby;
use std::path::Path;

/// Says whether what a mount serves could be; the server would be in `directory`.
pub fn loads(mount: &Mount, directory: &Path) -> Result<bool, String> {
    let Serves::App { rackup: Some(rackup) } = &mount.serves else {
        if let Serves::Proxy { to, .. } = &mount.serves {
            let to: Vec<String> = to.iter().map(ToString::to_string).collect();
            print(&format!("ok {}: a proxy to {}", mount.name, to.join(", ")));
        }
        return Ok(true);
    };
    match mount.engine {
        Engine::Cruby => Ruby::find()?.check(rackup, mount),
        Engine::Mruby => in_mruby(rackup, mount, directory),
    }
}

#[cfg(feature = "mruby")]
fn in_mruby(rackup: &Path, mount: &Mount, directory: &Path) -> Result<bool, String> {
    use crate::answer::say;
    use crate::options::Isolation;
    use mruby::{App, Env, Plan, Source};

    let directory = mount.chdir.as_deref().unwrap_or(directory);
    std::env::set_current_dir(directory)
        .map_err(|error| format!("chdir: {}: {error}", directory.display()))?;
    let began = std::time::Instant::now();
    let env = Env { multiprocess: true, run_once: mount.isolation == Isolation::Fresh };
    let limits = mruby::limits(mount.rlimits.memory);
    let shown = rackup.display();
    match App::boot(&Plan::new(Source::File(rackup.into()), limits, env, None)) {
        Ok(_) => {
            let release = mruby::release();
            let (major, minor, teeny) = (release / 10000, release / 100 % 100, release % 100);
            let seconds = began.elapsed().as_secs_f64();
            print(&format!("ok {shown} (mruby {major}.{minor}.{teeny}, {seconds:.2} s)"));
            Ok(true)
        }
        Err(error) => {
            error.backtrace().iter().for_each(|frame| eprintln!("\tfrom {frame}"));
            let place = error.backtrace().first().map_or(String::new(), |at| format!(" ({at})"));
            let what = format!("{}: {}{place}", error.class_name(), error.message());
            say(&format!("{shown} does not load: {what}"));
            Ok(false)
        }
    }
}

/// Such a mount has been refused.
#[cfg(not(feature = "mruby"))]
fn in_mruby(_: &Path, _: &Mount, _: &Path) -> Result<bool, String> {
    Ok(false)
}
