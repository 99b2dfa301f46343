//! From what was said on the command line and in the configuration file to what holds.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;
use wire::settings::{self, Address, Fallback, SEATS_PER_GENERATION, Setting, Value};

/// What one source says: unchecked values by option.
pub type Layer = BTreeMap<&'static str, Vec<String>>;

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
    /// The kernel's queue of each listener.
    pub backlog: i32,
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
    /// Whether apps may send `103 Early Hints`.
    pub early_hints: bool,
}

/// Resolves layers, the first of which wins.
pub fn resolve(layers: &[Layer]) -> Result<Settings, String> {
    let said = |name: &str| {
        layers.iter().find_map(|layer| layer.get(name)).and_then(|values| values.last())
    };
    let value = |name: &str| -> Result<Value, String> {
        let setting = settings::find(name).ok_or_else(|| format!("no option {name}"))?;
        setting.check(&said(name).cloned().unwrap_or_else(|| fallback(setting)))
    };
    let wide = |name: &str| match value(name)? {
        Value::Count(n) => Ok(n),
        other => Err(format!("{name}: {other:?} is not a number")),
    };
    let count = |name: &str| wide(name).map(|n| n as u16);
    let text = |name: &str| match value(name)? {
        Value::Text(text) => Ok(text),
        other => Err(format!("{name}: {other:?} is no text")),
    };
    let bytes = |name: &str| match value(name)? {
        Value::Bytes(count) => Ok(count),
        other => Err(format!("{name}: {other:?} is no number of bytes")),
    };
    let seconds = |name: &str| match value(name)? {
        Value::Seconds(seconds) => Ok(Duration::from_secs_f64(seconds)),
        other => Err(format!("{name}: {other:?} is no duration")),
    };
    let settings = Settings {
        binds: binds(layers)?,
        workers: count("workers")?,
        threads: count("threads")?,
        environment: text("environment")?,
        front_threads: count("front_threads")?,
        backlog: i32::from(count("backlog")?),
        error_log: text("error_log")?.into(),
        error_log_format: text("error_log_format")?,
        front: front::Options {
            queue_timeout: seconds("queue_timeout")?,
            uri_limit: bytes("uri_limit")? as usize,
            head_limit: bytes("head_limit")? as usize,
            header_count: wide("header_count")? as usize,
            body_limit: bytes("body_limit")?,
            first_byte_timeout: seconds("first_byte_timeout")?,
            head_timeout: seconds("head_timeout")?,
            body_timeout: seconds("body_timeout")?,
            keep_alive_timeout: seconds("keep_alive_timeout")?,
            write_timeout: seconds("write_timeout")?,
            half_close_timeout: seconds("half_close_timeout")?,
            connections: wide("connections")? as usize,
            connections_per_peer: wide("connections_per_peer")? as usize,
            trusted_proxies: trusted_proxies(layers)?,
            forwarded: text("forwarded")?,
            proxy_protocol: value("proxy_protocol")? == Value::Flag(true),
            spool_dir: text("spool_dir")?.into(),
            reply_spool: bytes("reply_spool")?,
            access_log: said("access_log").map(|_| text("access_log")).transpose()?.map(Into::into),
            access_log_format: text("access_log_format")?,
        },
        shutdown_timeout: seconds("shutdown_timeout")?,
        retry_idempotent: value("retry_idempotent")? == Value::Flag(true),
        early_hints: value("early_hints")? == Value::Flag(true),
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

/// The networks of the first layer that names any.
fn trusted_proxies(layers: &[Layer]) -> Result<Vec<String>, String> {
    let said = layers.iter().find_map(|layer| layer.get("trusted_proxies"));
    let networks = said.cloned().unwrap_or_default();
    networks.iter().try_for_each(|network| checked("trusted_proxies", network))?;
    Ok(networks)
}

/// The addresses of the first layer that names any; `port` is short for one of them.
fn binds(layers: &[Layer]) -> Result<Vec<Address>, String> {
    for layer in layers {
        let mut binds = Vec::new();
        for text in layer.get("bind").into_iter().flatten() {
            checked("bind", text)?;
            binds.push(Address::parse(text)?);
        }
        for text in layer.get("port").into_iter().flatten() {
            checked("port", text)?;
            binds.push(Address::parse(&format!("127.0.0.1:{text}"))?);
        }
        if !binds.is_empty() {
            return Ok(binds);
        }
    }
    let bind = settings::find("bind").ok_or("no option bind")?;
    Ok(vec![Address::parse(&fallback(bind))?])
}

fn checked(name: &str, text: &str) -> Result<(), String> {
    settings::find(name).map_or(Ok(()), |setting| setting.check(text).map(|_| ()))
}

fn fallback(setting: &Setting) -> String {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    match (setting.fallback, setting.name) {
        (Fallback::Fixed(text), _) => text.into(),
        (_, "workers") => cores.clamp(2, SEATS_PER_GENERATION as usize).to_string(),
        (_, "front_threads") => (cores / 4).clamp(1, wire::FRONTS).to_string(),
        (_, "environment") => std::env::var("RACK_ENV")
            .ok()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "development".into()),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(pairs: &[(&'static str, &[&str])]) -> Layer {
        pairs.iter().map(|(k, v)| (*k, v.iter().map(ToString::to_string).collect())).collect()
    }

    #[test]
    fn the_first_layer_wins() {
        let line = layer(&[("workers", &["3"])]);
        let file = layer(&[("workers", &["5"]), ("threads", &["2"])]);
        let settings = resolve(&[line, file]).unwrap();
        assert_eq!((settings.workers, settings.threads), (3, 2));
        assert_eq!(settings.binds, [Address::Tcp("127.0.0.1".into(), 9292)]);
        assert_eq!(settings.shutdown_timeout, Duration::from_secs(30));
        assert_eq!(settings.front.queue_timeout, Duration::ZERO);
    }

    #[test]
    fn a_port_on_the_command_line_replaces_all_addresses_of_the_file() {
        let line = layer(&[("port", &["3000"])]);
        let file = layer(&[("bind", &["unix:///run/a.sock", "tcp://0.0.0.0:80"])]);
        let binds = resolve(&[line, file]).unwrap().binds;
        assert_eq!(binds, [Address::Tcp("127.0.0.1".into(), 3000)]);
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
        let many = layer(&[("workers", &["100"]), ("threads", &["10"])]);
        assert!(error(many).contains("1000 threads; at most 512"));
    }
}
