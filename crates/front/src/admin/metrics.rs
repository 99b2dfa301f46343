//! Everything there is to count, as Prometheus reads it. docs/metrics.md describes each.

use super::text::{Number, Text};
use crate::stats::REASONS;
use serde_json::Value;
use std::collections::BTreeSet;
use wire::counters::server::{ANSWERS, Cause, Lives, Server, TIMES_NS, Times, Traffic};
use wire::counters::{self, Counters};
use wire::sync::AtomicU64;
use wire::sync::Ordering::Relaxed;

/// How a request was answered, in the order of `Traffic::answers`.
const CLASSES: [&str; ANSWERS] = ["1xx", "2xx", "3xx", "4xx", "5xx", "gone"];
/// What a worker does, as `oribi status` calls it.
const STATES: [&str; 6] = ["booting", "idle", "busy", "collecting", "leaving", "spent"];
/// Those in which it takes requests, or will without anybody's doing.
const TAKING: [&str; 3] = ["idle", "busy", "collecting"];

/// The mounts of a status.
pub fn mounts(status: &Value) -> impl Iterator<Item = &Value> {
    status["mounts"].as_array().into_iter().flatten()
}

/// A mount's name.
pub fn name(mount: &Value) -> &str {
    mount["name"].as_str().unwrap_or("/")
}

fn workers(mount: &Value) -> impl Iterator<Item = (&Value, &str)> {
    let generations = mount["generations"].as_array().into_iter().flatten();
    generations.flat_map(|generation| {
        let workers = generation["workers"].as_array().into_iter().flatten();
        workers.map(move |one| (&generation["role"], one["state"].as_str().unwrap_or("")))
    })
}

/// Whether a mount has workers that take requests. One without an app needs none.
pub fn takes(mount: &Value) -> bool {
    let serves = |(role, state): (&Value, &str)| role == "serving" && TAKING.contains(&state);
    mount["engine"].is_null() || workers(mount).any(serves)
}

/// The whole text. `status` is null when the supervisor does not say.
pub fn text(counters: &Counters, threads: usize, connections: usize, status: &Value) -> String {
    let mut text = Text::default();
    let server = counters.server();
    let rows = Rows { server, threads };
    of_server(&mut text, &rows, connections, status);
    of_mounts(&mut text, &rows);
    of_workers(&mut text, &rows);
    of_status(&mut text, status);
    of_apps(&mut text, counters);
    text.finish()
}

/// The server's own numbers by mount.
struct Rows {
    server: &'static Server,
    threads: usize,
}

impl Rows {
    fn traffic(&self, row: usize) -> impl Iterator<Item = &'static Traffic> {
        self.server.threads[..self.threads].iter().map(move |thread| &thread.traffic[row])
    }

    fn sum(&self, row: usize, read: impl Fn(&Traffic) -> u64) -> u64 {
        self.traffic(row).map(read).sum()
    }

    fn times(&self, row: usize, which: impl Fn(&Traffic) -> &Times) -> (Vec<u64>, f64) {
        let mut all = vec![0; TIMES_NS.len() + 1];
        let mut sum = 0u64;
        for traffic in self.traffic(row) {
            let (buckets, ns) = which(traffic).get();
            all.iter_mut().zip(buckets).for_each(|(all, bucket)| *all += bucket);
            sum = sum.wrapping_add(ns);
        }
        (all, seconds(sum))
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn of_server(text: &mut Text, rows: &Rows, connections: usize, status: &Value) {
    let version = status["version"].as_str().unwrap_or(env!("CARGO_PKG_VERSION"));
    text.family("oribi_info", "gauge", "1; its label is the server's version.");
    text.sample("oribi_info", &[("version", version)], 1);
    text.family("oribi_connections", "gauge", "Client connections that are open.");
    text.sample("oribi_connections", &[], connections);
    let accepted: u64 =
        rows.server.threads[..rows.threads].iter().map(|thread| thread.accepted.get()).sum();
    let help = "Client connections accepted.";
    text.family("oribi_connections_accepted_total", "counter", help);
    text.sample("oribi_connections_accepted_total", &[], accepted);
    let help = "Times the front was started; more than once means that it died.";
    text.family("oribi_front_starts_total", "counter", help);
    text.sample("oribi_front_starts_total", &[], rows.server.fronts.load(Relaxed));
    if let Some(uptime) = status["uptime_ms"].as_u64() {
        text.family("oribi_uptime_seconds", "gauge", "How long the server runs.");
        text.sample("oribi_uptime_seconds", &[], Number(uptime as f64 / 1000.0));
    }
}

fn of_mounts(text: &mut Text, rows: &Rows) {
    let help = "Requests that were admitted, by the first digit of their answer's status; gone: the \
                client had left before.";
    text.family("oribi_requests_total", "counter", help);
    for (row, mount) in rows.server.rows() {
        for (number, class) in CLASSES.iter().enumerate() {
            let count = rows.sum(row, |traffic| traffic.answers[number].get());
            text.sample("oribi_requests_total", &[("mount", &mount), ("status", class)], count);
        }
    }
    let help = "Requests and connections that were refused, by reason. Without a mount: it was not \
                known yet.";
    text.family("oribi_refused_total", "counter", help);
    let nobody = [(0, String::new())].into_iter();
    for (row, mount) in nobody.chain(rows.server.rows()) {
        for (number, reason) in REASONS.iter().enumerate() {
            let count = rows.sum(row, |traffic| traffic.refused[number].get());
            // All of a mount's, lest its series come and go; of the others those that there are.
            if count > 0 || (row > 0 && matches!(*reason, "queue_full" | "queue_timeout")) {
                let labels = [("mount", &*mount), ("reason", reason)];
                text.sample("oribi_refused_total", &labels, count);
            }
        }
    }
    let queue = "Time that requests have waited in the queue, those that were shed included.";
    let service = "Time from a worker's taking a request to the end of its reply.";
    times(text, rows, "oribi_queue_seconds", queue, |traffic| &traffic.queue);
    times(text, rows, "oribi_service_seconds", service, |traffic| &traffic.service);
    let received = "Bytes of request bodies that apps were given.";
    bytes(text, rows, "oribi_received_bytes_total", received, |traffic| traffic.received.get());
    let sent = "Bytes of reply bodies that came from apps.";
    bytes(text, rows, "oribi_sent_bytes_total", sent, |traffic| traffic.sent.get());
}

fn times(text: &mut Text, rows: &Rows, name: &str, help: &str, which: fn(&Traffic) -> &Times) {
    text.family(name, "histogram", help);
    let bounds = TIMES_NS.map(seconds);
    for (row, mount) in rows.server.rows() {
        let (buckets, sum) = rows.times(row, which);
        text.histogram(name, &[("mount", &mount)], &bounds, &buckets, sum);
    }
}

fn bytes(text: &mut Text, rows: &Rows, name: &str, help: &str, read: fn(&Traffic) -> u64) {
    text.family(name, "counter", help);
    for (row, mount) in rows.server.rows() {
        text.sample(name, &[("mount", &mount)], rows.sum(row, read));
    }
}

fn of_workers(text: &mut Text, rows: &Rows) {
    let lives = |text: &mut Text, name: &str, help: &str, read: fn(&Lives) -> &AtomicU64| {
        text.family(name, "counter", help);
        for (row, mount) in rows.server.rows() {
            let count = read(&rows.server.lives[row]).load(Relaxed);
            text.sample(name, &[("mount", &mount)], count);
        }
    };
    lives(text, "oribi_workers_started_total", "Workers forked.", |lives| &lives.started);
    let help = "Workers that are no more, by cause.";
    text.family("oribi_worker_deaths_total", "counter", help);
    for (row, mount) in rows.server.rows() {
        for cause in Cause::ALL {
            let count = rows.server.lives[row].deaths[cause as usize].load(Relaxed);
            let labels = [("mount", &*mount), ("cause", cause.name())];
            text.sample("oribi_worker_deaths_total", &labels, count);
        }
    }
    let help = "Restarts, by how they ended.";
    text.family("oribi_restarts_total", "counter", help);
    for (row, mount) in rows.server.rows() {
        let lives = &rows.server.lives[row];
        let ends = [
            ("served", &lives.restarts),
            ("failed", &lives.restarts_failed),
            ("rolled_back", &lives.rollbacks),
        ];
        for (outcome, count) in ends {
            let labels = [("mount", &*mount), ("outcome", outcome)];
            text.sample("oribi_restarts_total", &labels, count.load(Relaxed));
        }
    }
    let help = "Time that workers have spent collecting garbage.";
    text.family("oribi_gc_seconds_total", "counter", help);
    for (row, mount) in rows.server.rows() {
        let ns = rows.server.lives[row].gc_ns.load(Relaxed);
        text.sample("oribi_gc_seconds_total", &[("mount", &mount)], Number(seconds(ns)));
    }
    let help = "How often workers have collected garbage.";
    lives(text, "oribi_gc_runs_total", help, |lives| &lives.gc_runs);
}

/// What only the supervisor knows; nothing when it does not say.
fn of_status(text: &mut Text, status: &Value) {
    if !status.is_object() {
        return;
    }
    let app = |mount: &&Value| !mount["engine"].is_null();
    text.family("oribi_workers", "gauge", "Workers, by what they do.");
    for mount in mounts(status).filter(app) {
        for state in STATES {
            let count = workers(mount).filter(|(_, its)| *its == state).count();
            text.sample("oribi_workers", &[("mount", name(mount)), ("state", state)], count);
        }
    }
    let gauge = |text: &mut Text, name_: &str, help: &str, read: fn(&Value) -> f64| {
        text.family(name_, "gauge", help);
        for mount in mounts(status).filter(app) {
            text.sample(name_, &[("mount", name(mount))], Number(read(mount)));
        }
    };
    gauge(text, "oribi_generation", "The generation that serves.", |mount| {
        mount["serving"].as_f64().unwrap_or(0.0)
    });
    gauge(text, "oribi_queue_waiting", "Requests in the queue.", |mount| {
        mount["queue"]["waiting"].as_f64().unwrap_or(0.0)
    });
    let help = "How long the oldest request in the queue has waited; 0: none waits.";
    gauge(text, "oribi_queue_oldest_seconds", help, |mount| {
        mount["queue"]["oldest_ms"].as_f64().unwrap_or(0.0) / 1000.0
    });
}

/// What apps count, under the names that they gave. A histogram has names beside its own.
fn of_apps(text: &mut Text, counters: &Counters) {
    let metrics = counters.metrics();
    let taken: BTreeSet<String> = metrics
        .iter()
        .filter(|metric| matches!(metric.value, counters::Value::Histogram { .. }))
        .flat_map(|metric| ["bucket", "sum", "count"].map(|part| format!("{}_{part}", metric.name)))
        .collect();
    for metric in metrics.iter().filter(|metric| !taken.contains(&metric.name)) {
        let name = &metric.name;
        let help = "Counted by the application.";
        match &metric.value {
            counters::Value::Counter(value) => {
                text.family(name, "counter", help);
                text.sample(name, &[], value);
            }
            counters::Value::Gauge(value) => {
                text.family(name, "gauge", help);
                text.sample(name, &[], value);
            }
            counters::Value::Histogram { bounds, buckets, sum } => {
                text.family(name, "histogram", help);
                text.histogram(name, &[], bounds, buckets, *sum);
            }
        }
    }
}
