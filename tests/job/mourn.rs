//! The role of ranks on several nodes, of which one is killed. `ci/kills.sh` kills the
//! rank, and reads the lines that the others print.

use crate::roles::say;
use std::process;
use std::thread;
use std::time::Duration;
use tsumugi::{AddrError, Error, Rank, Runtime, Until};

/// Accesses the memory of all ranks, and waits for a word that does not change, until
/// either fails with the rank that has died. Then the rank returns, or exits at once, or
/// goes on for a second, as a program does that saves its state.
pub fn mourn(rt: &Runtime) -> Result<(), Error> {
    // SAFETY: the handler makes one call, and the call is async-signal-safe.
    unsafe { libc::signal(libc::SIGUSR2, leave as *const () as libc::sighandler_t) };
    let words = rt.share::<u64>(2)?;
    let (own, size) = (rt.rank(), rt.size());
    let never = words.at(own, 1);
    rt.barrier()?;
    say(&format!("{own} works as {}", process::id()));
    let seed = std::env::var("TSUMUGI_TEST_SEED").ok().and_then(|seed| seed.parse::<u32>().ok());
    let way = (seed.unwrap_or(0) + own.0) % 3;
    // An operation on a rank that has vanished may last until the job ends.
    let waits = rt.spawn(move |rt| {
        let result = heard(rt, rt.wait_until(never, Until::Equal(1)).map(drop));
        if way == 2 {
            thread::sleep(Duration::from_secs(1));
            say(&format!("{own} had a second"));
        }
        result
    });
    let mut peers = (0..size).map(Rank).cycle();
    let begins = loop {
        let peer = peers.next().expect("a cycle has no end");
        let result = rt.fetch_add(words.at(peer, 0), 1);
        if result.is_err() {
            break heard(rt, result.map(drop));
        }
    };
    if way == 0 {
        process::exit(7);
    }
    waits.join().expect("no wait panics").and(begins)
}

fn heard(rt: &Runtime, result: Result<(), AddrError>) -> Result<(), Error> {
    match result {
        Err(AddrError::PeerLost { rank }) => say(&format!("{} heard of {rank}", rt.rank())),
        other => say(&format!("{} heard {other:?}", rt.rank())),
    }
    Ok(result?)
}

extern "C" fn leave(_: libc::c_int) {
    // SAFETY: the call ends the process, which is allowed at any point.
    unsafe { libc::_exit(3) }
}
