//! Starts the ranks of a program on this node and watches over them.
//!
//! ```text
//!  Launch ──start──► Job ──wait──► Outcome
//!    │ memory files    │ pidfds: a rank has ended     the first failure:
//!    │ fork, exec      │ signals: passed on           its exit code, or
//!    ▼                 │ output: labelled             128 + its signal
//!  ranks               │ once a second: all quiet?
//! ```
//!
//! A rank that ends before it reported that it is done ends the job:
//!
//! ```text
//!  0 s     declared lost: peers' operations return PeerLost, sleepers wake
//!  0.3 s   SIGTERM to the ranks that are left
//!  1 s     SIGKILL, also to the processes that the ranks have started
//! ```
//!
//! (0.3 s is the default of `TSUMUGI_GRACE_MS`; SIGKILL comes 0.7 s later.) A rank
//! that learns of the death and ends by itself in that time gets no signal.
//!
//! A [`part`](Launch::part) of a job, of which the other ranks are started
//! elsewhere, gets no memory files: its ranks meet those of their node by
//! themselves. The launcher of a part has a [`Superior`], which sees the ends of
//! all parts: the part sends it each end, and the superior sends back the dead rank
//! that ends the job; all ranks learn of this death and have at least 1.2 s to
//! react.
//!
//! A program that never attaches may be launched too, and may exit in any way.
//! Nothing outlives a job: the memory files have no name, the ranks die with the
//! thread that started them (so this thread must live until the job is over), and
//! processes that ranks have started are found by a mark in their environment: by
//! the launcher, or, if the launcher is killed, by a [`Guardian`], a child of this
//! process while the job runs. A process without the mark is not found: a daemon
//! that clears its environment, or a process of another user.

mod child;
mod guardian;
mod label;
mod losses;
mod signals;
mod stall;
mod sweep;
mod watch;

use crate::config::{Config, ConfigError};
use crate::partition::Control;
use crate::space::{Files, SpaceError, Window};
use child::Child;
pub use guardian::Guardian;
use losses::Losses;
pub use signals::{Caught, Signals};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, PipeReader};
use std::sync::mpsc::Sender;
use std::time::Duration;
use tsumugi_core::excerpt::Excerpt;
use tsumugi_core::mem::Rank;

/// A job that is to be started, with its options.
#[derive(Clone, Debug)]
pub struct Launch {
    size: u32,
    part: Option<Vec<Rank>>,
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    label: bool,
    forward_signals: bool,
    config: Option<Config>,
}

/// The ranks of a job while they run. If this is dropped before
/// [`wait`](Self::wait), it kills them.
#[derive(Debug)]
pub struct Job {
    children: Vec<Child>,
    windows: Vec<Window>,
    signals: Option<Signals>,
    guardian: Guardian,
    /// The time that the other ranks have after a death before they get a signal.
    grace: Duration,
    /// Of a part: the ranks that its ranks declare lost.
    losses: Option<Losses>,
    superior: Option<Superior>,
    is_over: bool,
}

/// The connection of a part's launcher to the program that has started this part of
/// a job and other parts.
#[derive(Debug)]
pub struct Superior {
    /// Receives each end, also the end of a rank with exit code 0: as `Early`,
    /// because this launcher does not see whether the rank was done.
    pub ends: Sender<Told>,
    /// Yields the dead rank that ends the job: a word of 32 bits, little-endian.
    pub deaths: PipeReader,
}

/// An end, as it is reported to a superior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The end.
    pub failure: Failure,
    /// Whether another rank of this part, or of another node, had been declared
    /// lost before this end was seen; if so, this rank may have ended because of
    /// that loss.
    pub may_have_heard: bool,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The first failure, if there was one.
    pub failure: Option<Failure>,
}

/// A rank that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The rank that failed.
    pub rank: Rank,
    /// Its process.
    pub pid: u32,
    /// How it ended.
    pub end: End,
}

/// How a process ended that should not have ended so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With an exit code other than 0; a panic is 101.
    Exited {
        /// The code.
        code: i32,
    },
    /// By a signal.
    Killed {
        /// The signal.
        signal: i32,
    },
    /// With exit code 0, but before the rank reported that it is done.
    Early,
}

/// Why a job did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchError {
    /// No program was named.
    NoProgram,
    /// The environment is wrong.
    Config(ConfigError),
    /// The partitions cannot be made.
    Space(SpaceError),
    /// A rank cannot be started.
    Spawn {
        /// The rank.
        rank: Rank,
        /// The program, as far as it fits.
        program: Excerpt,
        /// The system's error number; 0 if there is none, as for an argument with a NUL byte.
        errno: i32,
    },
    /// Another job of this process catches the signals already.
    SignalsTaken,
    /// The system refused another call.
    System {
        /// The call that was refused.
        what: &'static str,
        /// Its error number; 0 if there is none.
        errno: i32,
    },
}

impl Launch {
    /// Makes a job of `size` ranks.
    pub fn new(size: u32) -> Self {
        Self {
            size,
            part: None,
            program: OsString::new(),
            args: Vec::new(),
            env: Vec::new(),
            label: false,
            forward_signals: false,
            config: None,
        }
    }

    /// Starts only these ranks of the job; they find the other ranks through the
    /// variables of their environment.
    #[must_use]
    pub fn part(mut self, ranks: impl IntoIterator<Item = Rank>) -> Self {
        self.part = Some(ranks.into_iter().collect());
        self
    }

    /// Sets the program that each rank runs.
    #[must_use]
    pub fn program<A: AsRef<OsStr>>(
        mut self,
        path: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        self.program = path.as_ref().to_owned();
        self.args = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        self
    }

    /// Adds a variable to the environment of each rank.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets whether each line of output starts with `[rank] `. Without a label,
    /// ranks write directly to the launcher's output.
    #[must_use]
    pub fn label(mut self, label: bool) -> Self {
        self.label = label;
        self
    }

    /// Sets whether signals that request this process to end, and SIGUSR1 and
    /// SIGUSR2, are caught and passed on to the ranks. A second SIGINT then kills
    /// them. Only one job of a process at a time can catch signals.
    #[must_use]
    pub fn forward_signals(mut self, forward: bool) -> Self {
        self.forward_signals = forward;
        self
    }

    /// Sets the options of the partitions; without this call they come from the
    /// environment.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// Starts the ranks. They die with the calling thread.
    ///
    /// # Errors
    ///
    /// No rank is left running then.
    ///
    /// - [`LaunchError::NoProgram`]: no [`program`](Self::program) was set, or its path is empty.
    /// - [`LaunchError::Config`]: a variable of the environment has a value that is not
    ///   allowed.
    /// - [`LaunchError::Space`]: the memory files cannot be made; the errors of
    ///   [`Files::create`].
    /// - [`LaunchError::Spawn`]: the system cannot start the program for a rank.
    /// - [`LaunchError::SignalsTaken`]: another job of this process forwards signals.
    /// - [`LaunchError::System`]: the system refused a pipe, the guardian, the handlers of
    ///   signals, or `/dev/null`.
    pub fn start(self) -> Result<Job, LaunchError> {
        if self.program.is_empty() {
            return Err(LaunchError::NoProgram);
        }
        let config = match self.config {
            Some(config) => config,
            None => Config::from_env().map_err(LaunchError::Config)?,
        };
        // The guardian is started before the memory files are made, because it
        // would otherwise inherit them.
        let guardian = Guardian::start(None)?;
        let (files, windows) = match self.part {
            None => {
                let made = Files::create(self.size, &config).map_err(LaunchError::Space)?;
                (Some(made.0), made.1)
            }
            Some(_) => (None, Vec::new()),
        };
        let signals = self.forward_signals.then(Signals::catch).transpose()?;
        let grace = Duration::from_millis(config.grace_ms.into());
        let losses = self.part.is_some().then(Losses::new).transpose().map_err(|e| {
            LaunchError::System { what: "making a pipe", errno: e.raw_os_error().unwrap_or(0) }
        })?;
        let mut job = Job {
            children: Vec::new(),
            windows,
            signals,
            guardian,
            grace,
            losses,
            superior: None,
            is_over: false,
        };
        // Opened here, so that a failure is not reported as one of the program.
        let empty = File::open(EMPTY).map_err(|e| LaunchError::System {
            what: "opening /dev/null, the input of ranks",
            errno: e.raw_os_error().unwrap_or(0),
        })?;
        let ranks = self.part.clone().unwrap_or_else(|| (0..self.size).map(Rank).collect());
        for rank in ranks {
            let (mark, losses) = (job.guardian.mark(), job.losses.as_ref());
            let child = Child::spawn(&self, files.as_ref(), &empty, rank, mark, losses);
            let program = Excerpt::new(&self.program.to_string_lossy());
            let errno = |e: io::Error| e.raw_os_error().unwrap_or(0);
            job.children.push(child.map_err(|e| LaunchError::Spawn {
                rank,
                program,
                errno: errno(e),
            })?);
        }
        Ok(job)
    }
}

impl Job {
    /// The processes, in the order of the ranks.
    pub fn pids(&self) -> Vec<u32> {
        self.children.iter().map(Child::pid).collect()
    }

    /// The head of `rank`'s partition.
    ///
    /// # Panics
    ///
    /// If there is no such rank, or the job is a part of another one.
    pub fn control(&self, rank: Rank) -> &Control {
        &self.windows[rank.0 as usize]
    }

    /// Makes this job a part of a job that `superior` has started.
    #[must_use]
    pub fn under(mut self, superior: Superior) -> Self {
        self.superior = Some(superior);
        self
    }

    /// Watches over the ranks until all have ended, and cleans up.
    ///
    /// # Errors
    ///
    /// [`LaunchError::System`], if the system does not let the launcher watch; then
    /// the ranks are killed.
    pub fn wait(mut self) -> Result<Outcome, LaunchError> {
        let failure = watch::watch(&mut self).map_err(|e| LaunchError::System {
            what: "waiting for the ranks",
            errno: e.raw_os_error().unwrap_or(0),
        })?;
        Ok(Outcome { failure })
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.is_over {
            self.children.iter_mut().for_each(Child::kill_and_reap);
            self.guardian.end();
        }
    }
}

impl Outcome {
    /// The exit code for the launcher: the exit code of the first rank that failed,
    /// 128 + its signal, or 1 if it exited early; without a failure 0.
    pub fn code(&self) -> i32 {
        match self.failure.map(|failure| failure.end) {
            None => 0,
            Some(End::Exited { code }) => code,
            Some(End::Killed { signal }) => 128 + signal,
            Some(End::Early) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, pid, end } = self;
        write!(f, "{rank} (pid {pid}) ")?;
        match *end {
            End::Exited { code: 101 } => write!(f, "exited with code 101 (it panicked)"),
            End::Exited { code } => write!(f, "exited with code {code}"),
            End::Early => write!(f, "exited with code 0 before it had finished"),
            End::Killed { signal } => match crate::sys::signal_name(signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
        }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = |errno: &i32| match *errno {
            0 => "failed without an error number".to_owned(),
            errno => io::Error::from_raw_os_error(errno).to_string(),
        };
        match self {
            Self::NoProgram => write!(f, "no program is set: Launch::program sets it"),
            Self::Config(error) => error.fmt(f),
            Self::Space(error) => error.fmt(f),
            Self::Spawn { rank, program, errno } => {
                write!(f, "starting {} as {rank}: {}", program.as_str(), system(errno))
            }
            Self::SignalsTaken => {
                write!(f, "another job of this process forwards signals: only one can at a time")
            }
            Self::System { what, errno } => write!(f, "{what}: {}", system(errno)),
        }
    }
}

impl std::error::Error for LaunchError {}

/// The standard input of all ranks but the first.
const EMPTY: &str = "/dev/null";
