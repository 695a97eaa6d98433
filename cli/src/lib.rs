//! The command `tsumugi`: it starts ranks, describes the machine, runs a demo and
//! benchmarks.
//!
//! Results go to standard output, everything else to standard error. Exit code 2
//! means that the command line names something that does not exist, and 1 that the
//! command could not be carried out; a job ends with the exit code of its first rank
//! that failed. `demo`, `bench` and `info --space` start this executable again, as
//! their ranks.
//!
//! The command is a library so that `benches/compare` can measure and report by the
//! same code, with more systems.

mod failure;
mod text;
mod summary;
mod progress;
mod memory;
mod core_distance;
mod paper;
mod args;
mod graph;
mod job;
mod hosts;
mod space;
mod info;
mod bench;
mod demo;

use self::args::{Cli, CliCommand, CompareArgs};
use self::failure::Failure;
use clap::{CommandFactory, Parser};
use std::path::Path;
use std::process::ExitCode;
use tsumugi_bench_ult::System;

pub use self::bench::{Axis, Plot, Point, Series};

/// Runs the command.
pub fn command() -> ExitCode {
    ended(match Cli::parse().command {
        CliCommand::Bench(args) => bench::bench(&args),
        CliCommand::Demo(args) => demo::demo(&args),
        CliCommand::Info(args) => info::info(&args),
        CliCommand::Run(args) if args.hosts.is_empty() => job::run(&args),
        CliCommand::Run(args) => hosts::run(&args),
        CliCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "tsumugi", &mut script);
            Ok(String::from_utf8_lossy(&script).into_owned())
        }
        CliCommand::Man => manual(),
        CliCommand::Agent => hosts::agent(),
    })
}

/// Runs the command that measures these systems beside tsumugi.
pub fn compare(peers: &[System]) -> ExitCode {
    ended(bench::compare(&CompareArgs::parse(), peers))
}

/// Draws each figure to a file of the folder, if there is one; the error says why it cannot.
pub fn draw<'a>(
    folder: Option<&Path>,
    plots: impl Iterator<Item = (&'a str, Plot)>,
) -> Result<(), String> {
    bench::draw(folder, plots)
        .map_err(|failure| failure.message().unwrap_or("the figures cannot be drawn").to_owned())
}

/// The manual pages of the command and its commands, one after the other.
fn manual() -> Result<String, Failure> {
    let mut command = Cli::command();
    command.build();
    let mut pages = Vec::new();
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set()).cloned();
    for page in std::iter::once(command.clone()).chain(shown) {
        let page =
            clap_mangen::Man::new(page).source(concat!("tsumugi ", env!("CARGO_PKG_VERSION")));
        let rendered = page.render(&mut pages);
        rendered.map_err(|error| Failure::Failed(format!("the manual: {error}")))?;
    }
    Ok(String::from_utf8_lossy(&pages).into_owned())
}

fn ended(outcome: Result<String, Failure>) -> ExitCode {
    match outcome.and_then(|text| text::show(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                // One write, so that the line does not mix with the output of ranks.
                let line = format!("tsumugi: {message}\n");
                eprint!("{line}");
            }
            ExitCode::from(failure.exit_code())
        }
    }
}
