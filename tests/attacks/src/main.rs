//! Attacks on the interface: programs in safe Rust that break its rules.
//!
//! ```text
//!  attacks NAME     one attack, in this process
//!  attacks --list   their names
//! ```
//!
//! An attack prints `held` and exits with 0 if the interface held; it panics
//! with what it saw if not. Some rules end in an abort by design:
//! `tests/ends.rs` says how each attack ends, and runs them all. A rule that
//! the compiler enforces is a program of `tests/compile_fail`.

#![forbid(unsafe_code)]

mod handles;
mod keys;
mod panics;
mod suspended;
mod types;
mod ults;
mod values;

use std::process::ExitCode;

/// A name, and the program.
type Attack = (&'static str, fn());

/// All attacks, in groups of one file each.
const ALL: &[&[Attack]] =
    &[handles::ALL, keys::ALL, panics::ALL, suspended::ALL, types::ALL, ults::ALL, values::ALL];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let mut all = ALL.iter().copied().flatten();
    if name == "--list" {
        all.for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let Some((_, attack)) = all.find(|(known, _)| *known == name) else {
        eprintln!("no attack is named {name:?}: --list prints the names");
        return ExitCode::from(2);
    };
    attack();
    println!("held");
    ExitCode::SUCCESS
}
