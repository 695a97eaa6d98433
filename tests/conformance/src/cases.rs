//! A runner for tests that start processes and so need their own `main`.
//!
//! The cases run one after the other, because they share two cores and look at the
//! same process table. Output and arguments are those of the usual runner, as far as
//! tools look at them.

use std::fs;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Instant;

/// A test and its name.
pub type Case = (&'static str, fn());

/// Makes a list of cases from functions, with the functions' names.
#[macro_export]
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), $name as fn())),*]
    };
}

/// Runs the cases with one of the words in their names, or all if there is no word.
pub fn run(cases: &[Case], args: &[String]) -> ExitCode {
    if args.iter().any(|arg| arg == "--list") {
        cases.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let words: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let chosen = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(*word));
    let chosen: Vec<&Case> = cases.iter().filter(|(name, _)| chosen(name)).collect();
    println!("\nrunning {} tests", chosen.len());
    let mut failed = Vec::new();
    for (name, case) in &chosen {
        let start = Instant::now();
        // As libtest names its threads: `ci/limit.sh` reads the name of a case that
        // hangs. Without this file, the thread has no name.
        let _ = fs::write("/proc/thread-self/comm", name);
        let passed = catch_unwind(case).is_ok();
        let verdict = if passed { "ok" } else { "FAILED" };
        println!("test {name} ... {verdict} ({} ms)", start.elapsed().as_millis());
        if !passed {
            failed.push(*name);
        }
    }
    if !failed.is_empty() {
        println!("\nfailures:\n    {}", failed.join("\n    "));
    }
    println!(
        "\ntest result: {}. {} passed; {} failed; 0 ignored; 0 measured; {} filtered out\n",
        if failed.is_empty() { "ok" } else { "FAILED" },
        chosen.len() - failed.len(),
        failed.len(),
        cases.len() - chosen.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
