//! The generator as a process of its own: what it costs is on its own account.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use oribi_load::outcome::Outcome;
use oribi_load::plan::{Plan, Shape};

use crate::rounds::interrupt;

/// A generator under way.
pub struct Generator {
    child: Child,
    answer: Option<JoinHandle<String>>,
    complaint: Option<JoinHandle<String>>,
    /// What it wrote to standard error, once it has ended.
    pub said: String,
    until: Instant,
}

/// What a generator may take beyond its plan before it is ended.
const PATIENCE: Duration = Duration::from_secs(30);

impl Generator {
    /// Starts one; the load begins within milliseconds. `wrapper` is a command that runs another
    /// one, or nothing.
    pub fn start(plan: &Plan, wrapper: &[String]) -> Result<Self, String> {
        // This very program, even if the file was replaced meanwhile.
        let program = format!("/proc/{}/exe", std::process::id());
        let mut command = match wrapper {
            [] => Command::new(program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        };
        let mut child = command
            .arg("load")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the lab: it ends its generator itself.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("the load generator does not start: {error}"))?;
        let answer = child.stdout.take().map(reader);
        let complaint = child.stderr.take().map(reader);
        let text = serde_json::to_vec(plan).map_err(|error| error.to_string())?;
        let mut input = child.stdin.take().expect("it is a pipe");
        // One that is gone already says why on its standard error.
        let _ = input.write_all(&text);
        let until = Instant::now() + Duration::from_secs_f64(longest(plan)) + PATIENCE;
        Ok(Self { child, answer, complaint, said: String::new(), until })
    }

    /// The outcome when it is there, None while the load goes on.
    pub fn poll(&mut self) -> Option<Result<Outcome, String>> {
        match self.child.try_wait() {
            Ok(None) if Instant::now() < self.until => None,
            Ok(None) => {
                self.kill();
                Some(Err("the load generator did not come to its end".into()))
            }
            Ok(Some(_)) => Some(self.collect()),
            Err(error) => Some(Err(format!("the load generator: {error}"))),
        }
    }

    /// Waits for its end, or for an interrupt.
    pub fn outcome(&mut self) -> Result<Outcome, String> {
        loop {
            if let Some(outcome) = self.poll() {
                return outcome;
            }
            if interrupt::seen() {
                return Err(interrupt::INTERRUPTED.into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn collect(&mut self) -> Result<Outcome, String> {
        let text = |handle: &mut Option<JoinHandle<String>>| {
            handle.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
        };
        let answer = text(&mut self.answer);
        self.said = text(&mut self.complaint);
        serde_json::from_str(&answer).map_err(|error| match self.said.trim() {
            "" => format!("the load generator gave no result: {error}"),
            said => format!("the load generator: {said}"),
        })
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.kill();
    }
}

fn reader(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = from.read_to_string(&mut text);
        text
    })
}

/// Seconds after which the last request of a plan has been answered or given up.
pub fn longest(plan: &Plan) -> f64 {
    let timeout = plan.timeout_ms as f64 / 1e3;
    timeout
        + match &plan.shape {
            Shape::Closed { seconds, .. } => *seconds,
            Shape::Open { steps, .. } => steps.iter().map(|step| step.seconds).sum(),
            Shape::Burst { times, pause_ms, .. } => {
                *times as f64 * (timeout + *pause_ms as f64 / 1e3)
            }
        }
}
