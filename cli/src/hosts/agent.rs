//! `tsumugi agent`: starts the ranks of one host, and ends them when its
//! standard input ends.

use super::order::Order;
use crate::failure::Failure;
use crate::job;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::thread;
use std::time::Duration;
use tsumugi::Rank;
use tsumugi::pvas::launch::Launch;

/// Reads its order, carries it out, and ends as the ranks do.
pub fn agent() -> Result<String, Failure> {
    let order = Order::receive(&mut io::stdin().lock())
        .map_err(|error| Failure::Failed(format!("the agent's order: {error}")))?;
    let folder = OsStr::from_bytes(&order.folder);
    std::env::set_current_dir(folder)
        .map_err(|error| Failure::Failed(format!("{}: {error}", folder.display())))?;
    let program = OsString::from_vec(order.program);
    let words = order.words.into_iter().map(OsString::from_vec);
    let mut launch = Launch::new(order.size)
        .part(order.ranks.into_iter().map(Rank))
        .program(&program, words)
        .label(order.label);
    for (name, value) in order.variables {
        launch = launch.env(OsString::from_vec(name), OsString::from_vec(value));
    }
    if std::env::var_os(CACHE_MONITOR).is_none() {
        launch = launch.env(CACHE_MONITOR, "disabled");
    }
    thread::spawn(obey);
    // The ranks die with this thread.
    job::watch(launch, &program)
}

/// Each byte is a signal for the ranks; the end of the input is their end.
fn obey() {
    let mut byte = [0];
    let mut input = io::stdin();
    while let Ok(1) = input.read(&mut byte) {
        raise(byte[0].into());
    }
    raise(libc::SIGTERM);
    thread::sleep(KILL_AFTER);
    // The second one kills.
    raise(libc::SIGINT);
    raise(libc::SIGINT);
}

/// To this very process, which passes it on to its ranks.
fn raise(signal: i32) {
    // SAFETY: a plain call; what is no signal is refused.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// libfabric's: it need not watch what a rank maps, whose regions are
/// registered by hand.
const CACHE_MONITOR: &str = "FI_MR_CACHE_MONITOR";
const KILL_AFTER: Duration = Duration::from_secs(1);
