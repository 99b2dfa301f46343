//! What a contender is made of (servers, and a front), and how it is started.

pub mod bundle;
pub mod http;
pub mod live;
pub mod order;
pub mod render;
pub mod running;
pub mod surroundings;
pub mod tree;

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use oribi_load::door::Door;

use crate::library::Library;
use crate::recipe::Recipe;
use crate::results::ContenderFacts;
use crate::scenario::{Case, Contender, Stack};
use crate::stack::live::Live;
use crate::stack::order::{Order, RELEASE, adapt};
use crate::stack::render::{Context, Place};

pub use crate::stack::live::{Failed, abort_all};
pub use crate::stack::running::Running;

/// A contender that could be started.
pub struct Blueprint {
    name: String,
    server: Recipe,
    front: Option<Recipe>,
    stack: Stack,
    app: Option<PathBuf>,
    lab: PathBuf,
}

/// How long a command that runs once may take.
const ONCE_WITHIN: Duration = Duration::from_secs(300);
/// The longest path of a unix socket, in bytes, is 107; some servers add to it while they start.
const SOCKET_PATH: usize = 90;

/// `over` laid over `below`.
pub fn merge(below: &Stack, over: &Stack) -> Stack {
    let mut stack = Stack {
        workers: over.workers.or(below.workers),
        threads: over.threads.or(below.threads),
        instances: over.instances.or(below.instances),
        listen: over.listen.clone().or_else(|| below.listen.clone()),
        door: over.door.clone().or_else(|| below.door.clone()),
        front: over.front.clone().or_else(|| below.front.clone()),
        ..below.clone()
    };
    stack.options.extend(over.options.clone());
    stack.env.extend(over.env.clone());
    stack
}

impl Blueprint {
    /// Lays the contender's stack over the case's.
    pub fn new(library: &Library, case: &Case, contender: &Contender) -> Result<Self, String> {
        let server = library.recipe(&contender.server)?.clone();
        let mut stack = merge(&case.stack, &contender.stack);
        // The case's numbers are for those that can; the others do what they can.
        let most = |asked: Option<u32>, most: Option<u32>| {
            Some(asked.unwrap_or(1).min(most.unwrap_or(u32::MAX)))
        };
        stack.workers = most(stack.workers, server.most_workers);
        stack.threads = most(stack.threads, server.most_threads);
        let front = stack.front.as_deref().filter(|front| *front != "none");
        Ok(Self {
            name: contender.name.clone(),
            server,
            front: front.map(|front| library.recipe(front).cloned()).transpose()?,
            app: library.app(case, contender),
            lab: library.home().into(),
            stack,
        })
    }

    /// Names, versions, and why it is absent; `commands` stays empty (see [`Running::commands`]).
    /// Runs the version commands: ask once.
    pub fn facts(&self) -> ContenderFacts {
        let absent = self.absent();
        let version = |recipe| if absent.is_some() { String::new() } else { self.version(recipe) };
        ContenderFacts {
            name: self.name.clone(),
            servers: self.recipes().map(|recipe| recipe.name.clone()).collect(),
            versions: self.recipes().map(version).collect(),
            commands: Vec::new(),
            absent: absent.clone(),
        }
    }

    /// What is missing and how to get it, in one line.
    pub fn absent(&self) -> Option<String> {
        let missing = self.recipes().find_map(|recipe| missing(recipe, &self.context()));
        missing.or_else(|| self.bundler_missing())
    }

    /// True when it is a command that runs once instead of a server: see
    /// [`Blueprint::run_reference`].
    pub fn is_reference(&self) -> bool {
        self.server.reference
    }

    /// True when any of its connections goes over TCP.
    pub fn uses_tcp(&self) -> bool {
        self.front.is_some() || !on_unix(&self.server, self.stack.listen.as_deref())
    }

    /// Worker processes of all instances together; at least 1.
    pub fn workers(&self) -> u32 {
        self.each() * self.instances()
    }

    /// Runs the command once: the figures it prints, by name.
    pub fn run_reference(&self) -> Result<BTreeMap<String, f64>, Failed> {
        let live = Live::new(temporary_root())?;
        let context = Context { place: Place::tcp(free_ports(1)?[0]), ..self.context() };
        self.spawn(&live, &self.server, "0", context)?;
        let ended = live.wait(ONCE_WITHIN);
        let fail = |text: String| Failed { text, log: live.log_tail() };
        let named = &self.server.name;
        match ended {
            None => return Err(fail(format!("{named} has not ended within {ONCE_WITHIN:?}"))),
            Some(status) if !status.success() => {
                return Err(fail(format!("{named} has ended: {status}")));
            }
            Some(_) => {}
        }
        let said = fs::read_to_string(live.dir().join("0/said")).unwrap_or_default();
        serde_json::from_str(said.trim()).map_err(|error| {
            fail(format!("{named}: must print one JSON object of numbers: {error}"))
        })
    }

    /// Starts it and waits until a GET of `path` is answered with 2xx or 3xx: by each instance,
    /// then by the front.
    pub fn start(&self, path: &str) -> Result<Running, Failed> {
        let live = Live::new(temporary_root())?;
        order::release(live.dir(), 1)?;
        let (mut commands, mut orders) = (Vec::new(), Vec::new());
        let listen = self.stack.listen.as_deref();
        let begun = Instant::now();
        let mut places = places(&self.server, listen, live.dir(), self.instances())?;
        places.iter_mut().for_each(|place| place.listen = self.door().at(&place.listen));
        for (index, place) in places.iter().enumerate() {
            let context = Context { place: place.clone(), ..self.context() };
            let (command, order) = self.spawn(&live, &self.server, &index.to_string(), context)?;
            commands.push(command);
            orders.push(order);
        }
        for (index, place) in places.iter().enumerate() {
            live.await_answer(index, &place.listen, path)?;
        }
        let start_ms = begun.elapsed().as_secs_f64() * 1e3;
        let mut url = places[0].listen.clone();
        if let Some(front) = &self.front {
            let own = Place::tcp(free_ports(1)?[0]);
            url.clone_from(&own.listen);
            let context = Context { place: own, backends: places.clone(), ..self.context() };
            commands.insert(0, self.spawn(&live, front, "front", context)?.0);
            live.await_answer(places.len(), &url, path)?;
        }
        let instances = places.into_iter().map(|place| place.listen).collect();
        let mut running = Running::new(live, url, start_ms, commands, instances, self.each());
        running.orders = orders;
        Ok(running)
    }

    fn door(&self) -> Door {
        self.stack.door.as_deref().and_then(Door::named).unwrap_or_default()
    }

    fn each(&self) -> u32 {
        self.stack.workers.unwrap_or(1)
    }

    fn instances(&self) -> u32 {
        self.stack.instances.unwrap_or(1)
    }

    /// Front first.
    fn recipes(&self) -> impl Iterator<Item = &Recipe> {
        self.front.iter().chain([&self.server])
    }

    /// What templates know before anything is started.
    fn context(&self) -> Context {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        Context {
            app: self.app.as_deref().map(shown).unwrap_or_default(),
            app_dir: self.app_dir().map(shown).unwrap_or_default(),
            workers: self.each(),
            threads: self.stack.threads.unwrap_or(1),
            door: self.stack.door.clone().unwrap_or_else(|| Door::NAMES[0].into()),
            lab: shown(&self.lab),
            root: rustix::process::geteuid().is_root(),
            options: self.stack.options.clone(),
            ..Context::default()
        }
    }

    fn app_dir(&self) -> Option<&Path> {
        self.app.as_deref().and_then(Path::parent)
    }

    /// The application's Gemfile, if it has one.
    fn gemfile(&self, recipe: &Recipe) -> Option<PathBuf> {
        let gemfile = self.app_dir()?.join("Gemfile");
        (recipe.rack && !recipe.front && gemfile.is_file()).then_some(gemfile)
    }

    fn bundler_missing(&self) -> Option<String> {
        let gemfile = self.gemfile(&self.server)?;
        let mut ruby = Command::new("ruby");
        adapt(&mut ruby, &surroundings::changes(&BTreeMap::new(), None));
        let there = ruby.args(["-e", "require 'bundler'"]).stderr(Stdio::null()).status();
        let text = "needs Bundler, which is not installed: apt-get install ruby-bundler";
        (!there.is_ok_and(|it| it.success())).then(|| format!("{} {text}", gemfile.display()))
    }

    fn version(&self, recipe: &Recipe) -> String {
        let said = self.context().fill_all("version", &recipe.version).ok().and_then(|words| {
            let (program, arguments) = words.split_first()?;
            let mut command = Command::new(program);
            adapt(&mut command, &surroundings::changes(&BTreeMap::new(), None));
            let output = command.args(arguments).stdin(Stdio::null()).output().ok()?;
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            said.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
        });
        said.unwrap_or_else(|| "unknown".into())
    }

    /// Writes the files of an instance and starts it; the command as one line, and how it is
    /// told to take up new code.
    fn spawn(
        &self,
        live: &Live,
        recipe: &Recipe,
        part: &str,
        mut context: Context,
    ) -> Result<(String, Order), Failed> {
        let dir = live.dir().join(part);
        context.dir = dir.to_string_lossy().into_owned();
        let file_failed = |error| format!("{}: {}: {error}", recipe.name, dir.display());
        fs::create_dir_all(&dir).map_err(file_failed)?;
        for (name, template) in &recipe.files {
            let text = context.fill(&format!("{}: files: {name}", recipe.name), template)?;
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap_or(&dir)).map_err(file_failed)?;
            fs::write(&path, text).map_err(file_failed)?;
        }
        let words = context.fill_all(&format!("{}: command", recipe.name), &recipe.command)?;
        let mut own = BTreeMap::new();
        for (name, template) in &recipe.env {
            own.insert(name.clone(), context.fill(&format!("{}: env", recipe.name), template)?);
        }
        let release = order::release_file(live.dir()).to_string_lossy().into_owned();
        own.insert(RELEASE.into(), release);
        if !recipe.front {
            own.extend(self.stack.env.clone());
        }
        let (program, arguments) = words.split_first().ok_or("command: comes to nothing")?;
        let mut command = Command::new(program);
        let changes = surroundings::changes(&own, self.gemfile(recipe).as_deref());
        adapt(&mut command, &changes);
        let folder = self.app_dir().unwrap_or(&dir).to_path_buf();
        command.args(arguments).current_dir(&folder);
        let name = if part == "0" || recipe.front { String::new() } else { format!(" {part}") };
        context.pid = live.spawn(format!("{}{name}", recipe.name), recipe, &dir, command)?;
        let deploy = context.fill_all(&format!("{}: deploy", recipe.name), &recipe.deploy)?;
        let order = Order { words: deploy, changes, folder, dir };
        Ok((words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "), order))
    }
}

/// Where new instances shall listen: as wished, else on TCP if they can.
fn places(
    recipe: &Recipe,
    wished: Option<&str>,
    dir: &Path,
    count: u32,
) -> Result<Vec<Place>, String> {
    if on_unix(recipe, wished) {
        let socket = |index| dir.join(format!("{index}/sock")).to_string_lossy().into_owned();
        return Ok((0..count).map(|index| Place::unix(&socket(index))).collect());
    }
    Ok(free_ports(count)?.into_iter().map(Place::tcp).collect())
}

fn on_unix(recipe: &Recipe, wished: Option<&str>) -> bool {
    let tcp = recipe.listens.iter().any(|its| its == "tcp");
    wished == Some("unix") || (wished.is_none() && !tcp)
}

/// All are held until the last is found, so that no two are the same.
fn free_ports(count: u32) -> Result<Vec<u16>, String> {
    let bind = |_| TcpListener::bind("127.0.0.1:0");
    let held: std::io::Result<Vec<TcpListener>> = (0..count).map(bind).collect();
    let ports = held.and_then(|held| held.iter().map(|it| Ok(it.local_addr()?.port())).collect());
    ports.map_err(|error: std::io::Error| format!("no free port: {error}"))
}

/// Where temporary folders are made: not deep down, because of the sockets in them.
fn temporary_root() -> PathBuf {
    let usual = std::env::temp_dir();
    if usual.as_os_str().len() + "/oribi-lab-123456/front/sock".len() > SOCKET_PATH {
        return "/tmp".into();
    }
    usual
}

/// What a server needs and this machine does not have, and how to get it.
fn missing(recipe: &Recipe, context: &Context) -> Option<String> {
    let needs = context.fill_all(&format!("{}: needs", recipe.name), &recipe.needs);
    let missing = match needs {
        Ok(needs) => needs.into_iter().find(|need| surroundings::program(need).is_none())?,
        Err(wrong) => return Some(wrong),
    };
    let named = if missing.contains('/') { &missing } else { &recipe.name };
    Some(if recipe.packages.is_empty() {
        format!("{named} is not there: make lab-setup builds it")
    } else {
        let packages = recipe.packages.join(" ");
        format!("{named} is not installed: apt-get install {packages} (or make lab-setup)")
    })
}

/// As one would type it.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=./:,@%+".contains(&byte);
    if word.bytes().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests;
