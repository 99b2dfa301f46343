//! A Rack app in an interpreter: booted from its rackup file, and brought back when it is worn.

use crate::exception::Exception;
use crate::gem::Call;
use crate::interp::{Interp, Limits, Program};
use crate::kept::Kept;
use crate::value::Value;
use crate::{gems, serving};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use wire::request::KEYS;

const PRELUDE: &str = include_str!("prelude.rb");
/// What backtraces name it.
const PRELUDE_NAME: &str = "(oribi)";

/// Where a rackup comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file of the app's.
    File(PathBuf),
    /// Its text, and the name of the app, which backtraces say.
    Text(String, String),
}

/// What is done in each new interpreter before the app: a mount's own classes.
pub type Init = Arc<dyn Fn(&Interp) -> Result<(), Exception> + Send + Sync>;

/// All that a worker's threads need for an interpreter with the app: its code, compiled once.
pub struct Plan {
    source: Source,
    limits: Limits,
    /// Values of the env that are the same for all requests.
    env: Env,
    init: Option<Init>,
    compiled: Mutex<HashMap<PathBuf, Arc<Program>>>,
}

/// What an env says of the server.
#[derive(Clone, Copy, Debug)]
pub struct Env {
    /// Other interpreters serve the same app.
    pub multiprocess: bool,
    /// The app is called once only.
    pub run_once: bool,
}

/// The app in an interpreter.
pub struct App {
    interp: Interp,
    app: Kept,
    template: Kept,
    keys: Kept,
    seed: Kept,
    plan: Arc<Plan>,
    has_frozen: bool,
}

impl Plan {
    /// For the app of this rackup file.
    pub fn new(source: Source, limits: Limits, env: Env, init: Option<Init>) -> Arc<Plan> {
        Arc::new(Plan { source, limits, env, init, compiled: Mutex::default() })
    }

    /// A file's code: read and compiled when it is first asked for.
    fn program(&self, interp: &Interp, path: &Path) -> Result<Arc<Program>, Exception> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = compiled.get(path) {
            return Ok(program.clone());
        }
        let program = Arc::new(match path.to_str() {
            Some(PRELUDE_NAME) => interp.compile(PRELUDE.as_bytes(), PRELUDE_NAME)?,
            _ => self.compile_file(interp, path)?,
        });
        compiled.insert(path.into(), program.clone());
        Ok(program)
    }

    fn compile_file(&self, interp: &Interp, path: &Path) -> Result<Program, Exception> {
        if let Source::Text(name, text) = &self.source
            && Path::new(name) == path
        {
            return interp.compile(text.as_bytes(), name);
        }
        let text = std::fs::read(path).map_err(|error| {
            Exception::new("LoadError", format!("cannot load {}: {error}", path.display()))
        })?;
        interp.compile(&text, &shown(path))
    }

    fn rackup(&self) -> PathBuf {
        match &self.source {
            Source::File(path) => path.clone(),
            Source::Text(name, _) => name.into(),
        }
    }
}

/// A path as people know it: from the directory the server runs in.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).to_string_lossy().into_owned()
}

impl App {
    /// Opens an interpreter and loads the app. Runs no code that was not compiled once before, except
    /// the first time.
    pub fn boot(plan: &Arc<Plan>) -> Result<App, Exception> {
        let interp = Interp::open(&plan.limits)?;
        serving::set_plan(plan.clone());
        let arena = interp.arena();
        define(&interp)?;
        interp.run(&*plan.program(&interp, Path::new(PRELUDE_NAME))?)?;
        gems::install(&interp)?;
        if let Some(init) = &plan.init {
            init(&interp)?;
        }
        interp.run(&*plan.program(&interp, &plan.rackup())?)?;
        let app = interp.class("Oribi")?.value().call("app", &[])?.keep()?;
        let (template, keys) = (template(&interp, plan.env)?, keys(&interp)?);
        let seed = interp.class("Random")?.value().keep()?;
        interp.restore_arena(arena);
        let plan = plan.clone();
        Ok(App { interp, app, template, keys, seed, plan, has_frozen: false })
    }

    /// What there is now is what `renew` brings back, if nothing is kept outside of the interpreter.
    /// With a collector for apps that serve more than one request.
    pub fn freeze(&mut self, collect: bool) -> Result<(), Exception> {
        if !self.interp.has_outside() {
            self.interp.freeze()?;
            self.interp.collect_garbage(collect);
            self.has_frozen = true;
        }
        Ok(())
    }

    /// An interpreter that has served no request.
    pub fn renew(&mut self) -> Result<(), Exception> {
        if self.has_frozen {
            self.interp.reset();
        } else {
            *self = App::boot(&self.plan)?;
        }
        self.reseed();
        Ok(())
    }

    /// Random numbers of its own, for one that shares its memory's content with others.
    pub fn reseed(&self) {
        let mut seed = [0; 8];
        // Fails only where there is no such call, before Linux 3.17.
        let _ = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
        let seed = i64::from_ne_bytes(seed) >> 2;
        if let (Some(random), Ok(seed)) = (self.seed.get(&self.interp), self.interp.int(seed)) {
            let _ = random.call("srand", &[seed]);
        }
    }

    /// Its interpreter.
    pub fn interp(&self) -> &Interp {
        &self.interp
    }

    /// The same, to measure.
    #[doc(hidden)]
    pub fn interp_mut(&mut self) -> &mut Interp {
        &mut self.interp
    }

    /// The limit of memory was reached.
    pub fn is_exhausted(&self) -> bool {
        self.interp.is_exhausted()
    }

    /// The template of an env.
    pub fn template(&self) -> Result<Value<'_>, Exception> {
        self.kept(&self.template)
    }

    /// The names that requests have by number.
    pub fn keys(&self) -> Result<Value<'_>, Exception> {
        self.kept(&self.keys)
    }

    /// The app itself.
    pub fn app(&self) -> Result<Value<'_>, Exception> {
        self.kept(&self.app)
    }

    fn kept<'a>(&'a self, kept: &Kept) -> Result<Value<'a>, Exception> {
        kept.get(&self.interp).ok_or_else(|| Exception::new("RuntimeError", "the app is gone"))
    }
}

fn template(interp: &Interp, env: Env) -> Result<Kept, Exception> {
    let hash = interp.hash()?;
    let software = concat!("oribi/", env!("CARGO_PKG_VERSION"));
    let texts = [
        ("REQUEST_METHOD", "GET"),
        ("SCRIPT_NAME", ""),
        ("PATH_INFO", ""),
        ("QUERY_STRING", ""),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("HTTP_VERSION", "HTTP/1.1"),
        ("SERVER_SOFTWARE", software),
        ("rack.url_scheme", "http"),
    ];
    let frozen = |text: &str| interp.str(text)?.freeze();
    for (name, text) in texts {
        hash.set(frozen(name)?, frozen(text)?)?;
    }
    let version = interp.array(&[interp.int(1)?, interp.int(3)?])?.freeze()?;
    let new = |class: &str| interp.class(class)?.value().call("new", &[]);
    let others = [
        ("rack.version", version),
        ("rack.input", new("Oribi::Input")?),
        ("rack.errors", new("Oribi::Errors")?),
        ("rack.multithread", interp.bool(false)),
        ("rack.multiprocess", interp.bool(env.multiprocess)),
        ("rack.run_once", interp.bool(env.run_once)),
        ("rack.hijack?", interp.bool(false)),
    ];
    for (name, value) in others {
        hash.set(frozen(name)?, value)?;
    }
    hash.keep()
}

fn keys(interp: &Interp) -> Result<Kept, Exception> {
    let list = interp.array(&[])?;
    for name in KEYS.iter().chain(&["oribi.queue_time", "rack.response_finished"]) {
        list.push(interp.str(name)?.freeze()?)?;
    }
    list.keep()
}

/// What the prelude needs of Rust.
fn define(interp: &Interp) -> Result<(), Exception> {
    interp.define_module("Oribi", |module| {
        module.singleton_method("find_file", 2..=2, find_file)?;
        module.singleton_method("run_file", 1..=1, run_file)?;
        module.singleton_method("gem?", 1..=1, |call| {
            Ok(call.interp().bool(call.interp().has_gem(&call.arg(0).text()?)))
        })
    })?;
    serving::define(interp)
}

/// `find_file(from, name) -> path`: of a file that `from` names relative to itself.
fn find_file<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let (from, name) = (call.arg(0).text()?, call.arg(1).text()?);
    let directory = Path::new(&from).parent().unwrap_or(Path::new(""));
    let mut path = directory.join(&name);
    if path.extension().is_none_or(|extension| extension != "rb") {
        path.as_mut_os_string().push(".rb");
    }
    let path = path.canonicalize().map_err(|error| {
        Exception::new("LoadError", format!("cannot load such file -- {}: {error}", path.display()))
    })?;
    call.interp().str(path.to_string_lossy().as_bytes())
}

/// `run_file(path)`: at the top level.
fn run_file<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let path = PathBuf::from(call.arg(0).text()?);
    let plan = serving::plan().ok_or_else(|| Exception::new("LoadError", "no app is loaded"))?;
    let program = plan.program(call.interp(), &path)?;
    call.interp().run(&program)
}
