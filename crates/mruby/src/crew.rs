//! A worker process after its fork: its gate, its threads, its signals, its end.

use crate::app::App;
use crate::channel::Channel;
use crate::exception::Exception;
use crate::log;
use crate::mold::{Inherited, line};
use crate::worker::{Level, Worker};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::json;
use std::io::{PipeReader, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Arc, mpsc};
use std::thread;
use wire::control::FromMold;
use worker::{Crew, Seat};

/// Stack of a worker thread; mruby's own limit of nested calls is reached within.
const STACK: usize = 8 << 20;

/// Is worker `nr` on the seats from `first` on; its exit code.
pub(crate) fn become_worker(
    inherited: &Inherited,
    channel: &Channel,
    app: Option<App>,
    nr: u16,
    first: u16,
    mut gate: PipeReader,
) -> i32 {
    if gate.read(&mut [0]).unwrap_or(0) == 0 {
        return 0;
    }
    drop(gate);
    inherited.title(&format!("worker {nr}"));
    log::record_as("role", json!("worker"));
    log::record_as("worker", json!(nr));
    match serve(inherited, channel, app, nr, first) {
        Ok(()) => 0,
        Err(error) => {
            let _ = channel.say(&FromMold::Unfit { nr, reason: line(&error) }, None);
            log::exception(&format!("worker {nr}: "), json!({}), &error);
            1
        }
    }
}

fn failed(what: impl std::fmt::Display) -> Exception {
    Exception::new("RuntimeError", what.to_string())
}

fn serve(
    inherited: &Inherited,
    channel: &Channel,
    app: Option<App>,
    nr: u16,
    first: u16,
) -> Result<(), Exception> {
    let seats = first..first + inherited.threads();
    watch(inherited, seats.clone())?;
    let limit = inherited.segment.board().seats[usize::from(first)].limit.load(Relaxed);
    let level = match inherited.level {
        Level::Prefork(_) => Level::Prefork(limit),
        Level::Fresh => Level::Fresh,
    };
    let (ready, boots) = mpsc::channel();
    thread::scope(|scope| {
        for index in seats.clone().skip(1) {
            let ready = ready.clone();
            let thread = thread::Builder::new().name(format!("seat {index}")).stack_size(STACK);
            let run = move || {
                let booted = Worker::prepare(&inherited.plan, inherited.level)
                    .and_then(|app| Worker::new(app, level));
                let told = booted.as_ref().map(|_| ()).map_err(line);
                let _ = ready.send(told);
                booted.map(|mut worker| work(inherited, &mut worker, index, nr))
            };
            thread.spawn_scoped(scope, move || run().is_ok()).map_err(failed)?;
        }
        let app = app.ok_or_else(|| failed("the app is gone"))?;
        let mut worker = Worker::new(app, level)?;
        for told in boots.iter().take(seats.len() - 1) {
            told.map_err(failed)?;
        }
        limit_process(inherited, worker.has_frozen())?;
        if !inherited.told_to_leave.load(Relaxed) {
            channel.say(&FromMold::Up { nr }, None).map_err(failed)?;
        }
        work(inherited, &mut worker, first, nr);
        Ok(())
    })
}

/// What the mount's processes may use, beside memory, which is the interpreters'. A file that becomes
/// too long is an error for the app; an interpreter is such a file, so that who opens one for each
/// request is not limited.
fn limit_process(inherited: &Inherited, keeps_interpreter: bool) -> Result<(), Exception> {
    let seconds = inherited.init["confinement"]["rlimits"]["cpu"].as_u64().unwrap_or(0);
    let bytes = if keeps_interpreter { inherited.number("limit_file_size") } else { 0 };
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).map_err(failed)?;
    for (resource, limit) in [(Resource::Cpu, seconds), (Resource::Fsize, bytes)] {
        if limit > 0 {
            // Of processor time first the signal, then the end.
            let limit = Rlimit { current: Some(limit), maximum: Some(limit + 1) };
            setrlimit(resource, limit).map_err(failed)?;
        }
    }
    Ok(())
}

/// One thread's part.
fn work(inherited: &Inherited, worker: &mut Worker, index: u16, nr: u16) {
    let generation = inherited.number("generation");
    let crew = Arc::new(Crew::new(index, 0));
    let mut seat = Seat::new(inherited.segment, inherited.fronts, crew, index, generation);
    seat.set_timeouts(inherited.timeouts());
    if let Err(error) = worker.run(seat, nr) {
        // No worker goes on with a thread less.
        log::exception(&format!("worker {nr}: "), json!({}), &error);
        std::process::exit(1);
    }
}

/// From now on the process ends with its supervisor, and TERM and QUIT make it leave.
fn watch(inherited: &Inherited, seats: std::ops::Range<u16>) -> Result<(), Exception> {
    let supervisor = fcntl_dupfd_cloexec(&inherited.supervisor, 3).map_err(failed)?;
    worker::end_with(supervisor).map_err(failed)?;
    let (mut reader, writer) = UnixStream::pair().map_err(failed)?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGQUIT] {
        let writer = writer.try_clone().map_err(failed)?;
        signal_hook::low_level::pipe::register(signal, writer).map_err(failed)?;
    }
    let board = inherited.segment.board();
    let leave = move || {
        for seat in &board.seats[usize::from(seats.start)..usize::from(seats.end)] {
            seat.retire.store(1, Release);
            seat.ring();
        }
    };
    // It may have come before there was anybody to hear it.
    if inherited.told_to_leave.load(Relaxed) {
        leave();
    }
    let listen = move || {
        while reader.read(&mut [0]).is_ok_and(|count| count > 0) {
            leave();
        }
    };
    let thread = thread::Builder::new().name("signals".into()).stack_size(64 * 1024);
    thread.spawn(listen).map_err(failed)?;
    Ok(())
}
