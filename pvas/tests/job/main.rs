//! Jobs of real processes: one binary has the tests, the launcher that they start, and the ranks
//! that the launcher starts.
//!
//! ```text
//!  job [FILTER]               the cases, one after the other
//!  job --launch FLAGS ROLE    a launcher; its exit code is the job's
//!  job --role ROLE            a rank
//! ```

mod cases;
mod driver;
mod launcher;
mod partitions;
mod roles;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("--launch") => launcher::run(&args[1..]),
        Some("--role") => roles::run(&args[1]),
        _ => tsumugi_conformance::cases::run(cases::ALL, &args),
    }
}
