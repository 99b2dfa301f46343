//! The binary from outside: servers of known latency, one that lies, one that dies, one that is
//! not there, and Ctrl-C.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A lab's folder of its own, so that tests see only their own servers.
struct Home(PathBuf);

impl Home {
    fn new(test: &str) -> Self {
        let home = std::env::temp_dir().join(format!("oribi-lab-{}-{test}", std::process::id()));
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/home");
        for folder in ["", "servers", "scenarios"] {
            fs::create_dir_all(home.join(folder)).expect("a folder");
            for file in fs::read_dir(from.join(folder)).expect("the fixtures").flatten() {
                if file.path().is_file() {
                    let to = home.join(folder).join(file.file_name());
                    fs::copy(file.path(), to).expect("a copy");
                }
            }
        }
        fs::create_dir(home.join("pids")).expect("a folder");
        Self(home)
    }

    fn lab(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oribi-lab"));
        command.args(arguments.split(' ')).current_dir(&self.0).env("ORIBI_LAB_HOME", &self.0);
        command
    }

    fn output(&self, arguments: &str) -> (i32, String) {
        let Output { status, stdout, stderr } = self.lab(arguments).output().expect("it starts");
        let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        (status.code().unwrap_or(-1), said)
    }

    fn run_json(&self, name: &str) -> Value {
        let file = self.0.join("lab-results").join(name).join("run.json");
        serde_json::from_slice(&fs::read(file).expect("run.json")).expect("JSON")
    }

    /// Pids of servers that were started here.
    fn started(&self) -> Vec<i32> {
        let files = fs::read_dir(self.0.join("pids")).expect("the folder").flatten();
        files.filter_map(|file| file.file_name().to_str()?.parse().ok()).collect()
    }

    fn assert_nothing_is_left(&self) {
        assert!(!self.started().is_empty(), "servers tell their pids");
        assert!(self.left().is_empty(), "servers are left: {:?}", self.left());
    }

    /// Those of them that still run.
    fn left(&self) -> Vec<i32> {
        let script = self.0.join("server.rb").to_string_lossy().into_owned();
        let runs = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&script)
        };
        self.started().into_iter().filter(runs).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for pid in self.left() {
            kill(pid, Signal::KILL);
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn kill(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).expect("a pid"), signal);
}

fn metric(cell: &Value, name: &str) -> f64 {
    cell["metrics"][name].as_f64().unwrap_or_else(|| panic!("no {name} in {cell:#}"))
}

fn cell<'a>(run: &'a Value, contender: &str) -> &'a Value {
    let cells = run["cases"][0]["rounds"][0].as_array().expect("a round");
    cells.iter().find(|cell| cell["contender"] == contender).expect("its cell")
}

fn between(value: f64, low: f64, high: f64, what: &str) {
    assert!((low..=high).contains(&value), "{what}: {value} is not between {low} and {high}");
}

/// The bounds are wide because tests run beside each other and beside anything else: a mistake of
/// the lab is a factor of two and more.
#[test]
fn known_latencies_come_out() {
    let home = Home::new("known");
    let (status, said) = home.output("run known --quick --rounds 2 --name one");
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("a-package-nobody-has"), "the package is named: {said}");
    assert!(said.contains("steady") && said.contains("no claim"), "{said}");
    assert!(said.contains("not judged, absent is absent"), "{said}");
    assert!(!said.contains("missed"), "{said}");
    home.assert_nothing_is_left();

    let run = home.run_json("one");
    assert_eq!(run["cases"][0]["rounds"].as_array().map(Vec::len), Some(2));
    for (name, ms) in [("steady", 20.0), ("slow", 40.0)] {
        let cell = cell(&run, name);
        assert_eq!(cell["error"], Value::Null);
        assert_eq!(cell["complaints"].as_array().map(Vec::len), Some(0), "{cell:#}");
        between(metric(cell, "closed.rps"), 0.5 * 4e3 / ms, 4e3 / ms * 1.05, "requests/s");
        between(metric(cell, "closed.p50_ms"), ms, 1.9 * ms, "closed p50");
        between(metric(cell, "open.p50_ms"), ms, 1.9 * ms, "open p50");
        between(metric(cell, "burst.max_ms"), ms, 8.0 * ms, "burst");
        between(metric(cell, "pss_mb"), 2.0, 100.0, "memory");
        between(metric(cell, "start_ms"), 10.0, 5000.0, "start");
        assert!(metric(cell, "closed.switches") > 0.5, "each request wakes somebody");
    }
    let facts = run["cases"][0]["contenders"].as_array().expect("contenders");
    let absent = facts.iter().find(|facts| facts["name"] == "absent").expect("it is listed");
    assert!(absent["absent"].as_str().is_some_and(|why| why.contains("a-package-nobody-has")));
    for file in ["cells.csv", "report.html"] {
        let text = fs::read_to_string(home.0.join("lab-results/one").join(file)).expect(file);
        assert!(text.contains("steady"), "{file}");
    }
    let (status, said) = home.output("compare one one");
    assert_eq!(status, 0, "{said}");
    let (status, said) = home.output("run known --name one");
    assert_eq!(status, 2, "a run is not overwritten: {said}");
}

#[test]
fn lies_and_deaths_are_no_speed() {
    let home = Home::new("troubled");
    let (status, said) = home.output("run troubled --quick --name one");
    assert_eq!(status, 1, "{said}");
    home.assert_nothing_is_left();
    let run = home.run_json("one");
    let (liar, mortal) = (cell(&run, "liar"), cell(&run, "mortal"));
    let lies = liar["failures"]["status"]["503"].as_u64().expect("its lies");
    assert!(lies > 10, "{lies}");
    assert_eq!(liar["unexpected_failures"].as_u64(), Some(lies));
    assert!(mortal["error"].is_string(), "{mortal:#}");
    let compared = run["cases"][0]["comparisons"].as_array().expect("comparisons");
    assert!(compared.is_empty(), "there is nobody sound to compare: {compared:?}");
    assert_eq!(run["cases"][0]["verdicts"][0]["measured"], Value::Null);
    assert_eq!(cell(&run, "steady")["error"], Value::Null);

    let (status, said) = home.output("run troubled --quick --servers steady,mortal --name two");
    assert_eq!(status, 0, "nobody who has a target failed: {said}");
}

#[test]
fn workers_are_killed_while_the_load_goes_on() {
    let home = Home::new("killed");
    let (status, said) = home.output("run killed --quick --name one");
    assert_eq!(status, 0, "{said}");
    home.assert_nothing_is_left();
    let run = home.run_json("one");
    let cell = cell(&run, "phoenix");
    let kills = metric(cell, "load.kills");
    between(kills, 2.0, 3.0, "kills in a second");
    // The first process, its worker and who came after; the last one may not have got far.
    between(home.started().len() as f64, 1.0 + kills, 2.0 + kills, "processes");
    assert!(metric(cell, "load.failed") >= 1.0, "{cell:#}");
    assert_eq!(cell["unexpected_failures"], 0);
}

#[test]
fn new_code_is_deployed_while_the_load_goes_on() {
    let home = Home::new("deployed");
    let (status, said) = home.output("run deployed --quick --name one");
    assert_eq!(status, 0, "{said}");
    home.assert_nothing_is_left();
    let run = home.run_json("one");
    let (learner, dunce) = (cell(&run, "learner"), cell(&run, "dunce"));
    assert_eq!(learner["error"], Value::Null, "{learner:#}");
    // The second is due when all is over.
    between(metric(learner, "load.deploys"), 1.0, 1.0, "deploys");
    between(metric(learner, "load.new_ms"), 200.0, 2000.0, "first new");
    between(metric(learner, "load.old_ms"), 50.0, metric(learner, "load.new_ms"), "last old");
    assert_eq!(metric(learner, "load.failed"), 0.0);
    let error = dunce["error"].as_str().expect("an error");
    assert!(error.contains("too difficult") && error.contains("status: 3"), "{error}");
}

#[test]
fn a_soak_samples_what_it_is_laid_over() {
    let home = Home::new("soak");
    let (status, said) = home.output("run soak --quick --seconds 12 --servers steady --name one");
    assert_eq!(status, 0, "{said}");
    let run = home.run_json("one");
    assert!(metric(cell(&run, "steady"), "load.per_cpu") > 1000.0);
    let samples = cell(&run, "steady")["phases"][0]["samples"].as_array().expect("samples").clone();
    assert!((3..=4).contains(&samples.len()), "{samples:?}");
    let last = samples.last().expect("one");
    assert_eq!(last["processes"].as_u64(), Some(1));
    assert!(last["pss_mb"].as_f64() > Some(2.0) && last["fds"].as_u64() > Some(4), "{last}");
    assert!(last["gc_count"].as_f64() > Some(0.0), "{last}");
}

#[test]
fn an_application_is_asked_before_it_is_measured() {
    let home = Home::new("app");
    let config = "app server.rb --servers steady,slow --quick --seconds 1";
    let (status, said) = home.output(&format!("{config} --path /a:3 --path /nowhere --name one"));
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("/nowhere") && said.contains("404"), "{said}");
    assert!(!home.0.join("lab-results").exists());

    let (status, said) = home.output(&format!("{config} --path /a:3 --path /b --name two"));
    assert_eq!(status, 0, "{said}");
    let run = home.run_json("two");
    // The slow one answers 16 at once in 40 ms.
    let rate = run["cases"][0]["case"]["phase"][1]["rate"].as_f64().expect("a rate");
    between(rate, 0.6 * 400.0 * 0.4, 0.6 * 400.0 * 1.05, "rate");
    let steady = cell(&run, "steady");
    for class in ["/a", "/b"] {
        between(metric(steady, &format!("open.p50_ms.{class}")), 20.0, 38.0, class);
    }
    home.assert_nothing_is_left();
}

#[test]
fn mistakes_are_told_before_anything_starts() {
    let home = Home::new("mistakes");
    for (arguments, word) in [
        ("run nothing", "nothing"),
        ("run known --servers nobody", "nobody"),
        ("run known --case none", "none"),
        ("run", "SCENARIO"),
        ("app missing.ru", "missing.ru"),
        ("compare a b", "a"),
    ] {
        let (status, said) = home.output(arguments);
        assert_eq!(status, 2, "{arguments}: {said}");
        assert!(said.contains(word), "{arguments}: {said}");
    }
    assert!(home.started().is_empty(), "something was started");
    let (status, said) = home.output("list");
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("Two servers whose latencies are known"), "{said}");
    let (status, said) = home.output("list --servers");
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("a-package-nobody-has"), "{said}");
}

/// Waits for something that happens soon.
fn soon<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interrupt_ends_the_servers_and_keeps_what_there_is() {
    let home = Home::new("interrupt");
    let mut lab: Child = home
        .lab("run known --quick --seconds 240 --rounds 3 --servers steady --name one")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    soon("a server", || home.started().first().copied());
    soon("the load", || {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", lab.id())).ok()?;
        let title = |pid: &str| fs::read_to_string(format!("/proc/{pid}/cmdline")).ok();
        children
            .split(' ')
            .any(|pid| title(pid).is_some_and(|t| t.ends_with("load\0")))
            .then_some(())
    });
    kill(lab.id() as i32, Signal::INT);
    let status = soon("its end", || lab.try_wait().expect("it can be waited for"));
    assert_eq!(status.code(), Some(130));
    home.assert_nothing_is_left();
    let run = home.run_json("one");
    assert!(run["remarks"].to_string().contains("interrupted"));
    assert_eq!(cell(&run, "steady")["error"], "interrupted");
}
