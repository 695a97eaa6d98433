//! Counts the requests that the home of pages serves while other ranks look for the pages
//! and move them, and checks that both work while the home is stopped, if a device has
//! the directory.
//!
//! ```text
//!  rank 0, a node of its own    gets the pages, and owns them
//!  rank 1                       has the pages
//!  rank 2                       is home to them
//! ```
//!
//! Rank 2 is not the first rank of its node, and only the first one sends heartbeats for
//! the node: rank 2 may be stopped for any time without being taken for dead.

use crate::roles::say;
use std::ops::Range;
use std::thread;
use std::time::Duration;
use tsumugi::array::{ArrayOptions, Directory};
use tsumugi::{Agent, Error, GlobalArray, Rank, Runtime};

/// Runs the test with the directory of the processors, and with that of a device if there
/// is one.
pub fn play(rt: &Runtime) -> Result<(), Error> {
    assert!(rt.size() > HOME.0, "three ranks are needed: a requester, an owner and a home");
    for directory in [Directory::Atomics, Directory::Device] {
        let array = make(rt, directory)?;
        count(rt, &array)?;
        if array.agent() == Agent::Device {
            stand_still(rt, &array)?;
        }
    }
    Ok(())
}

/// Makes an array with pages of one element, and a location cache of one page.
fn make(rt: &Runtime, directory: Directory) -> Result<GlobalArray<u64>, Error> {
    let options = ArrayOptions::new().page_len(1).known(1).directory(directory);
    let array = options.create::<u64>(rt, rt.size() as usize * PAGES)?;
    assert_eq!(array.home(PART.start)?, HOME);
    if rt.rank() == OWNER {
        array.own(PART)?;
        array.put_slice(PART.start, &PART.map(|index| index as u64).collect::<Vec<_>>())?;
    }
    rt.barrier()?;
    Ok(array)
}

/// Counts the requests that the home serves. The count has those of barriers, too, and
/// those that any rank serves after pages have moved: whether it reads.
fn count(rt: &Runtime, array: &GlobalArray<u64>) -> Result<(), Error> {
    let gets = served(rt, || if rt.rank() == ASKS { read(array) } else { Ok(()) })?;
    let mut owns = 0;
    for rank in [ASKS, OWNER] {
        owns += served(rt, || {
            if rt.rank() == rank {
                assert_eq!(array.own(PART)?, PAGES, "each page was elsewhere");
            }
            Ok(())
        })?;
    }
    let agent = array.agent();
    if rt.rank() == ASKS {
        let (got, owned) = (PAGES, 2 * PAGES);
        say(&format!("{got} gets, {owned} owns by {agent:?}: the home served {gets}, {owns}"));
    }
    let pages = PAGES as u64;
    match agent {
        Agent::Device => {
            assert!(gets < pages / 2 && owns < pages / 2, "{gets} and {owns} at the home");
        }
        // An own takes several requests to the home for each page; a get takes one read.
        Agent::Cpu if rt.network_counts().is_some() => assert!(owns > pages, "{owns} at the home"),
        Agent::Cpu => {}
    }
    rt.barrier()
}

/// All threads of the home are stopped. Its pages are found and move all the same. The
/// call of `own` ends after the home runs again and has said that it does not read.
fn stand_still(rt: &Runtime, array: &GlobalArray<u64>) -> Result<(), Error> {
    let home = rt.allgather(u64::from(std::process::id()))?[HOME.0 as usize];
    rt.barrier()?;
    if rt.rank() == ASKS {
        // The requester stops the home after its own barrier has ended. Other ranks may
        // still need the home to leave the barrier, and wait for it then.
        // SAFETY: `kill` accesses no memory; the process is a rank of this job.
        unsafe { libc::kill(home as libc::pid_t, libc::SIGSTOP) };
        while !is_stopped(home) {
            thread::sleep(Duration::from_millis(1));
        }
        read(array)?;
        let wanted = PART.start..PART.start + 8;
        let owns = {
            let (array, wanted) = (array.clone(), wanted.clone());
            rt.spawn(move |_| array.own(wanted))
        };
        for index in wanted.clone() {
            while array.owner(index)? != ASKS {}
            array.put(index, 7)?;
        }
        assert!(is_stopped(home), "the home ran meanwhile");
        // SAFETY: as above.
        unsafe { libc::kill(home as libc::pid_t, libc::SIGCONT) };
        assert_eq!(owns.join().expect("no panic")?, wanted.len());
        say(&format!("{} gets and {} owns while the home stood still", PAGES, wanted.len()));
    }
    rt.barrier()?;
    assert_eq!(array.get(PART.start)?, 7);
    rt.barrier()
}

fn read(array: &GlobalArray<u64>) -> Result<(), Error> {
    for index in PART {
        assert_eq!(array.get(index)?, index as u64);
    }
    Ok(())
}

/// Runs `work`; returns the number of emulated operations that the home has served
/// meanwhile. Collective.
fn served(rt: &Runtime, work: impl FnOnce() -> Result<(), Error>) -> Result<u64, Error> {
    let counted = || rt.network_counts().unwrap_or_default().served;
    rt.barrier()?;
    let before = counted();
    // All ranks have read their counters before any rank begins.
    rt.barrier()?;
    work()?;
    rt.barrier()?;
    Ok(rt.allgather(counted() - before)?[HOME.0 as usize])
}

/// Whether the process is stopped, as `/proc` says.
fn is_stopped(process: u64) -> bool {
    let said = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    // The state follows the name, which is in brackets.
    said.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
}

const ASKS: Rank = Rank(0);
const OWNER: Rank = Rank(1);
const HOME: Rank = Rank(2);
const PAGES: usize = 64;
/// The elements that rank 2 is home to.
const PART: Range<usize> = 2 * PAGES..3 * PAGES;
