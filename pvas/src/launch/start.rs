//! Starts the ranks of a job.

use super::child::Child;
use super::error::LaunchError;
use super::guardian::Guardian;
use super::job::LaunchedJob;
use super::losses::Losses;
use super::options::Launch;
use super::relay::Relay;
use super::signals::Signals;
use crate::config::SpaceConfig;
use crate::space::Files;
use crate::sys;
use std::fs::File;
use std::io;
use tsumugi_core::excerpt::Excerpt;
use tsumugi_core::mem::Rank;

impl Launch {
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
    pub fn start(self) -> Result<LaunchedJob, LaunchError> {
        if self.program.is_empty() {
            return Err(LaunchError::NoProgram);
        }
        let config = match self.config {
            Some(config) => config,
            None => SpaceConfig::from_env().map_err(LaunchError::Config)?,
        };
        // The guardian is started before the memory files are made, because it
        // would otherwise inherit them.
        let guardian = Guardian::start(None)?;
        // Two memory files, a pidfd and two pipes of each rank. A rank inherits the
        // memory files, and gets the limit that this process had, if it has room left.
        let size = u64::from(self.size);
        let before = sys::raise_descriptors(5 * size + DESCRIPTORS_LEFT);
        let limit = before.filter(|limit| limit.rlim_cur >= 2 * size + DESCRIPTORS_LEFT);
        let (files, windows) = match self.part {
            None => {
                let made = Files::create(self.size, &config).map_err(LaunchError::Space)?;
                (Some(made.0), made.1)
            }
            Some(_) => (None, Vec::new()),
        };
        let signals = self.forward_signals.then(Signals::catch).transpose()?;
        let grace = config.grace;
        let losses = self
            .part
            .is_some()
            .then(Losses::new)
            .transpose()
            .map_err(|e| LaunchError::System { what: "making a pipe", errno: errno(&e) })?;
        let mut job = LaunchedJob {
            children: Vec::new(),
            windows,
            signals,
            guardian,
            grace,
            limit: self.limit,
            losses,
            superior: None,
            relay: None,
            is_over: false,
        };
        // Opened here, so that a failure is not reported as one of the program.
        let empty = File::open(EMPTY).map_err(|e| LaunchError::System {
            what: "opening /dev/null, the input of ranks",
            errno: errno(&e),
        })?;
        let ranks = self.part.clone().unwrap_or_else(|| (0..self.size).map(Rank).collect());
        for rank in ranks {
            let (mark, losses) = (job.guardian.mark(), job.losses.as_ref());
            let child = Child::spawn(&self, files.as_ref(), &empty, rank, mark, losses, limit);
            let program = Excerpt::new(&self.program.to_string_lossy());
            job.children.push(child.map_err(|e| LaunchError::Spawn {
                rank,
                program,
                errno: errno(&e),
            })?);
        }
        let lines = job.children.iter_mut().flat_map(|child| child.lines.drain(..)).collect();
        let relay = Relay::start(lines).map_err(|e| LaunchError::System {
            what: "starting the thread for the output of ranks",
            errno: errno(&e),
        })?;
        job.relay = Some(relay);
        Ok(job)
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// The standard input of all ranks but the first.
const EMPTY: &str = "/dev/null";
/// Descriptors for everything else.
const DESCRIPTORS_LEFT: u64 = 256;
