//! From what was said on the command line and in the configuration file to what holds.

use crate::layers::{self, Layer, Said};
use crate::pattern::Pattern;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::settings::{Address, SEATS_PER_GENERATION};

/// What holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where to listen.
    pub binds: Vec<Address>,
    /// Worker processes.
    pub workers: u16,
    /// Threads of each.
    pub threads: u16,
    /// Rack environment.
    pub environment: String,
    /// Threads of the front.
    pub front_threads: u16,
    /// How to listen there.
    pub listening: Listening,
    /// Settings of the server as a process.
    pub process: Process,
    /// When a worker is replaced.
    pub recycling: Recycling,
    /// Time between two forks.
    pub spawn_interval: Duration,
    /// How long no worker is forked after one has ended with an error.
    pub err_respawn_interval: Duration,
    /// How long a new worker may take to get ready; zero: for ever.
    pub start_timeout: Duration,
    /// How long the old generation is kept after a restart; zero: not at all.
    pub rollback_window: Duration,
    /// `reload`, `recycle` or `exit`; none: it depends on who started the server.
    pub hup_action: Option<String>,
    /// What molds and workers are told, as the names of the settings.
    pub worker: WorkerOptions,
    /// Where errors are logged.
    pub error_log: PathBuf,
    /// `text` or `json`.
    pub error_log_format: String,
    /// What the front is told.
    pub front: front::Options,
    /// What running requests get to finish.
    pub shutdown_timeout: Duration,
    /// Whether a harmless request may be run twice.
    pub retry_idempotent: bool,
}

/// How to listen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Listening {
    /// The kernel's queue of each listener.
    pub backlog: i32,
    /// `SO_REUSEPORT`.
    pub reuse_port: bool,
    /// `TCP_DEFER_ACCEPT`.
    pub defer_accept: bool,
    /// Permissions of unix sockets; none: as the umask says.
    pub socket_mode: Option<u32>,
}

/// The server as a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// The control socket; none: one named by the pid.
    pub control: Option<PathBuf>,
    /// Where to write the pid.
    pub pid_file: Option<PathBuf>,
    /// Whether to run in the background.
    pub daemonize: bool,
    /// Whom front, molds and workers run as.
    pub user: Option<String>,
    /// Their group.
    pub group: Option<String>,
    /// Where to go first.
    pub chdir: Option<PathBuf>,
    /// How long it stays when no request comes; zero: for ever.
    pub idle_timeout: Duration,
    /// Files, or patterns, whose change means a restart.
    pub watch: Vec<String>,
}

/// When a worker is replaced. Zeroes: never.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Recycling {
    /// After so many requests at the latest.
    pub max_requests: u64,
    /// After so many at the earliest.
    pub min_requests: u64,
    /// Resident bytes.
    pub max_rss: u64,
    /// Its share of memory in bytes.
    pub max_pss: u64,
    /// Age.
    pub max_age: Duration,
}

/// What molds and workers are told.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkerOptions {
    /// Whether apps may send `103 Early Hints`.
    pub early_hints: bool,
    /// Seconds a request may run; 0: for ever.
    pub request_timeout: f64,
    /// Seconds until its backtrace is logged; 0: never.
    pub request_timeout_soft: f64,
    /// Whether to collect garbage between requests.
    pub oob_gc: bool,
    /// After so many requests at the latest; 0: when need be.
    pub max_gc_per_request: u32,
    /// After so many at the earliest; 0: half of the above.
    pub min_gc_per_request: u32,
    /// Bytes not collected yet that force a collection.
    pub oob_gc_cap: u64,
    /// What a new worker asks its app for.
    pub warm_up: Option<String>,
    /// The configuration file, for its hooks.
    pub config: Option<String>,
}

/// Resolves layers, the first of which wins.
pub fn resolve(layers: &[Layer]) -> Result<Settings, String> {
    layers::check(layers)?;
    let said = Said(layers);
    let single = said.text("affinity")? == "single";
    let of_these = |count: u32| if single { 1 } else { count as u16 };
    let settings = Settings {
        binds: said.binds()?.into_iter().map(|(address, _)| address).collect(),
        workers: of_these(said.count("workers")?),
        threads: of_these(said.count("threads")?),
        environment: said.text("environment")?,
        front_threads: said.count("front_threads")? as u16,
        listening: listening(&said)?,
        process: process(&said)?,
        recycling: recycling(&said)?,
        spawn_interval: said.seconds("spawn_interval")?,
        err_respawn_interval: said.seconds("err_respawn_interval")?,
        start_timeout: said.seconds("start_timeout")?,
        rollback_window: said.seconds("rollback_window")?,
        hup_action: said.maybe("hup_action")?,
        worker: worker(&said)?,
        error_log: said.text("error_log")?.into(),
        error_log_format: said.text("error_log_format")?,
        front: front_options(&said)?,
        shutdown_timeout: said.seconds("shutdown_timeout")?,
        retry_idempotent: said.flag("retry_idempotent")?,
    };
    let seats = u32::from(settings.workers) * u32::from(settings.threads);
    if seats > SEATS_PER_GENERATION {
        return Err(format!(
            "{} workers of {} threads are {seats} threads; at most {SEATS_PER_GENERATION} are \
             possible: lower one of the two",
            settings.workers, settings.threads
        ));
    }
    Ok(settings)
}

fn listening(said: &Said) -> Result<Listening, String> {
    let mode = said.is_said("socket_mode");
    Ok(Listening {
        backlog: said.count("backlog")? as i32,
        reuse_port: said.flag("reuse_port")?,
        defer_accept: said.flag("defer_accept")?,
        socket_mode: mode.then(|| said.count("socket_mode")).transpose()?,
    })
}

fn process(said: &Said) -> Result<Process, String> {
    Ok(Process {
        control: said.maybe("control")?.map(Into::into),
        pid_file: said.maybe("pid_file")?.map(Into::into),
        daemonize: said.flag("daemonize")?,
        user: said.maybe("user")?,
        group: said.maybe("group")?,
        chdir: said.maybe("chdir")?.map(Into::into),
        idle_timeout: said.seconds("idle_timeout")?,
        watch: watch(said)?,
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
        return Err(format!(
            "request_timeout_soft: {soft} is not less than request_timeout, {hard}: the worker \\
             would be killed before it could log where it is"
        ));
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

fn prefix(said: &Said) -> Result<String, String> {
    let Some(text) = said.maybe("prefix")? else { return Ok(String::new()) };
    let usual = |c: char| c.is_ascii_graphic() && !"?#%".contains(c);
    let right = text.starts_with('/') && !text.contains("//") && text.chars().all(usual);
    match right {
        // Said to be `/` it is everything, whatever a web server says; unsaid, what that says.
        true if text == "/" => Ok(text),
        true => Ok(text.trim_end_matches('/').into()),
        false => Err(format!("prefix: {text:?} is not a path such as /app")),
    }
}

fn front_options(said: &Said) -> Result<front::Options, String> {
    Ok(front::Options {
        queue_timeout: said.seconds("queue_timeout")?,
        uri_limit: said.bytes("uri_limit")? as usize,
        head_limit: said.bytes("head_limit")? as usize,
        header_count: said.count("header_count")? as usize,
        body_limit: said.bytes("body_limit")?,
        first_byte_timeout: said.seconds("first_byte_timeout")?,
        head_timeout: said.seconds("head_timeout")?,
        body_timeout: said.seconds("body_timeout")?,
        keep_alive_timeout: said.seconds("keep_alive_timeout")?,
        write_timeout: said.seconds("write_timeout")?,
        half_close_timeout: said.seconds("half_close_timeout")?,
        connections: said.count("connections")? as usize,
        connections_per_peer: said.count("connections_per_peer")? as usize,
        prefix: prefix(said)?,
        trusted_proxies: said.list("trusted_proxies")?,
        forwarded: said.text("forwarded")?,
        proxy_protocol: said.flag("proxy_protocol")?,
        chunked_transfer: said.flag("chunked_transfer")?,
        spool_dir: said.text("spool_dir")?.into(),
        reply_spool: said.bytes("reply_spool")?,
        access_log: said.maybe("access_log")?.map(Into::into),
        access_log_format: said.text("access_log_format")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::{Origin, given};
    use wire::settings::Socket;

    fn layer(pairs: &[(&'static str, &[&str])]) -> Layer {
        let said =
            |values: &[&str]| given(values.iter().map(ToString::to_string), &Origin::CommandLine);
        pairs.iter().map(|(name, values)| (*name, said(values))).collect()
    }

    #[test]
    fn the_first_layer_wins() {
        let line = layer(&[("workers", &["3"])]);
        let file = layer(&[("workers", &["5"]), ("threads", &["2"])]);
        let settings = resolve(&[line, file]).unwrap();
        assert_eq!((settings.workers, settings.threads), (3, 2));
        assert_eq!(settings.binds, [Address::http(Socket::Tcp("127.0.0.1".into(), 9292))]);
        assert_eq!(settings.shutdown_timeout, Duration::from_secs(30));
        assert_eq!(settings.front.queue_timeout, Duration::ZERO);
    }

    #[test]
    fn prefixes_are_paths() {
        let of = |text| resolve(&[layer(&[("prefix", &[text])])]).map(|all| all.front.prefix);
        assert_eq!(of("/app/"), Ok("/app".into()));
        assert_eq!(of("/"), Ok("/".into()));
        for wrong in ["app", "/a b", "/a?b", "//a", "/%41"] {
            assert!(of(wrong).unwrap_err().contains("such as /app"), "{wrong}");
        }
    }

    #[test]
    fn a_single_worker_is_one_with_one_thread() {
        let said = [("workers", &["4"][..]), ("threads", &["2"]), ("affinity", &["single"])];
        let settings = resolve(&[layer(&said)]).unwrap();
        assert_eq!((settings.workers, settings.threads), (1, 1));
    }

    #[test]
    fn a_port_on_the_command_line_replaces_all_addresses_of_the_file() {
        let line = layer(&[("port", &["3000"])]);
        let file = layer(&[("bind", &["unix:///run/a.sock", "tcp://0.0.0.0:80"])]);
        let binds = resolve(&[line, file]).unwrap().binds;
        assert_eq!(binds, [Address::http(Socket::Tcp("127.0.0.1".into(), 3000))]);
    }

    #[test]
    fn a_worker_told_to_collect_after_no_requests_never_does() {
        let gc = |most: Option<&str>| {
            let mut layer = layer(&[("oob_gc", &["yes"])]);
            layer.extend(most.map(|n| ("max_gc_per_request", given([n.into()], &Origin::Default))));
            let worker = resolve(&[layer]).unwrap().worker;
            (worker.oob_gc, worker.max_gc_per_request)
        };
        assert_eq!([gc(None), gc(Some("5")), gc(Some("0"))], [(true, 0), (true, 5), (false, 0)]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |layer: Layer| resolve(&[layer]).unwrap_err();
        assert!(error(layer(&[("workers", &["none"])])).starts_with("workers: \"none\""));
        assert_eq!(
            error(layer(&[("queue_timeout", &["soon"])])),
            "queue_timeout: \"soon\" is not a number of seconds from 0 to 86400"
        );
        assert!(error(layer(&[("port", &["70000"])])).contains("from 0 to 65535"));
        assert!(error(layer(&[("bind", &["nowhere"])])).contains("unix://PATH"));
        let late = layer(&[("request_timeout", &["5"]), ("request_timeout_soft", &["5"])]);
        assert!(error(late).starts_with("request_timeout_soft: 5 is not less than"));
        let many = layer(&[("workers", &["100"]), ("threads", &["10"])]);
        assert!(error(many).contains("1000 threads; at most 512"));
    }
}
