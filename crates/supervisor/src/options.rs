//! From what was said on the command line and in the configuration file to what holds.

mod diff;
mod mount;
mod mounts;
mod place;
mod texts;

use crate::declared::Declared;
use crate::layers::{self, Layer, Said};
use crate::place::Place;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::settings::Address;

pub use diff::{Changed, Changes, diff};
pub use mount::{Engine, Isolation, Mount, Recycling, Rlimits, Serves};
pub use mounts::concerns;
#[cfg(feature = "mruby")]
pub use place::name_of;

/// What holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Where to listen.
    #[serde(with = "texts::addresses")]
    pub binds: Vec<Address>,
    /// Threads of the front.
    pub front_threads: u16,
    /// How to listen there.
    pub listening: Listening,
    /// Settings of the server as a process.
    pub process: Process,
    /// `reload`, `recycle` or `exit`; none: it depends on who started the server.
    pub hup_action: Option<String>,
    /// Where errors are logged.
    pub error_log: PathBuf,
    /// `text` or `json`.
    pub error_log_format: String,
    /// What the front is told.
    pub front: front::Options,
    /// What running requests get to finish.
    pub shutdown_timeout: Duration,
    /// What it serves: at least one.
    pub mounts: Vec<Mount>,
}

/// How to listen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// The control socket; none: one named by the pid.
    pub control: Option<PathBuf>,
    /// Where to say how things are: one address, or none.
    #[serde(with = "texts::addresses")]
    pub admin: Vec<Address>,
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
}

/// Resolves layers, the first of which wins, and the mounts that are declared beside them.
pub fn resolve(layers: &[Layer], declared: &[Declared]) -> Result<Settings, String> {
    layers::check(layers)?;
    let said = Said(layers);
    let settings = Settings {
        binds: said.binds()?.into_iter().map(|(address, _)| address).collect(),
        front_threads: said.count("front_threads")? as u16,
        listening: listening(&said)?,
        process: process(&said)?,
        hup_action: said.maybe("hup_action")?,
        error_log: said.text("error_log")?.into(),
        error_log_format: said.text("error_log_format")?,
        front: front_options(&said)?,
        shutdown_timeout: said.seconds("shutdown_timeout")?,
        mounts: mounts::all(layers, declared)?,
    };
    settings.check()?;
    Ok(settings)
}

impl Settings {
    /// What each setting allows, but not together.
    fn check(&self) -> Result<(), String> {
        let proxy = self.mounts.iter().find(|mount| !mount.has_app());
        match proxy {
            // Only segments say when a request came, and it has none.
            Some(proxy) if !self.process.idle_timeout.is_zero() => Err(format!(
                "idle_timeout: requests to a proxy (mount {}) do not keep the server up; \
                 set idle_timeout to 0 or leave the proxy out",
                proxy.name
            )),
            _ => Ok(()),
        }
    }

    /// Files that are opened again later, or by others, are those that their names lead to then.
    pub fn make_absolute(&mut self, place: &Place) {
        let is_stream = |path: &Path| ["stdout", "stderr"].map(Path::new).contains(&path);
        let absolute = |path: &mut PathBuf| {
            if !is_stream(path) {
                *path = place.file(path);
            }
        };
        absolute(&mut self.error_log);
        absolute(&mut self.front.spool_dir);
        self.front.access_log.iter_mut().for_each(absolute);
        self.process.pid_file.iter_mut().for_each(absolute);
        self.process.control.iter_mut().for_each(absolute);
        if self.process.chdir.is_some() {
            self.process.chdir = Some(place.directory.clone());
        }
    }
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
        admin: said
            .maybe("admin")?
            .iter()
            .map(|text| Address::parse(text))
            .collect::<Result<_, _>>()?,
        pid_file: said.maybe("pid_file")?.map(Into::into),
        daemonize: said.flag("daemonize")?,
        user: said.maybe("user")?,
        group: said.maybe("group")?,
        chdir: said.maybe("chdir")?.map(Into::into),
        idle_timeout: said.seconds("idle_timeout")?,
    })
}

fn front_options(said: &Said) -> Result<front::Options, String> {
    Ok(front::Options {
        uri_limit: said.bytes("uri_limit")? as usize,
        head_limit: said.bytes("head_limit")? as usize,
        header_count: said.count("header_count")? as usize,
        first_byte_timeout: said.seconds("first_byte_timeout")?,
        head_timeout: said.seconds("head_timeout")?,
        body_timeout: said.seconds("body_timeout")?,
        keep_alive_timeout: said.seconds("keep_alive_timeout")?,
        write_timeout: said.seconds("write_timeout")?,
        half_close_timeout: said.seconds("half_close_timeout")?,
        connections: said.count("connections")? as usize,
        connections_per_peer: said.count("connections_per_peer")? as usize,
        trusted_proxies: said.list("trusted_proxies")?,
        forwarded: said.text("forwarded")?,
        proxy_protocol: said.flag("proxy_protocol")?,
        spool_dir: said.text("spool_dir")?.into(),
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
        let settings = resolve(&[line, file], &[]).unwrap();
        let mount = &settings.mounts[0];
        assert_eq!((mount.workers, mount.threads), (3, 2));
        assert_eq!(settings.binds, [Address::http(Socket::Tcp("127.0.0.1".into(), 9292))]);
        assert_eq!(settings.shutdown_timeout, Duration::from_secs(30));
        assert_eq!(mount.front.queue_timeout, Duration::ZERO);
    }

    #[test]
    fn prefixes_are_paths() {
        let of = |text| {
            resolve(&[layer(&[("prefix", &[text])])], &[]).map(|all| all.mounts[0].path.clone())
        };
        assert_eq!(of("/app/"), Ok("/app".into()));
        assert_eq!(of("/"), Ok("/".into()));
        for wrong in ["app", "/a b", "/a?b", "//a", "/%41"] {
            assert!(of(wrong).unwrap_err().contains("such as /app"), "{wrong}");
        }
    }

    #[test]
    fn a_single_worker_is_one_with_one_thread() {
        let said = [("workers", &["4"][..]), ("threads", &["2"]), ("affinity", &["single"])];
        let settings = resolve(&[layer(&said)], &[]).unwrap();
        let mount = &settings.mounts[0];
        assert_eq!((mount.workers, mount.threads), (1, 1));
    }

    #[test]
    fn a_port_on_the_command_line_replaces_all_addresses_of_the_file() {
        let line = layer(&[("port", &["3000"])]);
        let file = layer(&[("bind", &["unix:///run/a.sock", "tcp://0.0.0.0:80"])]);
        let binds = resolve(&[line, file], &[]).unwrap().binds;
        assert_eq!(binds, [Address::http(Socket::Tcp("127.0.0.1".into(), 3000))]);
    }

    #[test]
    fn a_worker_told_to_collect_after_no_requests_never_does() {
        let gc = |most: Option<&str>| {
            let mut layer = layer(&[("oob_gc", &["yes"])]);
            layer.extend(most.map(|n| ("max_gc_per_request", given([n.into()], &Origin::Default))));
            let worker = resolve(&[layer], &[]).unwrap().mounts.remove(0).worker;
            (worker.oob_gc, worker.max_gc_per_request)
        };
        assert_eq!([gc(None), gc(Some("5")), gc(Some("0"))], [(true, 0), (true, 5), (false, 0)]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |layer: Layer| resolve(&[layer], &[]).unwrap_err();
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
        let idle = |seconds| {
            let mut proxy = Declared::app(&Origin::CommandLine, "/old", Path::new(""));
            proxy.said = layer(&[("path", &["/old"]), ("proxy", &["unix:/a.sock"])]);
            resolve(&[layer(&[("idle_timeout", &[seconds])])], &[proxy]).map(|_| ())
        };
        assert!(
            idle("900").unwrap_err().starts_with("idle_timeout: requests to a proxy (mount old)")
        );
        assert_eq!(idle("0"), Ok(()));
    }
}
