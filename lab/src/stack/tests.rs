//! Real servers, small and naughty.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::scenario::Case;
use crate::stack::tree::Tree;

/// Answers every GET; what it does at TERM and before is put in.
const SERVER: &str = r#"
require "socket"
address = ARGV.fetch(0)
server = address.start_with?("/") ? UNIXServer.new(address) : TCPServer.new(*address.split(":"))
%PRELUDE%
workers = Array.new(Integer(ARGV.fetch(1))) do
  fork do
    trap(:TERM) { exit!(0) }
    loop do
      client = server.accept
      path = client.gets.to_s.split[1]
      nil until ["\r\n", nil].include?(client.gets)
      body = path == "/env" ? ENV.to_a.map { |pair| pair.join("=") }.join("\n") : Process.pid.to_s
      status = path == "/missing" ? "404 Not Found" : "200 OK"
      client.write("HTTP/1.1 #{status}\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
      client.close
    end
  end
end
trap(:TERM) { workers.each { |pid| Process.kill(:TERM, pid) }; Process.waitall; exit!(0) }
%LAST%
sleep
"#;

/// Passes bytes on to its only backend.
const FRONT: &str = r#"
require "socket"
server = TCPServer.new(*ARGV.fetch(0).split(":"))
trap(:TERM) { exit!(0) }
loop do
  client = server.accept
  backend = File.read(File.join(__dir__, "backends")).split.sample
  upstream = UNIXSocket.new(backend)
  line = ""
  line = client.gets.to_s.tap { |it| upstream.write(it) } until line == "\r\n"
  IO.copy_stream(upstream, client)
  [client, upstream].each(&:close)
end
"#;

struct Home {
    dir: TempDir,
    library: Library,
    case: Case,
}

/// A lab with one server (and a front), made from the pieces, and a case with one contender.
fn home(prelude: &str, last: &str, stack: &str) -> Home {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    };
    write("apps/config.ru", "");
    let source = SERVER.replace("%PRELUDE%", prelude).replace("%LAST%", last);
    write(
        "servers/tiny.toml",
        &format!(
            "name = 'tiny'\ntitle = 'Tiny'\nneeds = ['ruby']\nversion = ['ruby', '--version']\n\
             command = ['ruby', '--disable-gems', '{{{{ dir }}}}/server.rb', '{{{{ address }}}}', \
             '{{{{ workers }}}}']\n[env]\nFROM_RECIPE = '{{{{ workers }}}}'\n\
             [files]\n'server.rb' = '''{source}'''"
        ),
    );
    write(
        "servers/front.toml",
        &format!(
            "name = 'front'\ntitle = 'Front'\nneeds = ['ruby']\nfront = true\nrack = false\n\
             command = ['ruby', '--disable-gems', '{{{{ dir }}}}/front.rb', '{{{{ address }}}}']\n\
             [files]\n'front.rb' = '''{FRONT}'''\n\
             backends = '{{% for its in backends %}}{{{{ its.path }}}} {{% endfor %}}'"
        ),
    );
    write(
        "scenarios/one.toml",
        &format!(
            "name = 'one'\ntitle = 'One'\napp = 'apps/config.ru'\n{stack}\n\
             [[contender]]\nname = 'tiny'\nserver = 'tiny'\n\
             [[phase]]\nname = 'load'\nkind = 'closed'\nconnections = 1\nseconds = 1"
        ),
    );
    let mut library = Library::open(dir.path()).expect("a library");
    let case = library.scenario_of("one", None).expect("a scenario").remove(0);
    Home { dir, library, case }
}

impl Home {
    fn blueprint(&self) -> Blueprint {
        Blueprint::new(&self.library, &self.case, &self.case.contender[0]).expect("a blueprint")
    }

    fn start(&self) -> Running {
        self.blueprint().start("/").unwrap_or_else(|failed| panic!("{failed:?}"))
    }
}

fn nobody(tree: &Tree) {
    assert_eq!(tree.processes(), Vec::new(), "processes are left");
}

#[test]
fn starts_measures_and_ends_workers_by_tcp() {
    let home = home("", "", "workers = 3\nenv = { FROM_STACK = 'yes' }");
    let running = home.start();
    assert!(running.url.starts_with("tcp://127.0.0.1:"), "{}", running.url);
    assert!((5.0..30_000.0).contains(&running.start_ms), "{}", running.start_ms);
    assert!(running.commands[0].starts_with("ruby --disable-gems /"), "{:?}", running.commands);
    let workers = running.await_workers().expect("three workers");
    assert_eq!(workers.len(), 3);
    assert!(workers.iter().all(|pid| running.tree.pids().contains(pid)));
    let (_, said) =
        crate::stack::http::get(&running.url, "/env", Duration::from_secs(5)).expect("said");
    for line in ["RACK_ENV=production", "RAILS_ENV=production", "FROM_STACK=yes", "FROM_RECIPE=3"] {
        assert!(said.lines().any(|its| its == line), "{line} is not in {said}");
    }
    let folder = said.lines().find_map(|line| line.strip_prefix("ORIBI_LAB_STACK="));
    let folder = Path::new(folder.expect("the mark")).to_path_buf();
    assert!(folder.is_dir());
    let tree = running.tree.clone();
    assert_eq!(running.stop(), Vec::<String>::new());
    nobody(&tree);
    assert!(!folder.exists(), "{folder:?} is left");
}

#[test]
fn a_front_stands_before_instances_on_unix_sockets() {
    let home = home("", "", "listen = 'unix'\nfront = 'front'\ninstances = 2\nworkers = 2");
    let blueprint = home.blueprint();
    assert_eq!(blueprint.workers(), 4);
    let facts = blueprint.facts();
    assert_eq!(facts.servers, ["front", "tiny"]);
    assert!(facts.versions[1].starts_with("ruby "), "{facts:?}");
    assert_eq!(facts.absent, None);
    let running = blueprint.start("/").unwrap_or_else(|failed| panic!("{failed:?}"));
    assert!(running.url.starts_with("tcp://"), "{}", running.url);
    assert_eq!(running.commands.len(), 3);
    assert!(running.commands[0].contains("front.rb"), "{:?}", running.commands);
    assert_eq!(running.await_workers().map(|its| its.len()), Ok(4));
    assert_eq!(running.tree.pids().len(), 1 + 2 * 3);
    assert_eq!(running.stop(), Vec::<String>::new());
}

#[test]
fn what_ignores_term_is_killed_and_complained_about() {
    let home = home("", "trap(:TERM) {}", "");
    let running = home.start();
    let tree = running.tree.clone();
    assert_eq!(running.stop(), ["tiny did not end within 10 s of TERM"]);
    nobody(&tree);
}

#[test]
fn what_is_left_behind_is_killed_and_complained_about() {
    // In a session of its own, as daemons are.
    let child = "fork { fork { $0 = 'left behind'; Process.setsid; trap(:TERM) {}; sleep } }
        Process.wait";
    let home = home(child, "", "");
    let running = home.start();
    let tree = running.tree.clone();
    assert_eq!(running.stop(), ["left 1 process behind, killed now: `left behind`"]);
    nobody(&tree);
}

#[test]
fn what_dies_at_its_start_says_why() {
    let home = home("abort('there is no such thing as a free lunch')", "", "");
    let failed = home.blueprint().start("/").err().expect("it cannot start");
    assert_eq!(failed.text, "tiny has ended: exit status: 1");
    assert_eq!(failed.log, ["there is no such thing as a free lunch"]);
}

#[test]
fn what_ends_by_itself_is_noticed() {
    let home = home("", "", "");
    let mut running = home.start();
    assert_eq!(running.ended(), None);
    let root = running.tree.pids()[0];
    let pid = rustix::process::Pid::from_raw(root).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    let begun = Instant::now();
    while running.ended().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(running.stop(), ["tiny has ended: signal: 9 (SIGKILL)"]);
}

#[test]
fn what_is_dropped_leaves_nobody_and_nothing() {
    let home = home("", "trap(:TERM) {}", "workers = 2");
    let running = home.start();
    let tree = running.tree.clone();
    assert_eq!(tree.pids().len(), 3);
    drop(running);
    nobody(&tree);
}

#[test]
fn bad_answers_are_no_start() {
    let home = home("", "", "");
    let failed = home.blueprint().start("/missing").err().expect("404 is no start");
    assert_eq!(failed.text, "tiny answers GET /missing with 404");
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let home = home("", "", "");
    let mut blueprint = home.blueprint();
    blueprint.server.needs = vec!["ruby".into(), "no-such-server".into()];
    blueprint.server.packages = vec!["ruby-tiny".into()];
    let expected = "tiny is not installed: apt-get install ruby-tiny (or make lab-setup)";
    assert_eq!(blueprint.absent().as_deref(), Some(expected));
    assert_eq!(blueprint.facts().absent.as_deref(), Some(expected));
    blueprint.server.needs = vec!["{{ lab }}/no-such-file".into()];
    blueprint.server.packages.clear();
    let lab = home.library.home().display().to_string();
    let expected = format!("{lab}/no-such-file is not there: make lab-setup builds it");
    assert_eq!(blueprint.absent(), Some(expected));
}

#[test]
fn an_application_with_a_gemfile_runs_under_bundler() {
    let home = home("", "", "");
    let gemfile = home.library.home().join("apps/Gemfile");
    fs::write(&gemfile, "").expect("written");
    let blueprint = home.blueprint();
    assert_eq!(blueprint.gemfile(&blueprint.server), Some(gemfile.clone()));
    let changes = surroundings::changes(&BTreeMap::new(), Some(&gemfile));
    let expected = Some(gemfile.to_string_lossy().into_owned());
    assert_eq!(changes["BUNDLE_GEMFILE"], expected);
    let mut other = blueprint.server.clone();
    other.rack = false;
    assert_eq!(blueprint.gemfile(&other), None);
    assert!(home.dir.path().is_dir());
}

#[test]
fn a_reference_runs_once_and_prints_its_figures() {
    let home = home("", "", "");
    let mut blueprint = home.blueprint();
    blueprint.server.reference = true;
    blueprint.server.command =
        ["sh", "-c", "echo noise >&2; echo '{\"per_cpu\": 12.5}'"].map(String::from).to_vec();
    let found = blueprint.run_reference().unwrap_or_else(|failed| panic!("{failed:?}"));
    assert_eq!(found, BTreeMap::from([("per_cpu".into(), 12.5)]));
    blueprint.server.command = ["sh", "-c", "echo broken >&2; exit 3"].map(String::from).to_vec();
    let failed = blueprint.run_reference().expect_err("it fails");
    assert_eq!(failed.text, "tiny has ended: exit status: 3");
    assert_eq!(failed.log, ["broken"]);
    blueprint.server.command = ["sh", "-c", "echo twelve"].map(String::from).to_vec();
    let failed = blueprint.run_reference().expect_err("no figures");
    assert!(failed.text.starts_with("tiny: must print one JSON object"), "{failed:?}");
}

#[test]
fn stacks_are_laid_over_each_other_key_by_key() {
    let below = Stack {
        workers: Some(2),
        front: Some("nginx".into()),
        env: BTreeMap::from([("A".into(), "1".into()), ("B".into(), "2".into())]),
        ..Stack::default()
    };
    let over = Stack {
        workers: Some(4),
        env: BTreeMap::from([("B".into(), "3".into())]),
        ..Stack::default()
    };
    let stack = merge(&below, &over);
    assert_eq!((stack.workers, stack.front.as_deref()), (Some(4), Some("nginx")));
    assert_eq!((stack.env["A"].as_str(), stack.env["B"].as_str()), ("1", "3"));
}

#[test]
fn commands_are_shown_as_one_would_type_them() {
    assert_eq!(quoted("--bind=tcp://[::1]:80"), "'--bind=tcp://[::1]:80'");
    assert_eq!(quoted("unix:///tmp/a"), "unix:///tmp/a");
    assert_eq!(quoted("it's"), "'it'\\''s'");
}
