//! The server within another program: what it serves is said by calls instead of a command line.

mod mount;
#[cfg(feature = "mruby")]
mod mruby;

use crate::declared::Declared;
use crate::layers::{Layer, Origin, given, merge};
use crate::options::{self, Settings};
use crate::sources::locate;
use crate::start::{self, Start};
use crate::{listen, supervise};
use front::Assets;
use std::borrow::Cow;
use std::fmt;
use std::process::ExitCode;
use wire::settings;

pub use mount::{Isolation, Mount};

/// A server, as it is to be.
///
/// ```no_run
/// use oribi::{Builder, Isolation, Mount};
///
/// fn main() -> Result<std::process::ExitCode, oribi::Error> {
///     Builder::default()
///         .bind("127.0.0.1:9292")
///         .add_mount(Mount::cruby("config.ru", "/").workers(4))
///         .add_mount(Mount::cruby("admin.ru", "/admin").isolation(Isolation::Fresh))
///         .add_static_asset("/style.css", &b"body { margin: 0 }"[..])
///         .serve()
/// }
/// ```
///
/// [`serve`](Builder::serve) is to be the first thing that `main` does: the server's other
/// processes are this program again, and find there what they are to be.
#[derive(Default)]
pub struct Builder {
    said: Vec<(String, Vec<String>)>,
    mounts: Vec<Mount>,
    assets: Vec<(String, Cow<'static, [u8]>)>,
}

/// Why there is no server. Each has a line that names the cause, which is also what `{:?}` shows: a
/// `main` that returns it prints that.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A setting or a mount is not possible: its value, its path, its name.
    Setting(String),
    /// An asset's path is not possible, or two have the same.
    Asset(String),
    /// All is possible, but the server could not start or go on.
    Start(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (Error::Setting(line) | Error::Asset(line) | Error::Start(line)) = self;
        f.write_str(line)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// What is not passed from process to process, because each is the same program.
#[derive(Default)]
pub(crate) struct Embedded {
    /// For the front.
    pub assets: Assets,
    /// For molds.
    #[cfg(feature = "mruby")]
    pub apps: mruby::Apps,
}

impl Builder {
    /// Nothing to serve yet.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Listens there: `127.0.0.1:9292`, `tcp://[::]:80`, `unix:///run/app.sock`, `fastcgi://…` and
    /// whatever else the option `bind` knows. Called again, there too. Without any it is
    /// `127.0.0.1:9292`.
    pub fn bind(mut self, address: &str) -> Builder {
        match self.said.iter_mut().find(|(name, _)| name == "bind") {
            Some((_, addresses)) => addresses.push(address.into()),
            None => self.said.push(("bind".into(), vec![address.into()])),
        }
        self
    }

    /// So many workers for each mount that does not say otherwise.
    pub fn workers(self, count: u16) -> Builder {
        self.set("workers", count)
    }

    /// Sets an option of the configuration by its name, such as `("queue_timeout", 2)`; those that
    /// mounts may have are for all mounts that do not say otherwise. The last call wins.
    pub fn set(mut self, option: &str, value: impl fmt::Display) -> Builder {
        self.said.retain(|(name, _)| name != option);
        self.said.push((option.into(), vec![value.to_string()]));
        self
    }

    /// Serves an app.
    pub fn add_mount(mut self, mount: Mount) -> Builder {
        self.mounts.push(mount);
        self
    }

    /// Serves these bytes at `path`, plain text such as `/style.css`, straight from memory: no worker
    /// hears of it. What kind they are the path's ending says. An asset goes before every mount, but
    /// only at exactly its path; an `index.html` is its directory's answer too.
    pub fn add_static_asset(mut self, path: &str, bytes: impl Into<Cow<'static, [u8]>>) -> Builder {
        self.assets.push((path.into(), bytes.into()));
        self
    }

    /// Many of them, such as those of a map from paths to bytes.
    pub fn add_static_assets<P, B>(mut self, assets: impl IntoIterator<Item = (P, B)>) -> Builder
    where
        P: Into<String>,
        B: Into<Cow<'static, [u8]>>,
    {
        let assets = assets.into_iter().map(|(path, bytes)| (path.into(), bytes.into()));
        self.assets.extend(assets);
        self
    }

    /// Serves until it is told to stop, and gives the status to exit with.
    ///
    /// The calling process becomes the supervisor, which makes it a parent of processes, changes how
    /// it takes signals, and forks. So call this at the top of `main`, before anything that is
    /// expensive and before there are threads: front, molds and mruby's workers are this same
    /// executable, started again with the same environment and one variable more, and in them
    /// `serve` does that process's work and then returns. What `main` does before, each of them
    /// does.
    ///
    /// # Errors
    ///
    /// A setting, mount or asset that is not possible, an address that cannot be listened on, an app
    /// that does not load. Nothing is left running then.
    pub fn serve(self) -> Result<ExitCode, Error> {
        let mut assets = Assets::default();
        for (path, bytes) in self.assets {
            assets.add(&path, bytes).map_err(Error::Asset)?;
        }
        let said = Declarations::read(&self.said, &self.mounts);
        let embedded = Embedded {
            assets,
            #[cfg(feature = "mruby")]
            apps: mruby::Apps::of(self.mounts),
        };
        // What is wrong is the first process's to say.
        match crate::role(embedded) {
            Some(code) => Ok(code),
            None => said.map_err(Error::Setting)?.serve(),
        }
    }
}

/// What was said, as other sources of settings say it.
struct Declarations {
    layers: [Layer; 1],
    mounts: Vec<Declared>,
    /// Whether each is a file.
    files: Vec<bool>,
}

impl Declarations {
    fn read(said: &[(String, Vec<String>)], mounts: &[Mount]) -> Result<Declarations, String> {
        if mounts.is_empty() {
            return Err("no mount: say what is to be served with Builder::add_mount".into());
        }
        let mut layer = Layer::new();
        for (name, values) in said {
            let setting = settings::find(name).ok_or_else(|| no_option(name))?;
            layer.insert(setting.name, given(values.iter().cloned(), &Origin::Program));
        }
        Ok(Declarations {
            layers: [merge(layer, Layer::new())],
            mounts: mounts.iter().map(Mount::declare).collect::<Result<_, _>>()?,
            files: mounts.iter().map(Mount::is_file).collect(),
        })
    }

    fn resolve(&self) -> Result<Settings, String> {
        options::resolve(&self.layers, &self.mounts)
    }

    fn serve(self) -> Result<ExitCode, Error> {
        let inherited = listen::take().map_err(Error::Start)?;
        let mut settings = self.resolve().map_err(Error::Setting)?;
        let place =
            start::place(None, settings.process.chdir.as_deref()).map_err(Error::Setting)?;
        settings.make_absolute(&place);
        for ((mount, said), is_file) in settings.mounts.iter_mut().zip(&self.mounts).zip(self.files)
        {
            if is_file {
                locate(mount, said, &place).map_err(Error::Setting)?;
            }
        }
        let start = Start::new(settings, place, inherited, None);
        start.and_then(supervise::run).map_err(Error::Start)
    }
}

/// A line about an option of a name that there is none of.
fn no_option(name: &str) -> String {
    format!("{name} is no option: docs/configuration.md has all that there are")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options;
    use std::time::Duration;

    fn read(builder: Builder) -> Result<Settings, String> {
        Declarations::read(&builder.said, &builder.mounts)?.resolve()
    }

    #[test]
    fn what_is_said_holds() {
        let shop =
            Mount::cruby("shop.ru", "/shop/").workers(3).set("weight", 300).host("A.example");
        let settings = Builder::new()
            .bind("tcp://127.0.0.1:1")
            .bind("unix:///a.sock")
            .workers(2)
            .set("queue-timeout", 1.5)
            .add_mount(Mount::cruby("config.ru", "/").name("main").set("queue_timeout", 2))
            .add_mount(shop.isolation(Isolation::Prefork { max_requests: 150 }));
        let settings = read(settings).unwrap();
        assert_eq!(settings.binds.len(), 2);
        let [main, shop] = &settings.mounts[..] else { panic!("two mounts") };
        assert_eq!((&*main.name, &*main.path, main.workers), ("main", "", 2));
        assert_eq!(
            (&*shop.name, &*shop.path, shop.workers, shop.weight),
            ("shop", "/shop", 3, 300)
        );
        assert_eq!((&shop.hosts[..], shop.declared), (&["a.example".to_string()][..], true));
        assert_eq!(
            (shop.isolation, shop.recycling.max_requests),
            (options::Isolation::Prefork, 150)
        );
        let queued = settings.mounts.iter().map(|mount| mount.front.queue_timeout);
        assert!(queued.eq([Duration::from_secs(2), Duration::from_millis(1500)]));
    }

    #[test]
    fn levels_are_settings() {
        let of = |level| {
            let mount = Mount::cruby("a.ru", "/").isolation(level);
            let mount = read(Builder::new().add_mount(mount)).unwrap().mounts.remove(0);
            (mount.isolation, mount.threads)
        };
        assert_eq!(of(Isolation::Threads(5)), (options::Isolation::Threads, 5));
        assert_eq!(of(Isolation::Fresh), (options::Isolation::Fresh, 1));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let at = |path: &str| Mount::cruby("a.ru", path);
        let error = |builder: Builder| match read(builder) {
            Ok(_) => panic!("accepted"),
            Err(error) => error,
        };
        let of =
            |mounts: Vec<Mount>| error(mounts.into_iter().fold(Builder::new(), Builder::add_mount));
        assert!(error(Builder::new()).starts_with("no mount"));
        assert!(of(vec![at("")]).contains("it is empty"));
        for path in ["a", "//a", "/a b", "/a?", "/%41"] {
            let why = of(vec![at(path)]);
            assert!(why.contains("not a path such as /shop"), "{path:?}: {why}");
        }
        assert!(of(vec![at("/a"), at("/a/")]).contains("a mount there already (the program)"));
        let same = of(vec![at("/a").name("x"), at("/b").name("x")]);
        assert!(same.contains("is called x already"), "{same}");
        assert!(of(vec![at("/a").set("wrokers", 1)]).contains("mount /a: wrokers is no option"));
        assert!(of(vec![at("/a").set("backlog", 1)]).contains("option of the server"));
        assert!(of(vec![at("/a").set("workers", 0)]).contains("workers: "));
        let bound = error(Builder::new().bind("nowhere").add_mount(at("/")));
        assert!(bound.contains("unix://PATH"), "{bound}");
        read(
            [at("/a").host("x"), at("/a").host("y").name("b")]
                .into_iter()
                .fold(Builder::new(), Builder::add_mount),
        )
        .unwrap();
    }

    #[test]
    fn assets_are_judged_before_anything_runs() {
        let serve = |path: &str| Builder::new().add_static_asset(path, &b"x"[..]).serve();
        assert!(
            matches!(serve("x"), Err(Error::Asset(line)) if line.contains("such as /style.css"))
        );
    }
}
