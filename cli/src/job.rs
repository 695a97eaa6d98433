//! Starting jobs: with a given program as the ranks, or with this command itself.
//!
//! ```text
//!  tsumugi demo         tsumugi run -n 4 tsumugi demo
//!   │ checks the words    │
//!   ├─► tsumugi demo      ├─► tsumugi demo      rank 0: measures, reports
//!   ├─► tsumugi demo      ├─► tsumugi demo      the others: their memory
//!   └─► ...               └─► ...
//! ```
//!
//! A process that finds a launcher's variables is a rank, whichever launcher started
//! it.

use crate::args;
use crate::failure::Failure;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;
use tsumugi::pvas::LaunchError;
use tsumugi::pvas::launch::{Guardian, Launch, Superior};
use tsumugi::{Config, config};

/// Whether this process was started as a rank of a job.
pub fn is_rank() -> bool {
    tsumugi::is_rank()
}

/// `tsumugi run`: starts a program as the ranks of a job and waits for them.
pub fn run(args: &args::RunArgs) -> Result<String, Failure> {
    // Each rank would report a value that is not valid.
    Config::from_env()?;
    let (program, rest) = args.program.split_first().expect("the grammar requires a program");
    let mut launch = Launch::new(args.ranks).program(program, rest).label(args.label);
    for (name, value) in variables(args) {
        launch = launch.env(name, value);
    }
    if let Some(limit) = args.timeout {
        launch = launch.timeout(limit);
    }
    watch(launch, program)
}

/// The variables that options of `tsumugi run` set.
pub fn variables(args: &args::RunArgs) -> Vec<(String, OsString)> {
    let workers = args.workers.map(|workers| (config::WORKERS, workers.to_string()));
    let bind = args.bind.clone().map(|bind| (config::BIND, bind));
    let options = workers.into_iter().chain(bind);
    let options = options.map(|(name, value)| (name.to_owned(), value.into()));
    args.env.iter().cloned().chain(options).collect()
}

/// A guardian, which ends the processes and removes the folder of a benchmark when
/// this process dies.
pub fn guardian(name: &str) -> Result<Guardian, Failure> {
    Guardian::start(Some(name)).map_err(|error| {
        let folder = std::env::temp_dir();
        Failure::Failed(format!("{error}; its folder is in {} (TMPDIR)", folder.display()))
    })
}

/// Starts this command, as it was called, as `ranks` ranks and waits for them.
pub fn run_self(ranks: u32) -> Result<String, Failure> {
    // Each rank would report a value that is not valid.
    Config::from_env()?;
    let own = Launch::of_this_program(ranks);
    watch(own.map_err(|error| Failure::Failed(error.to_string()))?, OsStr::new("tsumugi"))
}

/// The configuration of a rank of one of our commands.
pub fn config(workers: Option<u32>) -> Result<Config, Failure> {
    let config = Config::from_env()?;
    Ok(match workers {
        Some(workers) => config.workers(workers as usize),
        None => config,
    })
}

/// Makes the system send `signal` to the process of `command` when this thread, or
/// its process, ends.
pub fn end_with_us(command: &mut Command, signal: i32) {
    let us = std::process::id();
    let ask = move || {
        // SAFETY: both system calls take numbers and access no memory of this
        // process.
        let (set, parent) =
            unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, signal), libc::getppid()) };
        match set {
            0 if parent.cast_unsigned() == us => Ok(()),
            // The parent had died before the call.
            0 => Err(std::io::Error::from_raw_os_error(libc::ESRCH)),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure runs only system calls between fork and exec.
    unsafe { command.pre_exec(ask) };
}

/// Starts `program` as `launch` describes, and waits for its ranks.
pub fn watch(launch: Launch, program: &OsStr) -> Result<String, Failure> {
    watch_under(launch, program, None)
}

/// Like [`watch`], for a part of a job that `superior` has started.
pub fn watch_under(
    launch: Launch,
    program: &OsStr,
    superior: Option<Superior>,
) -> Result<String, Failure> {
    let refused = |error| refusal(error, program);
    let job = launch.forward_signals(true).start().map_err(refused)?;
    let job = match superior {
        Some(superior) => job.under(superior),
        None => job,
    };
    match job.wait().map_err(refused)?.exit_code() {
        0 => Ok(String::new()),
        code => Err(Failure::Said(code)),
    }
}

fn refusal(error: LaunchError, program: &OsStr) -> Failure {
    let errno = match error {
        LaunchError::Spawn { errno, .. } => errno,
        LaunchError::NoProgram => return Failure::Usage("the program's name is empty".to_owned()),
        error => return Failure::Failed(error.to_string()),
    };
    let what = |what: &str| format!("{}: {what}", program.display());
    match errno {
        libc::ENOENT => Failure::Program(127, what("no such program")),
        libc::EACCES => Failure::Program(126, what("may not be executed")),
        libc::ENOEXEC => Failure::Program(126, what("is not an executable program")),
        _ => Failure::Failed(error.to_string()),
    }
}
