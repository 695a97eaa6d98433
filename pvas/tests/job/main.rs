//! Jobs of real processes: one binary that is the tests, the launcher that
//! they start, and the ranks that the launcher starts.
//!
//! ```text
//!  job [FILTER]               the cases, one after the other
//!  job --launch FLAGS ROLE    a launcher; its exit code is the job's
//!  job --role ROLE            a rank
//! ```

mod cases;
mod launcher;
mod roles;

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("--launch") => launcher::run(&args[1..]),
        Some("--role") => roles::run(&args[1]),
        _ => test(&args),
    }
}

/// Runs the cases whose names contain one of the words, all if there is none.
fn test(args: &[String]) -> ExitCode {
    let words: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    if args.iter().any(|arg| arg == "--list") {
        cases::ALL.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let mut failed = Vec::new();
    for (name, case) in cases::ALL {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let start = Instant::now();
        let passed = catch_unwind(case).is_ok();
        println!(
            "test {name} ... {} ({} ms)",
            if passed { "ok" } else { "FAILED" },
            start.elapsed().as_millis()
        );
        if !passed {
            failed.push(*name);
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {}", failed.join(", "));
    ExitCode::FAILURE
}
