//! A job that is to be started, and its options.

use super::error::LaunchError;
use crate::config::SpaceConfig;
use std::ffi::{OsStr, OsString};
use std::time::Duration;
use tsumugi_core::mem::Rank;

/// A job that is to be started, with its options.
#[derive(Clone, Debug)]
pub struct Launch {
    pub(super) size: u32,
    pub(super) part: Option<Vec<Rank>>,
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) label: bool,
    pub(super) forward_signals: bool,
    pub(super) config: Option<SpaceConfig>,
    pub(super) limit: Option<Duration>,
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
            limit: None,
        }
    }

    /// Makes a job of `size` ranks that run this program, with its arguments.
    ///
    /// # Errors
    ///
    /// [`LaunchError::System`], if the system does not tell the path of this program.
    pub fn of_this_program(size: u32) -> Result<Self, LaunchError> {
        let own = std::env::current_exe().map_err(|error| LaunchError::System {
            what: "looking for the path of this program (/proc/self/exe)",
            errno: error.raw_os_error().unwrap_or(0),
        })?;
        Ok(Self::new(size).program(own, std::env::args_os().skip(1)))
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

    /// Sets whether each line of output starts with `[rank] `. The output of ranks goes
    /// through the launcher, which writes whole lines, of up to 1 MiB. Only the one rank
    /// of a job of size 1, without a label, writes directly to the launcher's output.
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

    /// Sets a time limit: a job that runs longer is ended by SIGTERM, and by SIGKILL
    /// 0.7 s later.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sets the options of the partitions; without this call they come from the
    /// environment.
    #[must_use]
    pub fn config(mut self, config: SpaceConfig) -> Self {
        self.config = Some(config);
        self
    }
}
