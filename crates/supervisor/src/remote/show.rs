//! A server's state for people.

use crate::control::status::{Generation, Mount, Process, Queue, Request, Status, Worker};
use std::io::IsTerminal;

/// Columns of the terminal, if there is one.
pub fn width() -> Option<usize> {
    let out = std::io::stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out).ok()).flatten();
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// All of it. Lines are cut to `width` columns, if there is a width.
pub fn text(status: &Status, width: Option<usize>) -> String {
    let mut lines = vec![headline(status), second_line(status)];
    for mount in &status.mounts {
        if mount.declared {
            lines.push(String::new());
            lines.push(mount_line(mount));
        }
        for generation in &mount.generations {
            if !mount.declared {
                lines.push(String::new());
            }
            lines.extend(generation_lines(generation));
        }
    }
    let fit = |line: String| match width {
        Some(width) if line.chars().count() > width => {
            line.chars().take(width - 1).chain(['…']).collect()
        }
        _ => line,
    };
    lines.into_iter().map(fit).collect::<Vec<_>>().join("\n")
}

/// The mount of a server that has one which nobody has declared.
fn single(status: &Status) -> Option<&Mount> {
    status.mounts.first().filter(|mount| !mount.declared)
}

fn headline(status: &Status) -> String {
    let serving = match single(status).map(|mount| mount.serving) {
        Some(0) => "no generation serves yet".into(),
        Some(number) => format!("generation {number} ({})", serving_word(status)),
        None if status.mounts.is_empty() => "no generation serves yet".into(),
        None => format!("{} mounts ({})", status.mounts.len(), serving_word(status)),
    };
    format!(
        "oribi {}  pid {}  up {}  {serving}  {}",
        status.version,
        status.pid,
        duration(status.uptime_ms),
        status.addresses.join(" ")
    )
}

fn serving_word(status: &Status) -> &str {
    if status.state == "stopping" { "stopping" } else { "serving" }
}

fn second_line(status: &Status) -> String {
    let queue = single(status).map_or(String::new(), |mount| queue(&mount.queue) + "  ");
    let front = match &status.front {
        Some(Process { pid: Some(pid), rss, .. }) => format!("front {pid} ({} MiB)", mib(*rss)),
        _ => "no front".into(),
    };
    format!("{queue}{front}  in {}", status.directory)
}

fn queue(queue: &Queue) -> String {
    match queue {
        Queue { waiting, oldest_ms: Some(age) } if *waiting > 0 => {
            format!("queue {waiting} waiting, the oldest for {}", duration(*age))
        }
        _ => "queue 0 waiting".into(),
    }
}

/// `shop  at /shop  serving  cruby prefork, 4 workers of 1 thread  queue 0 waiting`
fn mount_line(mount: &Mount) -> String {
    let path = if mount.path.is_empty() { "/" } else { &mount.path };
    let hosts = mount.hosts.join(",");
    let mut words = vec![mount.name.clone(), format!("at {hosts}{path}"), mount.state.clone()];
    if let (Some(engine), Some(isolation)) = (&mount.engine, &mount.isolation) {
        let (workers, threads) = (mount.workers, mount.threads);
        let plural = |n: u16| if n == 1 { "" } else { "s" };
        let of =
            format!("{workers} worker{} of {threads} thread{}", plural(workers), plural(threads));
        words.push(format!("{engine} {isolation}, {of}"));
        words.push(queue(&mount.queue));
    } else {
        words.push(format!("proxy of {}", mount.backends.join(", ")));
    }
    words.join("  ")
}

fn generation_lines(generation: &Generation) -> Vec<String> {
    let mold = &generation.mold;
    let pid = mold.process.pid.map_or(String::new(), |pid| format!(" {pid}"));
    let ruby = mold.ruby.as_ref().map_or(String::new(), |ruby| format!(", Ruby {ruby}"));
    let (number, role) = (generation.generation, &generation.role);
    let mut lines = vec![format!("generation {number} {role}, mold{pid} {}{ruby}", mold.state)];
    if !generation.workers.is_empty() {
        lines.push(row(["worker", "pid", "state", "served", "rss", "pss", "age", "request"]));
    }
    lines.extend(generation.workers.iter().flat_map(worker_lines));
    lines
}

/// One line, and one more for each further thread that has a request.
fn worker_lines(worker: &Worker) -> Vec<String> {
    let pid = worker.process.pid.map_or("-".into(), |pid| pid.to_string());
    let words = [worker.nr.to_string(), pid, worker.state.clone(), worker.served.to_string()];
    let memory = [mib(worker.process.rss), mib(worker.process.pss)];
    let [nr, pid, state, served] = words.each_ref().map(String::as_str);
    let [rss, pss] = memory.each_ref().map(String::as_str);
    let mut requests = worker.requests.iter().map(request);
    let (age, what) = requests.next().unwrap_or_default();
    let first = row([nr, pid, state, served, rss, pss, &age, &what]);
    let rest = requests.map(|(age, what)| row(["", "", "", "", "", "", &age, &what]));
    [first].into_iter().chain(rest).collect()
}

fn request(request: &Request) -> (String, String) {
    (duration(request.age_ms), format!("{} {}", request.method, request.path))
}

fn row([nr, pid, state, served, rss, pss, age, request]: [&str; 8]) -> String {
    let line =
        format!("{nr:>6} {pid:>7}  {state:<10} {served:>9} {rss:>6} {pss:>6} {age:>9}  {request}");
    line.trim_end().into()
}

fn mib(bytes: Option<u64>) -> String {
    bytes.map_or("-".into(), |bytes| format!("{:.1}", bytes as f64 / f64::from(1 << 20)))
}

/// The two largest units: `3 d 4 h`, `1.2 s`, `7 ms`.
pub fn duration(ms: u64) -> String {
    let (seconds, minutes, hours) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..10_000 => format!("{:.1} s", (ms / 100) as f64 / 10.0),
        10_000..60_000 => format!("{seconds} s"),
        60_000..3_600_000 => format!("{minutes} min {} s", seconds % 60),
        3_600_000..86_400_000 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::Mold;

    fn process(pid: u32) -> Process {
        Process { pid: Some(pid), rss: Some(89_339_724), pss: Some(31_562_137) }
    }

    fn example() -> Status {
        let request = |thread, path: &str, age_ms| {
            let (method, path) = ("GET".into(), path.into());
            Request { thread, method, path, waited_ms: 0, age_ms }
        };
        let worker = |nr: u16, state: &str, requests| {
            let (state, process) = (state.into(), process(12344 + u32::from(nr)));
            Worker { nr, state, served: 12034, age_ms: Some(1), requests, process }
        };
        let mold =
            Mold { state: "ready".into(), ruby: Some("3.1.2".into()), process: process(126) };
        let busy = vec![request(1, "/reports/2026/november", 1234), request(2, "/b", 7)];
        let mut booting = worker(2, "booting", vec![]);
        booting.process = Process::default();
        Status {
            version: "0.1.0".into(),
            pid: 123,
            uptime_ms: 3 * 86_400_000 + 4 * 3_600_000,
            directory: "/srv/app".into(),
            addresses: vec!["http://127.0.0.1:9292".into()],
            front: Some(process(125)),
            mounts: vec![Mount {
                serving: 2,
                queue: Queue { waiting: 3, oldest_ms: Some(210) },
                generations: vec![Generation {
                    generation: 2,
                    role: "serving".into(),
                    mold,
                    workers: vec![worker(1, "busy", busy), booting],
                }],
                ..Mount::default()
            }],
            ..Status::default()
        }
    }

    #[test]
    fn each_mount_has_a_line_of_its_own() {
        let mut status = example();
        let words = ["shop", "serving", "prefork", "cruby"].map(String::from);
        let [name, state, isolation, engine] = words;
        let shop = Mount {
            name,
            path: "/shop".into(),
            declared: true,
            state,
            engine: Some(engine),
            isolation: Some(isolation),
            workers: 4,
            threads: 1,
            ..status.mounts[0].clone()
        };
        let old = Mount {
            name: "old".into(),
            hosts: vec!["old.example".into()],
            declared: true,
            state: "serving".into(),
            backends: vec!["unix:/a".into()],
            ..Mount::default()
        };
        status.mounts = vec![shop, old];
        let shown = text(&status, None);
        assert!(shown.contains("  2 mounts (serving)  http://"), "{shown}");
        assert!(shown.contains("\nfront 125 (85.2 MiB)  in /srv/app\n\nshop  at /shop  serving  "));
        assert!(shown.contains(
            "cruby prefork, 4 workers of 1 thread  queue 3 waiting, the oldest for 210 ms\n\
             generation 2 serving, mold 126"
        ));
        assert!(shown.ends_with("\n\nold  at old.example/  serving  proxy of unix:/a"), "{shown}");
    }

    #[test]
    fn it_looks_like_this() {
        let wanted = "\
oribi 0.1.0  pid 123  up 3 d 4 h  generation 2 (serving)  http://127.0.0.1:9292
queue 3 waiting, the oldest for 210 ms  front 125 (85.2 MiB)  in /srv/app

generation 2 serving, mold 126 ready, Ruby 3.1.2
worker     pid  state         served    rss    pss       age  request
     1   12345  busy           12034   85.2   30.1     1.2 s  GET /reports/2026/november
                                                        7 ms  GET /b
     2       -  booting        12034      -      -";
        assert_eq!(text(&example(), None), wanted);
        let narrow = text(&example(), Some(80));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(narrow.contains("GET /reports/2026…"), "{narrow}");
    }

    #[test]
    fn before_and_after_it_serves() {
        let fresh = Status { version: "0.1.0".into(), pid: 7, ..Status::default() };
        let shown = text(&fresh, None);
        assert!(shown.starts_with("oribi 0.1.0  pid 7  up 0 ms  no generation serves yet"));
        assert!(shown.ends_with("\nno front  in "), "{shown}");
        let stopping = Status { state: "stopping".into(), ..example() };
        assert!(text(&stopping, None).contains("generation 2 (stopping)"));
    }

    #[test]
    fn durations() {
        let shown = [0, 999, 1000, 9999, 59_999, 60_000, 3_599_999, 86_399_999, 90_000_000];
        let wanted = [
            "0 ms",
            "999 ms",
            "1.0 s",
            "9.9 s",
            "59 s",
            "1 min 0 s",
            "59 min 59 s",
            "23 h 59 min",
            "1 d 1 h",
        ];
        assert_eq!(shown.map(duration), wanted);
    }
}
