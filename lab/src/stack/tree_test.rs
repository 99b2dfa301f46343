//! Small processes that work, fork and hide.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// A Ruby program that leads a process group, its tree, and its first line.
struct Program {
    child: Child,
    tree: Tree,
    output: BufReader<std::process::ChildStdout>,
}

impl Program {
    fn run(source: &str) -> Self {
        let _ = rustix::process::set_child_subreaper(Some(getpid()));
        let mark = format!("tree-test-{}-{:?}", std::process::id(), std::thread::current().id());
        let mut child = Command::new("ruby")
            .args(["--disable-gems", "-e", &format!("$stdout.sync = true\n{source}")])
            .env(MARK, &mark)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Ruby");
        let tree = Tree::new(&mark);
        tree.add(child.id() as i32);
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, tree, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    fn number(&mut self) -> i32 {
        self.line().parse().expect("a number")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        while self.tree.kill() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.wait();
        self.tree.refresh();
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

const BURN: &str = "def burn(seconds)
  clock = Process::CLOCK_PROCESS_CPUTIME_ID
  till = Process.clock_gettime(clock) + seconds
  nil while Process.clock_gettime(clock) < till
end
";

#[test]
fn children_count_once_whether_they_live_or_were_waited_for() {
    let mut program = Program::run(&format!(
        "{BURN}
        child = fork {{ burn(0.4); puts 1; sleep }}
        IO.select([$stdin])
        Process.kill(:KILL, child); Process.wait(child); puts 2; sleep"
    ));
    assert_eq!(program.line(), "1");
    let living = program.tree.cpu();
    assert!((0.38..0.9).contains(&living), "{living}");
    assert_eq!(program.tree.pids().len(), 2);
    use std::io::Write;
    program.child.stdin.as_mut().expect("its input").write_all(b"x").expect("written");
    assert_eq!(program.line(), "2");
    let ended = program.tree.cpu();
    assert_eq!(program.tree.pids().len(), 1);
    assert!(ended >= living && ended < living + 0.3, "{living} then {ended}");
}

#[test]
fn children_that_nobody_waits_for_are_not_forgotten() {
    let mut program = Program::run(&format!(
        "{BURN}
        trap(:CHLD, 'SYSTEM_DEFAULT')
        puts fork {{ fork {{ burn(0.3); puts Process.pid; sleep }}; exit!(0) }}
        sleep"
    ));
    let between = program.number();
    let orphan = program.number();
    assert!(program.tree.pids().contains(&orphan), "{between} left {orphan}");
    let before = program.tree.cpu();
    assert!(before >= 0.28, "{before}");
    let pid = Pid::from_raw(orphan).expect("a pid");
    rustix::process::kill_process(pid, Signal::KILL).expect("killed");
    until("the orphan ends", || !program.tree.pids().contains(&orphan));
    let after = program.tree.cpu();
    assert!(after >= before && after < before + 0.2, "{before} then {after}");
    // It was ours to wait for: nothing of it is left.
    until("the zombie is gone", || {
        program.tree.refresh();
        stat(orphan).is_none()
    });
}

#[test]
fn a_daemon_that_left_its_session_unseen_is_found_and_killed() {
    let mut program = Program::run(
        "fork { Process.setsid; fork { puts Process.pid; sleep }; exit!(0) }
        Process.wait; puts 'gone'; sleep",
    );
    let lines = [program.line(), program.line()];
    let daemon = lines.iter().find_map(|line| line.parse::<i32>().ok()).expect("its pid");
    assert!(program.tree.pids().contains(&daemon), "{lines:?}");
    let stranger = Command::new("sleep").arg("30").process_group(0).spawn();
    let mut stranger = stranger.expect("a stranger");
    assert!(!program.tree.pids().contains(&(stranger.id() as i32)));
    drop(program);
    until("the daemon ends", || stat(daemon).is_none_or(|its| its.state == 'Z'));
    assert!(matches!(stranger.try_wait(), Ok(None)), "a stranger was killed");
    stranger.kill().expect("killed");
    stranger.wait().expect("waited for");
}

#[test]
fn says_memory_files_switches_and_titles() {
    let mut program = Program::run(
        "$0 = 'a title of its own'
        kept = Array.new(20) { File.open('/dev/null') }
        Thread.new { loop { sleep 0.001 } }
        puts kept.size; sleep",
    );
    assert_eq!(program.line(), "20");
    let megabytes = program.tree.pss_mb().expect("its own process");
    assert!((1.0..200.0).contains(&megabytes), "{megabytes}");
    assert!(program.tree.fds() >= 23, "{}", program.tree.fds());
    let processes = program.tree.processes();
    assert_eq!(processes.len(), 1);
    assert_eq!(processes[0].title, "a title of its own");
    let (first, _) = program.tree.switches();
    until("it sleeps and wakes", || program.tree.switches().0 > first + 20);
    assert!(program.tree.processes()[0].voluntary > processes[0].voluntary);
}

#[test]
fn thirty_processes_are_read_fast() {
    let mut program = Program::run("30.times { fork { sleep } }; puts Process.pid; sleep");
    program.number();
    until("all are there", || program.tree.pids().len() == 31);
    let mut times: Vec<Duration> = (0..50)
        .map(|_| {
            let begun = Instant::now();
            program.tree.cpu();
            begun.elapsed()
        })
        .collect();
    times.sort();
    // Unoptimised, and beside other tests: a release build takes a tenth of this.
    assert!(times[5] < Duration::from_millis(25), "{times:?}");
    println!("{:?}", times[5]);
}
