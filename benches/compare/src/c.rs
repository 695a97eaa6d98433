//! Programs in C, with this project's libraries and with those whose interfaces the
//! libraries have; and accesses through C beside those through Rust:
//! `compare c [--quick] [--only NAME] ...`.

mod accesses;
mod copies;
mod threads;

use std::process::ExitCode;

/// Measures all rows, or those that are named.
pub fn compare(args: impl Iterator<Item = String>) -> ExitCode {
    let (mut quick, mut only) = (false, Vec::new());
    let mut args = args;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => quick = true,
            "--only" => only.extend(args.next()),
            other => {
                eprintln!("compare c: {other} is no option");
                return ExitCode::FAILURE;
            }
        }
    }
    let wants = |row: &str| only.is_empty() || only.iter().any(|name| name == row);
    let rounds = if quick { 5 } else { 15 };
    let compared = threads::compare(rounds, &wants)
        .and_then(|()| copies::compare(rounds, &wants))
        // Short runs, of which single ones vary more.
        .and_then(|()| accesses::compare(5 * rounds, &wants));
    match compared {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("compare c: {why}");
            ExitCode::FAILURE
        }
    }
}
