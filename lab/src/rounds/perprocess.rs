//! Where the microseconds of a request go: for each process of the server its CPU, its wake-ups
//! and its system calls, per request of the whole server.

use std::collections::HashMap;
use std::fs;

use oribi_load::outcome::Outcome;
use oribi_load::plan::{Plan, Shape};

use crate::results::ProcessUse;
use crate::rounds::cell;
use crate::rounds::generator::Generator;
use crate::scenario::{Case, PhaseLoad};
use crate::stack::Running;
use crate::stack::tree::Process;

/// At most so many seconds for each of the two runs.
const SECONDS: f64 = 2.0;

/// Two runs of the first closed phase: one for CPU and wake-ups, one for system calls, because
/// counting those costs a little.
pub fn table(case: &Case, running: &Running, round: usize) -> Result<Vec<ProcessUse>, String> {
    let closed = case.phase.iter().find_map(|phase| match phase.load {
        PhaseLoad::Closed { connections, keep_alive, reset, seconds } => {
            let seconds = seconds.min(SECONDS);
            Some((phase, Shape::Closed { connections, keep_alive, reset, seconds }))
        }
        _ => None,
    });
    let Some((phase, shape)) = closed else { return Ok(Vec::new()) };
    let plan = cell::plan(case, phase, shape, running, round);
    let before = processes(running);
    let requests = good(&Generator::start(&plan, &[])?.outcome()?);
    if requests == 0.0 {
        return Ok(Vec::new());
    }
    let after = running.tree.processes();
    let calls = calls(&plan, &after);
    let each = after.iter().filter_map(|now| {
        let then = before.get(&now.pid)?;
        Some(ProcessUse {
            title: now.title.clone(),
            cpu_us: (now.cpu - then.cpu) * 1e6 / requests,
            wakeups: now.voluntary.saturating_sub(then.voluntary) as f64 / requests,
            preempted: now.involuntary.saturating_sub(then.involuntary) as f64 / requests,
            calls: calls.as_ref().and_then(|calls| calls.get(&now.pid).copied()),
        })
    });
    Ok(each.collect())
}

fn processes(running: &Running) -> HashMap<i32, Process> {
    running.tree.processes().into_iter().map(|process| (process.pid, process)).collect()
}

fn good(outcome: &Outcome) -> f64 {
    outcome.classes.iter().map(|class| class.ok).sum::<u64>() as f64
}

/// System calls of each process per request; None if this machine does not let us count.
fn calls(plan: &Plan, processes: &[Process]) -> Option<HashMap<i32, f64>> {
    let pids: Vec<String> = processes.iter().map(|process| process.pid.to_string()).collect();
    let perf = ["perf", "stat", "--per-thread", "--field-separator", ";"];
    let what = ["-e", "raw_syscalls:sys_enter", "-p", &pids.join(","), "--"];
    let wrapper: Vec<String> = perf.iter().chain(&what).map(|part| (*part).into()).collect();
    let mut generator = Generator::start(plan, &wrapper).ok()?;
    let requests = good(&generator.outcome().ok()?);
    let threads = threads(&generator.said);
    if threads.is_empty() || requests == 0.0 {
        return None;
    }
    let of = |pid: i32| -> f64 {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"));
        let names = tasks.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let ids = names.filter_map(|name| name.to_str()?.parse::<i32>().ok());
        ids.filter_map(|tid| threads.get(&tid)).sum::<u64>() as f64 / requests
    };
    Some(processes.iter().map(|process| (process.pid, of(process.pid))).collect())
}

/// perf's table: a line for each thread, `COMMAND-TID;COUNT;;raw_syscalls:sys_enter;…`. A thread
/// without a call is `<not counted>`.
fn threads(text: &str) -> HashMap<i32, u64> {
    let counted = |line: &str| -> Option<(i32, u64)> {
        let mut fields = line.split(';');
        let (name, count) = (fields.next()?, fields.next()?);
        let tid = name.rsplit_once('-')?.1.trim().parse().ok()?;
        line.contains("raw_syscalls").then(|| (tid, count.parse().unwrap_or(0)))
    };
    text.lines().filter_map(counted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_perf_is_read() {
        let text = "ruby-with-dash-17;1200;;raw_syscalls:sys_enter;1;100.00;;\n\
                    oribi: front 2-18;<not counted>;;raw_syscalls:sys_enter;0;0.00;;\n\
                    2.001 seconds time elapsed\n";
        assert_eq!(threads(text), HashMap::from([(17, 1200), (18, 0)]));
    }
}
