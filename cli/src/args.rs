//! The grammar of the command line.
//!
//! This module contains only the grammar, and checks that need no more than the word
//! itself. Whether a package exists or a file is valid is checked later, by the code
//! that reads the data. (The doc comments of the fields are the help text.)

use crate::core_distance::CoreDistance;
use crate::paper::Paper;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tsumugi::KnobGroup;
use tsumugi_core::quantity;
use tsumugi_core::wait::DoorbellSet;

/// Kernel-bypass communication for programs with thousands of user-level threads.
#[derive(Debug, Parser)]
#[command(name = "tsumugi", version, arg_required_else_help = true)]
pub struct Cli {
    /// The command to carry out.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Start a program as the ranks of one job, on this node or on several hosts
    Run(RunArgs),
    /// Show the resources of this machine, and the settings and memory of a job on it
    Info(InfoArgs),
    /// Search a real graph with thousands of user-level threads, and check the answer
    Demo(DemoArgs),
    /// Measure operations, threads, messages, locks and arrays, beside bare loops
    Bench(BenchArgs),
    /// Print a script that completes the words of this command in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of this command, for `man -l -`
    Man,
    /// Start the ranks of one host; `run --hosts` starts this command on each host
    #[command(hide = true)]
    Agent,
}

/// `tsumugi run`
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Number of ranks to start
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = ranks)]
    pub ranks: u32,
    /// Number of worker threads of each rank [default: its share of the cpuset, at least 1]
    #[arg(long, value_name = "W", value_parser = workers)]
    pub workers: Option<u32>,
    /// Start the ranks on these hosts by ssh (or the command of TSUMUGI_RSH), the same
    /// number on each as far as possible; each host needs this command at the same path
    #[arg(long, value_name = "HOST,HOST", value_delimiter = ',', value_parser = host)]
    pub hosts: Vec<String>,
    /// Begin each line of output with the rank that wrote it
    #[arg(long)]
    pub label: bool,
    /// End the job after this time, with exit code 124: 30s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub timeout: Option<Duration>,
    /// Set a variable for the ranks, on all hosts; without a value, that of this command
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable)]
    pub env: Vec<(String, OsString)>,
    /// Bind each worker to a core of its own, or leave the choice to the system
    #[arg(long, value_name = "cores|none", value_parser = ["cores", "none", "auto"])]
    pub bind: Option<String>,
    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub program: Vec<OsString>,
}

/// `tsumugi info`
#[derive(Args, Debug, Default)]
pub struct InfoArgs {
    /// Number of ranks of the described job; all on this node, except for --memory
    #[arg(short = 'n', long, value_name = "N", default_value = "4", value_parser = ranks_of_nodes)]
    pub ranks: u32,
    /// Show the bytes of each table, for this job and for a thousand and a million ranks
    #[arg(long)]
    pub memory: bool,
    /// Show every environment variable, its default and its value for this job; with a
    /// group, those of this group
    #[arg(long, value_name = "GROUP", num_args = 0..=1, value_parser = knob_group)]
    pub config: Option<Option<KnobGroup>>,
    /// Also try each operation of the network and measure messages between two cores,
    /// once, now: some seconds
    #[arg(long, conflicts_with_all = ["config", "memory", "space"])]
    pub measure: bool,
    /// Print JSON: of the variables, or of the machine
    #[arg(long, conflicts_with_all = ["memory", "space"])]
    pub json: bool,
    /// Show the pages, huge pages and copies that the system gives to two ranks
    #[arg(long)]
    pub space: bool,
}

/// `tsumugi demo`
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Vertex at which the search starts: its name, or its number, counted from 1
    #[arg(long, value_name = "NAME|NUMBER")]
    pub from: Option<String>,
    /// Number of ranks to start; ignored under `tsumugi run`, which starts the ranks
    #[arg(long, value_name = "N", default_value = "4", value_parser = ranks)]
    pub ranks: u32,
    /// Number of user-level threads of each rank
    #[arg(long, value_name = "N", default_value = "2048", value_parser = ults)]
    pub ults: u32,
    /// Number of worker threads of each rank [default: its share of the cpuset, at least 1]
    #[arg(long, value_name = "W", value_parser = workers)]
    pub workers: Option<u32>,
    /// Search this graph instead of Debian 12's packages (Matrix Market, may be gzipped)
    #[arg(long, value_name = "FILE")]
    pub graph: Option<PathBuf>,
    /// Names of the vertices, one on each line (may be gzipped)
    #[arg(long, value_name = "FILE")]
    pub names: Option<PathBuf>,
    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `tsumugi bench`
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct BenchArgs {
    /// List the figures with their rows, which --only selects, and measure nothing
    #[arg(long)]
    pub list: bool,
    /// The figure to measure.
    #[command(subcommand)]
    pub figure: Option<BenchFigure>,
}

/// The figures.
#[derive(Debug, Subcommand)]
pub enum BenchFigure {
    /// One-sided operations: direct ones, and through a queue with and without a
    /// communication thread
    Rma(MeasureArgs),
    /// One-sided operations on a rank of another node (start it by `run --hosts`)
    Far(MeasureArgs),
    /// User-level threads: the costs of switching, starting, waiting and sleeping
    Ult(UltArgs),
    /// Messages: latency, rate and a halo exchange, with each design of tsumugi and
    /// with peers
    Message(MessageArgs),
    /// Locks: uncontended, by many processes on few cores, and on a simulated machine
    Lock(LockArgs),
    /// Arrays whose pages move: reads, writes and relocations, by the size of a
    /// page, beside raw reads
    Gas(MeasureArgs),
    /// Whole programs on arrays whose pages move: tasks that are stolen, a refined
    /// mesh, a graph search, random updates, a sort
    Program(MeasureArgs),
    /// The figures and tables of the papers, measured here: a report to read in a browser
    Figures(FiguresArgs),
}

/// `tsumugi bench figures`
#[derive(Args, Clone, Debug)]
pub struct FiguresArgs {
    /// Only the figures of this paper (see docs/papers.md)
    #[arg(long, value_name = "NAME", ignore_case = true)]
    pub paper: Option<Paper>,
    /// Measure for a tenth of the time, and fewer points
    #[arg(long)]
    pub quick: bool,
    /// Measure so many operations or rounds of each point, in place of a fixed time
    #[arg(long, value_name = "N", value_parser = operations)]
    pub ops: Option<u64>,
    /// The folder of the report; what it has measured already is not measured again
    #[arg(long, value_name = "FOLDER", default_value = "figures")]
    pub folder: PathBuf,
    /// Also measure this peer's messages (see `ci/peers.sh`)
    #[arg(long, value_name = "NAME=COMMAND")]
    pub peer: Vec<String>,
    /// Also measure this peer's locks (see `ci/peers.sh lock`)
    #[arg(long, value_name = "NAME=COMMAND")]
    pub lock_peer: Vec<String>,
}

/// `tsumugi bench lock`
#[derive(Args, Clone, Debug, Default)]
pub struct LockArgs {
    /// How to measure.
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// Also measure this peer, in the same run (see `ci/peers.sh`)
    #[arg(long, value_name = "NAME=COMMAND")]
    pub peer: Vec<String>,
    /// Run as one of the ranks that are measured, and write the rows to this file
    #[arg(long, hide = true, value_name = "FILE")]
    pub serve: Option<PathBuf>,
}

/// `tsumugi bench message`
#[derive(Args, Clone, Debug, Default)]
pub struct MessageArgs {
    /// How to measure.
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// Also measure this peer, in the same run (see `ci/peers.sh`)
    #[arg(long, value_name = "NAME=COMMAND")]
    pub peer: Vec<String>,
    /// Measure between two cores only while they are at this distance; wait for it
    /// with --quick, too [default: both distances]
    #[arg(long, value_name = "near|far")]
    pub state: Option<CoreDistance>,
    /// Maximum time to wait for a distance between the cores [default: 180; with
    /// --quick 0, unless --state is given]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=WAIT_MAX))]
    pub wait: Option<u64>,
    /// Run as one of the ranks that are measured
    #[arg(long, hide = true, value_name = "FOLDER")]
    pub serve: Option<PathBuf>,
}

/// The command line of `benches/compare`.
#[derive(Debug, Parser)]
#[command(name = "compare", arg_required_else_help = true)]
pub struct CompareArgs {
    /// The figure to measure.
    #[command(subcommand)]
    pub figure: Compared,
}

/// The figures that other systems have, too.
#[derive(Debug, Subcommand)]
pub enum Compared {
    /// User-level threads, of tsumugi and of all other systems on this machine
    Ult(UltArgs),
}

/// How to measure.
#[derive(Args, Clone, Debug, Default)]
pub struct MeasureArgs {
    /// Measure only this row, or this group of rows
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Measure for a tenth of the time
    #[arg(long)]
    pub quick: bool,
    /// Also write the rows to this file, as a JSON array
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Also write the rows to this file, as comma-separated values
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Also draw each figure to a file in this folder
    #[arg(long, value_name = "FOLDER")]
    pub svg: Option<PathBuf>,
    /// Measure so many operations for each row, in place of a fixed time
    #[arg(long, value_name = "N", value_parser = operations)]
    pub ops: Option<u64>,
}

/// How to measure user-level threads.
#[derive(Args, Clone, Debug, Default)]
pub struct UltArgs {
    /// Measure only this row, or this group of rows
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Measure for a tenth of the time, with a tenth of the sleeping threads
    #[arg(long)]
    pub quick: bool,
    /// Also write the rows to this file, as a JSON array
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Also write the rows to this file, as comma-separated values
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Run as one system: its name, the row, the number of workers and of CPUs
    #[arg(long, hide = true, num_args = 4)]
    pub serve: Vec<String>,
}

fn ranks(word: &str) -> Result<u32, String> {
    within(word, "ranks", RANKS_MAX.into()).map(|n| n as u32)
}

/// The number of ranks that a global address can distinguish.
fn ranks_of_nodes(word: &str) -> Result<u32, String> {
    within(word, "ranks", 1 << 21).map(|n| n as u32)
}

fn ults(word: &str) -> Result<u32, String> {
    within(word, "user-level threads per rank", ULTS_MAX.into()).map(|n| n as u32)
}

fn workers(word: &str) -> Result<u32, String> {
    within(word, "workers per rank", WORKERS_MAX.into()).map(|n| n as u32)
}

fn time(word: &str) -> Result<Duration, String> {
    match quantity::time(word) {
        Some(time) if !time.is_zero() => Ok(time),
        Some(_) => Err("the time must be longer than 0".to_owned()),
        None => Err("expected a time with a unit, such as 30s, 5m or 1h".to_owned()),
    }
}

fn variable(word: &str) -> Result<(String, OsString), String> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.into())),
        None => (word, None),
    };
    let may = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(may) {
        return Err("the name of a variable has letters, digits and _".to_owned());
    }
    let value = value.or_else(|| std::env::var_os(name));
    let value = value.ok_or_else(|| format!("{name} is not set here, and has no value"))?;
    Ok((name.to_owned(), value))
}

fn knob_group(word: &str) -> Result<KnobGroup, String> {
    let found = KnobGroup::ALL.into_iter().find(|group| group.name() == word);
    let names = || KnobGroup::ALL.map(KnobGroup::name).join(", ");
    found.ok_or_else(|| format!("expected a group: {}", names()))
}

fn operations(word: &str) -> Result<u64, String> {
    within(word, "operations", OPERATIONS_MAX)
}

/// A word that begins with a dash would be an option of ssh.
fn host(word: &str) -> Result<String, String> {
    let may = |c: char| c.is_ascii_alphanumeric() || "-._@:".contains(c);
    match word {
        "" => Err("a host name is empty".to_owned()),
        _ if word.starts_with('-') || !word.chars().all(may) => {
            Err("a host name has letters, digits and -._@: and does not begin with -".to_owned())
        }
        _ => Ok(word.to_owned()),
    }
}

fn within(word: &str, what: &str, max: u64) -> Result<u64, String> {
    let count: u64 =
        word.parse().map_err(|_| format!("expected the number of {what}, 1 to {max}"))?;
    match count {
        0 => Err(format!("the number of {what} must be at least 1")),
        n if n > max => Err(format!("the number of {what} must be at most {max}")),
        n => Ok(n),
    }
}

const RANKS_MAX: u32 = tsumugi::pvas::config::RANKS_MAX;
const ULTS_MAX: u32 = 1 << 20;
const WORKERS_MAX: u32 = DoorbellSet::WORKERS_MAX as u32;
const OPERATIONS_MAX: u64 = 1 << 40;
/// A week, in seconds.
const WAIT_MAX: u64 = 7 * 24 * 3600;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<CliCommand, clap::Error> {
        Cli::try_parse_from(line.split_whitespace()).map(|cli| cli.command)
    }

    fn refusal(line: &str) -> String {
        let error = parse(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        error.to_string()
    }

    #[test]
    fn the_grammar_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn words_after_the_program_are_arguments_of_the_program() {
        let CliCommand::Run(run) =
            parse("tsumugi run -n 4 --label prog -n 7 --label -- x").unwrap()
        else {
            panic!("not a run");
        };
        assert_eq!((run.ranks, run.label), (4, true));
        assert_eq!(run.program, ["prog", "-n", "7", "--label", "--", "x"]);
    }

    #[test]
    fn two_dashes_may_stand_before_the_program() {
        let CliCommand::Run(run) = parse("tsumugi run -n 2 --workers 3 -- prog -x").unwrap() else {
            panic!("not a run");
        };
        assert_eq!(run.workers, Some(3));
        assert_eq!(run.program, ["prog", "-x"]);
    }

    #[test]
    fn the_demo_needs_no_argument() {
        let CliCommand::Demo(demo) = parse("tsumugi demo").unwrap() else { panic!("not a demo") };
        assert_eq!((demo.ranks, demo.ults, demo.from), (4, 2048, None));
    }

    #[test]
    fn a_bad_value_is_named() {
        for (line, value, why) in [
            ("tsumugi demo --ranks 0", "'0'", "ranks must be at least 1"),
            ("tsumugi demo --ranks -3", "-3", ""),
            ("tsumugi demo --ranks four", "'four'", "expected the number of ranks"),
            ("tsumugi demo --ranks 5000", "'5000'", "at most 4096"),
            ("tsumugi demo --ults 0", "'0'", "user-level threads per rank must be at least 1"),
            ("tsumugi demo --workers 0", "'0'", "workers per rank must be at least 1"),
            ("tsumugi run -n 0 prog", "'0'", "ranks must be at least 1"),
            ("tsumugi run -n 2 --hosts a,-b prog", "'-b'", "does not begin with -"),
            ("tsumugi run -n 2 --timeout 30 prog", "'30'", "with a unit"),
            ("tsumugi run -n 2 --timeout 0s prog", "'0s'", "longer than 0"),
            ("tsumugi run -n 2 --env =x prog", "'=x'", "letters, digits"),
            ("tsumugi run -n 2 --env= prog", "''", "letters, digits"),
            ("tsumugi bench message --wait 18446744073709551615", "18446744073709551615", "604800"),
            ("tsumugi run -n 2 --env TSUMUGI_TEST_UNSET prog", "UNSET", "is not set here"),
            ("tsumugi run -n 2 --bind core prog", "'core'", "cores, none, auto"),
            ("tsumugi info --config thread", "'thread'", "ranks, threads, memory"),
            ("tsumugi bench message --state nearer", "'nearer'", "'near' or 'far'"),
            ("tsumugi bench rma --ops 0", "'0'", "operations must be at least 1"),
            ("tsumugi bench rma --ops 99999999999999999999", "'99999999999999999999'", ""),
        ] {
            let said = refusal(line);
            assert!(said.contains(value) && said.contains(why), "{line}: {said}");
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        assert!(refusal("tsumugi run -n 4").contains("<PROGRAM>"));
        assert!(refusal("tsumugi run prog").contains("--ranks"));
    }
}
