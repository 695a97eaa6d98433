//! `tsumugi agent`: starts the ranks of one host, and ends them when its standard
//! input ends.

use super::order::{AgentOrder, DEATH};
use super::report::Reporter;
use crate::failure::Failure;
use crate::job;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tsumugi::Rank;
use tsumugi::pvas::SpaceConfig;
use tsumugi::pvas::launch::{Launch, Superior};

/// Reads the order, carries it out, and ends as the ranks do.
pub fn agent() -> Result<String, Failure> {
    let order = AgentOrder::receive(&mut io::stdin().lock())
        .map_err(|error| Failure::Failed(format!("the agent cannot read its order: {error}")))?;
    let folder = OsStr::from_bytes(&order.folder);
    std::env::set_current_dir(folder).map_err(|error| {
        Failure::Failed(format!("{}: cannot be entered: {error}", folder.display()))
    })?;
    let (ends, ended) = mpsc::channel();
    let reporter = Reporter::start(&order, ended);
    // The environment of the ranks, which differs from this process's.
    let config = SpaceConfig::from_lookup(|name| order.variable(name))
        .map_err(|error| Failure::Failed(error.to_string()))?;
    let program = OsString::from_vec(order.program);
    let words = order.words.into_iter().map(OsString::from_vec);
    let mut launch = Launch::new(order.size)
        .part(order.ranks.into_iter().map(Rank))
        .program(&program, words)
        .config(config)
        .label(order.label);
    for (name, value) in order.variables {
        launch = launch.env(OsString::from_vec(name), OsString::from_vec(value));
    }
    if std::env::var_os(CACHE_MONITOR).is_none() {
        launch = launch.env(CACHE_MONITOR, "disabled");
    }
    let pipe = |error| Failure::Failed(format!("the agent cannot make a pipe: {error}"));
    let (deaths, told) = io::pipe().map_err(pipe)?;
    let alone = reporter.alone();
    thread::spawn(move || {
        obey(told);
        alone.set();
        end();
    });
    // This fails only after the reporter has ended.
    let report = move |end| _ = ends.send(end);
    // The ranks die with this thread.
    let result =
        job::watch_under(launch, &program, Some(Superior { ends: Box::new(report), deaths }));
    reporter.finish();
    result
}

/// Carries out the launcher's instructions until standard input ends.
fn obey(mut told: PipeWriter) {
    let (mut byte, mut input) = ([0], io::stdin().lock());
    while let Ok(1) = input.read(&mut byte) {
        if byte[0] != DEATH {
            raise(byte[0].into());
            continue;
        }
        let mut dead = [0; size_of::<u32>()];
        if input.read_exact(&mut dead).is_ok() {
            // If this fails, the reading end is closed, because no rank is left.
            let _ = told.write_all(&dead);
        }
    }
}

/// Ends the ranks.
fn end() {
    raise(libc::SIGTERM);
    thread::sleep(KILL_AFTER);
    // The second signal that is seen kills the ranks. A signal that comes
    // while an earlier one is pending is not counted, so this loop repeats it.
    loop {
        raise(libc::SIGINT);
        thread::sleep(LOOK_AGAIN);
    }
}

/// Sends a signal to this process, which passes it on to its ranks.
fn raise(signal: i32) {
    // SAFETY: the call takes numbers and accesses no memory of this process; the
    // kernel refuses an invalid signal.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// A variable of libfabric: its cache monitor need not watch a rank's mappings,
/// because the rank registers its regions explicitly.
const CACHE_MONITOR: &str = "FI_MR_CACHE_MONITOR";
const KILL_AFTER: Duration = Duration::from_millis(700);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
