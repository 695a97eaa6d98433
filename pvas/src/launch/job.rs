//! The ranks of a job while they run.

use super::child::Child;
use super::error::LaunchError;
use super::guardian::Guardian;
use super::losses::Losses;
use super::outcome::JobOutcome;
use super::relay::Relay;
use super::signals::Signals;
use super::superior::Superior;
use crate::partition::ControlBlock;
use crate::space::ControlMapping;
use std::time::Duration;
use tsumugi_core::mem::Rank;

/// The ranks of a job while they run. If this is dropped before
/// [`wait`](Self::wait), it kills them.
#[derive(Debug)]
pub struct LaunchedJob {
    pub(super) children: Vec<Child>,
    pub(super) windows: Vec<ControlMapping>,
    pub(super) signals: Option<Signals>,
    pub(super) guardian: Guardian,
    /// The time that the other ranks have after a death before they get a signal.
    pub(super) grace: Duration,
    /// The time after which the job is ended.
    pub(super) limit: Option<Duration>,
    /// Of a part: the ranks that its ranks declare lost.
    pub(super) losses: Option<Losses>,
    pub(super) superior: Option<Superior>,
    /// The thread for the output of the ranks; `None` until all ranks are started.
    pub(super) relay: Option<Relay>,
    pub(super) is_over: bool,
}

impl LaunchedJob {
    /// The processes, in the order of the ranks.
    pub fn pids(&self) -> Vec<u32> {
        self.children.iter().map(Child::pid).collect()
    }

    /// The head of `rank`'s partition.
    ///
    /// # Panics
    ///
    /// If there is no such rank, or the job is a part of another one.
    pub fn control(&self, rank: Rank) -> &ControlBlock {
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
    pub fn wait(mut self) -> Result<JobOutcome, LaunchError> {
        self.watch().map_err(|e| LaunchError::System {
            what: "waiting for the ranks",
            errno: e.raw_os_error().unwrap_or(0),
        })
    }
}

impl Drop for LaunchedJob {
    fn drop(&mut self) {
        if !self.is_over {
            self.children.iter_mut().for_each(Child::kill_and_reap);
            self.guardian.end();
        }
    }
}
