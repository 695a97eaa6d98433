//! Starting jobs: a program as their ranks, or this very command.
//!
//! ```text
//!  tsumugi demo         tsumugi run -n 4 tsumugi demo
//!   │ checks the words    │
//!   ├─► tsumugi demo      ├─► tsumugi demo      rank 0: measures, reports
//!   ├─► tsumugi demo      ├─► tsumugi demo      the others: their memory
//!   └─► ...               └─► ...
//! ```
//!
//! A process that finds a launcher's variables is a rank, whoever launched it.

use crate::args;
use crate::failure::Failure;
use std::ffi::OsStr;
use tsumugi::Config;
use tsumugi::pvas::LaunchError;
use tsumugi::pvas::launch::Launch;

/// Whether this process was started as a rank of a job.
pub fn is_rank() -> bool {
    tsumugi::is_rank()
}

/// `tsumugi run`: starts a program as the ranks of a job and waits for them.
pub fn run(args: &args::Run) -> Result<String, Failure> {
    let (program, rest) = args.program.split_first().expect("the grammar demands a program");
    let mut launch = Launch::new(args.ranks).program(program, rest).label(args.label);
    if let Some(workers) = args.workers {
        launch = launch.env("TSUMUGI_WORKERS", workers.to_string());
    }
    watch(launch, program)
}

/// Starts this command, as it was called, as `ranks` ranks and waits for them.
pub fn run_self(ranks: u32) -> Result<String, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::Failed(format!("this command cannot find itself: {error}")))?;
    watch(Launch::new(ranks).program(&own, std::env::args_os().skip(1)), own.as_os_str())
}

/// How a rank of a command of ours is set up.
pub fn config(workers: Option<u32>) -> Result<Config, Failure> {
    let config = Config::from_env()?;
    Ok(match workers {
        Some(workers) => config.workers(workers as usize),
        None => config,
    })
}

pub fn watch(launch: Launch, program: &OsStr) -> Result<String, Failure> {
    let refused = |error| refusal(error, program);
    let job = launch.forward_signals(true).start().map_err(refused)?;
    match job.wait().map_err(refused)?.code() {
        0 => Ok(String::new()),
        // What exit codes can hold, and never success.
        code => Err(Failure::Said(u8::try_from(code).unwrap_or(1))),
    }
}

fn refusal(error: LaunchError, program: &OsStr) -> Failure {
    let LaunchError::Spawn { errno, .. } = error else {
        return Failure::Failed(error.to_string());
    };
    let what = |what: &str| format!("{}: {what}", program.display());
    match errno {
        libc::ENOENT => Failure::Program(127, what("no such program")),
        libc::EACCES => Failure::Program(126, what("may not be executed")),
        libc::ENOEXEC => Failure::Program(126, what("is not a program")),
        _ => Failure::Failed(error.to_string()),
    }
}
