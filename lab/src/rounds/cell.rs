//! One contender in one round: a fresh server, its phases one after the other, its end.

use std::time::{Duration, Instant};

use oribi_load::outcome::{Failures, Outcome};
use oribi_load::plan::{Plan, Request, Shape};

use crate::figures;
use crate::figures::series;
use crate::results::{CPU_SAMPLE_MS, Cell, PhaseResult};
use crate::rounds::deploy::Deployer;
use crate::rounds::generator::Generator;
use crate::rounds::interrupt;
use crate::rounds::kill;
use crate::rounds::noise::Meter;
use crate::rounds::perprocess;
use crate::rounds::progress::Progress;
use crate::rounds::sampler::Sampler;
use crate::rounds::timewait;
use crate::scenario::{Case, Phase, PhaseLoad, shape};
use crate::stack::{Blueprint, Failed, Running};

/// What is needed to measure a cell.
pub struct Bench<'a> {
    /// The case.
    pub case: &'a Case,
    /// How the contender is started.
    pub blueprint: &'a Blueprint,
    /// Counted from 0; all contenders of a round get the same random numbers.
    pub round: usize,
    /// Whether it waits for what the cell before has left in the kernel.
    pub patient: bool,
    /// Where noise is noted.
    pub meter: &'a mut Meter,
    /// Where progress is shown.
    pub progress: &'a Progress,
}

/// How long a cell waits for the connections of the one before to be forgotten: the kernel needs
/// 60 s for them.
const DRAIN: Duration = Duration::from_secs(65);
/// How often the generator is looked after.
const LOOK: Duration = Duration::from_millis(10);

impl Bench<'_> {
    /// Measures it; the commands are those that ran.
    pub fn measure(&mut self, contender: &str) -> (Cell, Vec<String>) {
        let mut cell = Cell { contender: contender.into(), ..Cell::default() };
        let mut commands = Vec::new();
        let measured = if self.blueprint.is_reference() {
            self.blueprint.run_reference().map(|metrics| cell.metrics = metrics)
        } else {
            self.server(&mut cell, &mut commands)
        };
        if let Err(failed) = measured {
            let text = if interrupt::seen() { interrupt::INTERRUPTED.into() } else { failed.text };
            cell.error = Some(text);
            cell.log = failed.log;
        }
        (cell, commands)
    }

    fn server(&mut self, cell: &mut Cell, commands: &mut Vec<String>) -> Result<(), Failed> {
        // Connections over unix sockets leave nothing behind, and mind nothing.
        if self.patient && self.blueprint.uses_tcp() {
            self.progress.tick("waiting for old connections to be forgotten");
            timewait::drain(timewait::FEW, DRAIN);
        }
        self.meter.sample();
        self.progress.tick("starting");
        let mut running = self.blueprint.start(&first_path(self.case))?;
        commands.clone_from(&running.commands);
        cell.metrics.insert("start_ms".into(), running.start_ms);
        let done = self.load(&mut running, cell);
        let wrong = done.is_err() || cell.failures.total() > 0;
        let log = if wrong { running.log_tail() } else { Vec::new() };
        cell.complaints = running.stop();
        cell.log.clone_from(&log);
        done.map_err(|text| Failed { text, log })
    }

    fn load(&mut self, running: &mut Running, cell: &mut Cell) -> Result<(), String> {
        if self.case.await_workers {
            self.progress.tick("waiting for all workers");
            running.await_workers()?;
        }
        cell.metrics.extend(running.tree.pss_mb().map(|mb| ("pss_start_mb".into(), mb)));
        self.warm_up(running)?;
        for phase in &self.case.phase {
            let result = self.phase(phase, running, cell)?;
            note(self.case, phase, result, self.blueprint.workers(), cell);
        }
        cell.metrics.extend(running.tree.pss_mb().map(|mb| ("pss_mb".into(), mb)));
        if self.case.processes {
            self.progress.tick("counting what each process does");
            cell.processes = perprocess::table(self.case, running, self.round)?;
        }
        Ok(())
    }

    fn warm_up(&self, running: &Running) -> Result<(), String> {
        let (Some(phase), true) = (self.case.phase.first(), self.case.warmup_seconds > 0.0) else {
            return Ok(());
        };
        self.progress.tick("warming up");
        let (connections, reset) = match &phase.load {
            PhaseLoad::Closed { connections, reset, .. } => (*connections, *reset),
            _ => (self.blueprint.workers() as usize, false),
        };
        let seconds = self.case.warmup_seconds;
        let shape = Shape::Closed { connections, keep_alive: !reset, reset, seconds };
        let plan =
            Plan { beside: Vec::new(), ..plan(self.case, phase, shape, running, self.round) };
        Generator::start(&plan, &[])?.outcome().map(drop)
    }

    fn phase(
        &mut self,
        phase: &Phase,
        running: &mut Running,
        cell: &mut Cell,
    ) -> Result<PhaseResult, String> {
        self.progress.tick(&phase.name);
        let rate_of = |name: &str| cell.metrics.get(&format!("{name}.rps")).copied();
        let shape = shape(&phase.load, rate_of).ok_or_else(|| {
            format!("{}: the phase its rate is taken from gave no rate", phase.name)
        })?;
        let mut plan = plan(self.case, phase, shape, running, self.round);
        for beside in &mut plan.beside {
            if let Some(of) = beside.of.take() {
                beside.rate *= rate_of(&of)
                    .ok_or_else(|| format!("{}: {of} gave no rate to multiply", phase.name))?;
            }
        }
        self.meter.sample();
        let switches = running.tree.switches();
        let (own, mark) = (own_cpu(), self.meter.begin());
        let result = self.watch(phase, &plan, running)?;
        let server = result.cpu.last().copied().unwrap_or(0.0);
        self.meter.end(mark, server + result.outcome.generator_cpu + own_cpu() - own);
        let good: u64 = result.outcome.classes.iter().map(|class| class.ok).sum();
        if good > 0 {
            let now = running.tree.switches();
            let count = (now.0 - switches.0) + (now.1 - switches.1);
            let each = count as f64 / good as f64;
            cell.metrics.insert(format!("{}.switches", phase.name), each);
        }
        Ok(result)
    }

    /// Lets the generator run and looks after the server meanwhile.
    fn watch(
        &self,
        phase: &Phase,
        plan: &Plan,
        running: &mut Running,
    ) -> Result<PhaseResult, String> {
        let origin = running.tree.cpu();
        let mut cpu = vec![0.0];
        let mut generator = Generator::start(plan, &[])?;
        let began = Instant::now();
        let mut sampler = Sampler::new(self.case.sample_seconds, running, began);
        let killer = phase.kill.as_ref().map(|kill| kill::Killer::start(kill, running, began));
        let killer = killer.transpose()?;
        let deploy = phase.deploy.as_ref();
        let deployer = deploy.map(|deploy| Deployer::start(deploy, running, began));
        let outcome = loop {
            if let Some(outcome) = generator.poll() {
                break outcome?;
            }
            if interrupt::seen() {
                return Err(interrupt::INTERRUPTED.into());
            }
            // A reading that came late stands for those it missed: the index is the time.
            while began.elapsed() >= Duration::from_millis(cpu.len() as u64 * CPU_SAMPLE_MS) {
                cpu.push(running.tree.cpu() - origin);
                if let Some(what) = running.ended() {
                    return Err(format!("{}: {what}", phase.name));
                }
                self.progress.tick(&phase.name);
            }
            sampler.tick();
            std::thread::sleep(LOOK);
        };
        cpu.push(running.tree.cpu() - origin);
        let kills_ms = killer.map(kill::Killer::stop).unwrap_or_default();
        let deploys = deployer.map(Deployer::stop).transpose()?.unwrap_or_default();
        if let Some(what) = running.ended() {
            return Err(format!("{}: {what}", phase.name));
        }
        let name = phase.name.clone();
        let samples = sampler.finish();
        let mut result =
            PhaseResult { name, outcome, cpu, samples, kills_ms, deploys, series: Vec::new() };
        result.series = series::of_soak(&result);
        Ok(result)
    }
}

/// Adds up what a phase has found.
fn note(case: &Case, phase: &Phase, result: PhaseResult, workers: u32, cell: &mut Cell) {
    let failures = failures(&result.outcome);
    if !phase.failures_expected {
        cell.unexpected_failures += failures.total();
    }
    cell.failures.add(&failures);
    let found = figures::of_phase(case, phase, &result, workers.into(), &cell.metrics);
    cell.metrics.extend(found);
    cell.phases.push(result);
}

fn failures(outcome: &Outcome) -> Failures {
    let mut all = Failures::default();
    outcome.classes.iter().for_each(|class| all.add(&class.failures));
    all
}

/// What the generator is asked to do in a phase.
pub fn plan(case: &Case, phase: &Phase, shape: Shape, running: &Running, round: usize) -> Plan {
    Plan {
        to: running.url.clone(),
        requests: requests(case, phase),
        shape,
        beside: phase.beside.clone(),
        timeout_ms: (phase.timeout_seconds * 1e3) as u64,
        seed: round as u64 + 1,
        slice_ms: CPU_SAMPLE_MS,
    }
}

fn requests(case: &Case, phase: &Phase) -> Vec<Request> {
    let wanted =
        |request: &&Request| phase.classes.is_empty() || phase.classes.contains(&request.class);
    let some: Vec<Request> = case.request.iter().filter(wanted).cloned().collect();
    if some.is_empty() { vec![Request::default()] } else { some }
}

/// What a server is asked for until it answers.
fn first_path(case: &Case) -> String {
    let get = case.request.iter().find(|request| request.method == "GET");
    match (case.await_workers, get) {
        (true, _) => "/pid".into(),
        (false, Some(request)) => request.path.clone(),
        (false, None) => "/".into(),
    }
}

/// CPU seconds of this process.
fn own_cpu() -> f64 {
    let stat = procfs::process::Process::myself().and_then(|myself| myself.stat());
    stat.map_or(0.0, |stat| (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64)
}
