//! Holds of windows over networks that keep no order: a put and the release of the hold
//! that it was made under can arrive in either order (hazard M8).

use super::run;
use crate::window::{Design, WindowOptions};
use crate::{Error, Rank, Runtime};
use std::sync::{Arc, OnceLock};
use tsumugi_core::sync::with_mutant;

/// The first seed of a network over which a value was wrong, and the number of wrong
/// values. The values are counted, because a rank that failed an assertion would leave
/// the other ranks waiting for it. The network `stalls`, or has faults of all kinds.
fn first_wrong(stalls: bool, seeds: u64) -> Option<(u64, u64)> {
    let first = Arc::new(OnceLock::new());
    let found = first.clone();
    run(&[1, 2], Some(0), move |rt, weather| {
        for seed in 0..seeds {
            if stalls {
                weather.stall(rt, seed)?;
            } else {
                weather.change(rt, seed)?;
            }
            let mut wrong = 0;
            for design in [Design::Each, Design::Tree] {
                wrong += counted(rt, design)?.abs_diff(u64::from(2 * ROUNDS));
                wrong += stale(rt, design, true)? + stale(rt, design, false)?;
            }
            // All ranks end together.
            let wrong = rt.sum(wrong)?;
            if wrong != 0 {
                let _ = found.set((seed, wrong));
                break;
            }
        }
        Ok(())
    });
    first.get().copied()
}

/// The value of a counter after both ranks have incremented it under holds of one target.
fn counted(rt: &Runtime, design: Design) -> Result<u64, Error> {
    let window = WindowOptions::new().design(design).create::<u64>(rt, WORDS)?;
    for _ in 0..ROUNDS {
        let held = window.exclusive(Rank(1))?;
        let before = window.get(Rank(1), WORDS - 1)?;
        window.put(Rank(1), 0, &[before + 1; WORDS])?;
        held.release()?;
    }
    rt.barrier()?;
    let held = window.shared(Rank(1))?;
    let count = window.get(Rank(1), 0)?;
    held.release()?;
    rt.barrier()?;
    Ok(count)
}

/// How often a rank did not find the value that another rank had put under a hold, after
/// a barrier that followed the release.
fn stale(rt: &Runtime, design: Design, all: bool) -> Result<u64, Error> {
    let window = WindowOptions::new().design(design).create::<u64>(rt, WORDS)?;
    let other = Rank(1 - rt.rank().0);
    let mut stale = 0;
    for round in 1..=u64::from(ROUNDS) {
        let held = if all { window.lock_all()? } else { window.exclusive(other)? };
        window.put(other, 0, &[round; WORDS])?;
        held.release()?;
        rt.barrier()?;
        stale += u64::from(window.get(rt.rank(), WORDS - 1)? != round);
        rt.barrier()?;
    }
    Ok(stale)
}

#[test]
fn puts_under_a_hold_have_landed_before_its_release() {
    for stalls in [false, true] {
        assert_eq!(first_wrong(stalls, SEEDS), None);
    }
}

/// The networks stall: most of these show the defect, and of the other networks one in
/// fifteen. Many seeds are tried, because the worker reads the clock, so that two runs with
/// the same seed differ.
#[test]
fn a_release_without_a_flush_is_caught() {
    for mutant in ["hold_unflushed", "hold_unflushed_of_claim", "hold_unflushed_of_all"] {
        let caught = with_mutant(mutant, || first_wrong(true, 10 * SEEDS));
        println!("{mutant}: seed and times: {caught:?}");
        assert!(caught.is_some(), "{mutant} was not caught");
    }
}

const SEEDS: u64 = 24;
const ROUNDS: u32 = 10;
const WORDS: usize = 3;
