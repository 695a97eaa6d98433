//! Locks, explored exhaustively and run on a network that does its worst.
//!
//! Every interleaving of small programs of the machines themselves: who is
//! inside with whom, who overtakes whom, and whether all come to their end. A
//! machine with one rule broken must fail, and tells how: run with
//! `--nocapture` to read the shortest trace of each mutant. `TSUMUGI_LARGE=1`
//! explores larger programs: minutes in a release build.

mod accesses;
mod claims;
mod costs;
mod group;
mod nested;
mod random;
mod threads;
#[path = "../../../core/tests/explore/search.rs"]
#[allow(dead_code)]
mod search;
