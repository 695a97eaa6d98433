//! Locks, explored exhaustively and run on a network with all faults.
//!
//! Every interleaving of small programs of the machines themselves: which ranks are inside
//! together, which overtake others, and whether all end. A machine with one rule broken must
//! fail, and reports its trace: run with `--nocapture` to read the shortest trace of each mutant.
//! `TSUMUGI_TEST_LARGE=1` explores larger programs: minutes in a release build.

mod accesses;
mod claims;
mod costs;
mod group;
mod holds;
mod nested;
mod passed;
mod random;
mod threads;
#[path = "../../../core/tests/explore/search.rs"]
#[allow(dead_code)]
mod search;

use search::{Model, explore};
use std::env;
use std::fmt::Debug;

/// Explores a machine that runs each of these programs, and each of the large programs if
/// `TSUMUGI_TEST_LARGE` is set.
fn explore_each<P: Copy + Debug, M: Model>(
    programs: &[P],
    large: &[P],
    machine: impl Fn(P) -> M,
    states_max: usize,
) {
    let large = if env::var_os("TSUMUGI_TEST_LARGE").is_some() { large } else { &[] };
    for &program in programs.iter().chain(large) {
        match explore(&machine(program), states_max) {
            Ok(states) => println!("{program:?}: {states} states"),
            Err(failure) => panic!("{program:?}: {failure:?}"),
        }
    }
}
