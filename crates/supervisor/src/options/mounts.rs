//! From what people have said of mounts to what holds: the mount's own word first, then what was
//! said for the whole server.

use super::mount::{Engine, Isolation, Mount, Recycling, Rlimits, Serves, WorkerOptions};
use super::place;
use crate::declared::Declared;
use crate::layers::{Given, Layer, Origin, Said};
use crate::pattern::Pattern;
use std::path::Path;
use wire::settings::{SEATS_PER_GENERATION, Setting, Socket, Value, find_in_mount};

/// Options that a proxy has a use for.
const OF_PROXY: &[&str] = &[
    "queue_timeout",
    "request_timeout",
    "retry_idempotent",
    "chunked_transfer",
    "body_limit",
    "reply_spool",
];
/// Words that any mount may have.
const WORDS: &[&str] = &["path", "host", "name"];
/// Options that mean nothing to mruby.
const OF_CRUBY: &[&str] =
    &["oob_gc", "max_gc_per_request", "min_gc_per_request", "oob_gc_cap", "early_hints"];
/// Options that mean nothing where a process runs one request.
const OF_KEPT: &[&str] = &["max_requests", "min_requests", "oob_gc", "max_gc_per_request"];

/// Whether an option means anything to what a mount serves.
pub fn concerns(setting: &Setting, serves: &Serves) -> bool {
    match serves {
        Serves::Proxy { .. } => OF_PROXY.contains(&setting.name),
        Serves::App { .. } => true,
    }
}

/// All mounts of a server: those that are declared, or the only one.
pub(super) fn all(layers: &[Layer], declared: &[Declared]) -> Result<Vec<Mount>, String> {
    if declared.is_empty() {
        return Ok(vec![implied(layers)?]);
    }
    if let Some(prefix) = Said(layers).given("prefix") {
        return Err(prefix.blame(
            "prefix: it is for a server without mounts: leave it out, each mount has its path",
        ));
    }
    let mounts = declared.iter().map(|one| make(layers, one)).collect::<Result<Vec<_>, _>>()?;
    place::unique(&mounts, declared)?;
    Ok(mounts)
}

/// The one that a server without declared mounts has.
fn implied(layers: &[Layer]) -> Result<Mount, String> {
    let said = Said(layers);
    let path = said.prefix()?;
    Ok(Mount {
        name: place::name_of(""),
        path,
        declared: false,
        ..Mount::of(&said, Serves::App { rackup: None })?
    })
}

fn make(layers: &[Layer], declared: &Declared) -> Result<Mount, String> {
    declared.check()?;
    let own: Vec<Layer> =
        std::iter::once(declared.said.clone()).chain(layers.iter().cloned()).collect();
    let maker = Maker { said: Said(&own), declared: Some(declared) };
    let serves = match declared.word("proxy") {
        Some(_) => proxy(declared)?,
        None => app(declared)?,
    };
    let path = place::path(declared)?;
    Ok(Mount {
        name: place::name(declared, &path)?,
        hosts: place::hosts(declared)?,
        path,
        chdir: declared.word("chdir").map(|given| given.text.clone().into()),
        ..maker.mount(serves)?
    })
}

fn app(declared: &Declared) -> Result<Serves, String> {
    if declared.word("max").is_some() {
        return Err(declared.blame_word("max", "max goes with proxy: an app has workers"));
    }
    Ok(Serves::App { rackup: declared.word("rackup").map(|given| given.text.clone().into()) })
}

fn proxy(declared: &Declared) -> Result<Serves, String> {
    let useless = declared.said.keys().find(|name| {
        !WORDS.contains(name) && !OF_PROXY.contains(name) && !["proxy", "max"].contains(name)
    });
    if let Some(name) = useless {
        let why = format!("{name} is for apps, and this is a proxy: leave it out");
        return Err(declared.blame_word(name, &why));
    }
    if let Some((name, place)) = declared.hooks.first() {
        return Err(format!("{place}: {name} is for apps, and this mount is a proxy"));
    }
    let to: Vec<Socket> =
        declared.words("proxy").filter_map(|given| Socket::parse(&given.text)).collect();
    if to.is_empty() {
        return Err(declared.blame("proxy names no server: write proxy \"HOST:PORT\""));
    }
    let max = match (find_in_mount("max"), declared.word("max")) {
        (Some(setting), Some(given)) => match setting.check(&given.text)? {
            Value::Count(max) => max as u16,
            _ => 1,
        },
        _ => 1,
    };
    Ok(Serves::Proxy { to, max })
}

impl Mount {
    /// One of these settings, without name, hosts and path.
    pub(crate) fn of(said: &Said, serves: Serves) -> Result<Mount, String> {
        Maker { said: *said, declared: None }.mount(serves)
    }
}

/// What is said of one mount.
struct Maker<'a> {
    said: Said<'a>,
    declared: Option<&'a Declared>,
}

impl Maker<'_> {
    fn mount(&self, serves: Serves) -> Result<Mount, String> {
        let said = &self.said;
        let engine = match said.text("engine")?.as_str() {
            "mruby" => Engine::Mruby,
            _ => Engine::Cruby,
        };
        let (workers, threads) = self.crew()?;
        let isolation = self.isolation(engine, threads)?;
        if engine == Engine::Mruby {
            self.is_for_mruby()?;
        }
        let (user, group) = self.identity()?;
        let mut mount = Mount {
            name: String::new(),
            hosts: Vec::new(),
            path: String::new(),
            declared: true,
            serves,
            engine,
            isolation,
            workers,
            threads,
            weight: said.count("weight")?,
            environment: said.text("environment")?,
            chdir: None,
            user,
            group,
            rlimits: rlimits(said)?,
            recycling: recycling(said)?,
            spawn_interval: said.seconds("spawn_interval")?,
            err_respawn_interval: said.seconds("err_respawn_interval")?,
            start_timeout: said.seconds("start_timeout")?,
            rollback_window: said.seconds("rollback_window")?,
            retry_idempotent: said.flag("retry_idempotent")?,
            watch: watch(said)?,
            worker: worker(said)?,
            front: front::MountOptions {
                queue_timeout: said.seconds("queue_timeout")?,
                body_limit: said.bytes("body_limit")?,
                chunked_transfer: said.flag("chunked_transfer")?,
                reply_spool: said.bytes("reply_spool")?,
                request_timeout: said.seconds("request_timeout")?,
                retry_idempotent: said.flag("retry_idempotent")?,
            },
        };
        if isolation == Isolation::Fresh && engine == Engine::Cruby {
            self.is_for_fresh(&mut mount)?;
        }
        Ok(mount)
    }

    fn wrong(&self, name: &str, why: &str) -> String {
        match (self.declared, self.said.given(name)) {
            (Some(declared), _) => declared.blame_word(name, why),
            (None, Some(given)) => given.blame(why),
            (None, None) => why.into(),
        }
    }

    /// What is said of this very mount; what a handler says of any is not.
    fn meant(&self, name: &str) -> Option<&Given> {
        match self.declared {
            Some(declared) => declared.word(name),
            None => {
                let given = self.said.given(name);
                given.filter(|given| !matches!(given.origin, Origin::Handler(_)))
            }
        }
    }

    /// Workers and threads.
    fn crew(&self) -> Result<(u16, u16), String> {
        let said = &self.said;
        let single = said.text("affinity")? == "single";
        let [workers, threads] = ["workers", "threads"].map(|name| said.count(name));
        let (workers, threads) = if single { (1, 1) } else { (workers?, threads?) };
        let seats = workers * threads;
        if seats > SEATS_PER_GENERATION {
            let why = format!(
                "{workers} workers of {threads} threads are {seats} threads; at most \
                 {SEATS_PER_GENERATION} are possible: lower one of the two"
            );
            return Err(self.declared.map_or(why.clone(), |declared| declared.blame(&why)));
        }
        Ok((workers as u16, threads as u16))
    }

    fn isolation(&self, engine: Engine, threads: u16) -> Result<Isolation, String> {
        let (text, level) = match self.said.maybe("isolation")?.as_deref() {
            Some("threads") => ("threads", Isolation::Threads),
            Some("prefork") => ("prefork", Isolation::Prefork),
            Some("fresh") => ("fresh", Isolation::Fresh),
            _ if threads > 1 && engine == Engine::Cruby => ("threads", Isolation::Threads),
            _ => ("prefork", Isolation::Prefork),
        };
        match (engine, level) {
            // What a request of mruby has opened is closed after it by the whole process.
            (Engine::Cruby, Isolation::Prefork | Isolation::Fresh)
            | (Engine::Mruby, Isolation::Fresh)
                if threads > 1 =>
            {
                let by = self
                    .said
                    .given("threads")
                    .map_or(String::new(), |g| format!(" ({})", g.origin));
                Err(self.wrong("isolation", &format!(
                    "isolation is {text}, which is one request per process at a time, but threads \
                     is {threads}{by}: take workers instead, or isolation threads"
                )))
            }
            (Engine::Mruby, Isolation::Threads) => Err(self.wrong(
                "isolation",
                "isolation is threads, but interpreters of mruby run one request at a time: take \
                 prefork or fresh",
            )),
            _ => Ok(level),
        }
    }

    fn is_for_mruby(&self) -> Result<(), String> {
        if !cfg!(feature = "mruby") {
            return Err(self.wrong(
                "engine",
                "engine is mruby, which this server was built without: install libmruby-dev and \
                 build it again",
            ));
        }
        let hook = self.declared.and_then(|declared| declared.hooks.first());
        if let Some((name, place)) = hook {
            return Err(format!("{place}: {name} is for CRuby, and this mount's engine is mruby"));
        }
        for name in OF_CRUBY {
            if self.meant(name).is_some() {
                let why = format!("{name} is for CRuby, and the engine is mruby: leave it out");
                return Err(self.wrong(name, &why));
            }
        }
        Ok(())
    }

    /// Who wants both has misunderstood one of them; what others need is left out silently.
    fn is_for_fresh(&self, mount: &mut Mount) -> Result<(), String> {
        for name in OF_KEPT {
            let wants = |given: &&Given| !["0", "false", "no", "off"].contains(&&*given.text);
            if self.meant(name).filter(wants).is_some() {
                let why = format!(
                    "{name} is for workers that serve more than one request, and isolation is \
                     fresh: leave one of the two out"
                );
                return Err(self.wrong(name, &why));
            }
        }
        (mount.recycling.max_requests, mount.recycling.min_requests) = (0, 0);
        mount.worker.oob_gc = false;
        Ok(())
    }

    /// A user's group is looked for where the user is named.
    fn identity(&self) -> Result<(Option<String>, Option<String>), String> {
        let own = |name: &str| self.declared.and_then(|d| d.word(name)).map(|g| g.text.clone());
        match own("user") {
            Some(user) => Ok((Some(user), own("group"))),
            None => Ok((self.said.maybe("user")?, self.said.maybe("group")?)),
        }
    }
}

fn rlimits(said: &Said) -> Result<Rlimits, String> {
    Ok(Rlimits {
        memory: said.bytes("limit_memory")?,
        cpu: said.count("limit_cpu")?.into(),
        files: said.count("limit_files")?.into(),
        processes: said.count("limit_processes")?.into(),
        file_size: said.bytes("limit_file_size")?,
    })
}

fn recycling(said: &Said) -> Result<Recycling, String> {
    Ok(Recycling {
        max_requests: said.count("max_requests")?.into(),
        min_requests: said.count("min_requests")?.into(),
        max_rss: said.bytes("max_rss")?,
        max_pss: said.bytes("max_pss")?,
        max_age: said.seconds("max_age")?,
    })
}

fn worker(said: &Said) -> Result<WorkerOptions, String> {
    let [hard, soft] = ["request_timeout", "request_timeout_soft"].map(|name| said.seconds(name));
    let (hard, soft) = (hard?.as_secs_f64(), soft?.as_secs_f64());
    if hard > 0.0 && soft >= hard {
        let why = format!(
            "request_timeout_soft: {soft} is not less than request_timeout, {hard}: the worker \
             would be killed before it could log where it is"
        );
        let given = said.given("request_timeout_soft");
        return Err(given.map_or(why.clone(), |given| given.blame(&why)));
    }
    let most = said.is_said("max_gc_per_request").then(|| said.count("max_gc_per_request"));
    let most = most.transpose()?;
    Ok(WorkerOptions {
        early_hints: said.flag("early_hints")?,
        request_timeout: hard,
        request_timeout_soft: soft,
        // Said to be 0 it means never; unsaid it means when need be.
        oob_gc: said.flag("oob_gc")? && most != Some(0),
        max_gc_per_request: most.unwrap_or(0),
        min_gc_per_request: said.count("min_gc_per_request")?,
        oob_gc_cap: said.bytes("oob_gc_cap")?,
        warm_up: said.maybe("warm_up")?,
        config: None,
    })
}

fn watch(said: &Said) -> Result<Vec<String>, String> {
    let patterns = said.list("watch")?;
    for pattern in &patterns {
        Pattern::new(Path::new("/"), pattern)?;
    }
    Ok(patterns)
}

#[cfg(test)]
mod tests;
