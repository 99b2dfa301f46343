//! Apps for mruby that are in the executable, and what runs before them.

use super::mount::Mount;
use ::mruby::{Exception, Init, Interp};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

impl Mount {
    /// An app for mruby whose rackup source is this text. `name` is what commands, log lines and
    /// backtraces call it.
    pub fn from_rackup(name: &str, source: impl Into<Cow<'static, str>>, path: &str) -> Mount {
        let mut mount = Mount::new(None, path).name(name).set("engine", "mruby");
        mount.own.source = Some(source.into());
        mount
    }

    /// A rackup file, served by mruby.
    pub fn mruby(rackup: impl Into<PathBuf>, path: &str) -> Mount {
        Mount::new(Some(rackup.into()), path).set("engine", "mruby")
    }

    /// Lets `init` run in every interpreter of an app for mruby before the app is loaded, to install
    /// gems that are written in Rust. Called again, that too. An exception means that the app does
    /// not load.
    ///
    /// ```
    /// use oribi::Mount;
    ///
    /// const RACKUP: &str = "run ->(env) { [200, {}, [GREETING]] }";
    /// let hello = Mount::from_rackup("hello", RACKUP, "/hello").with_init(|interp| {
    ///     interp.eval("GREETING = 'Hello'", "init").map(|_| ())
    /// });
    /// ```
    pub fn with_init(
        mut self,
        init: impl Fn(&Interp) -> Result<(), Exception> + Send + Sync + 'static,
    ) -> Mount {
        self.own.init.push(Arc::new(init));
        self
    }
}

/// What a mount for mruby has in the executable.
#[derive(Default)]
pub(super) struct Own {
    source: Option<Cow<'static, str>>,
    init: Vec<Init>,
}

/// The same for all mounts by their names; a mold finds its own there.
#[derive(Default)]
pub(crate) struct Apps(BTreeMap<String, Own>);

impl Apps {
    /// Those of these mounts.
    pub(super) fn of(mounts: Vec<Mount>) -> Apps {
        Apps(mounts.into_iter().map(|mount| (mount.known_as(), mount.own)).collect())
    }

    /// What the mount of this name has in the executable: its rackup source, if it is not a file, and
    /// what runs before its app.
    pub(crate) fn find(&self, name: &str) -> Option<(Option<String>, Option<Init>)> {
        let own = self.0.get(name)?;
        let all = own.init.clone();
        let init: Init = Arc::new(move |interp| all.iter().try_for_each(|init| init(interp)));
        Some((own.source.as_ref().map(ToString::to_string), Some(init)))
    }
}
