//! The bootstrap connection and the failure detector that a rank keeps, and how it lets
//! them go.

use super::exchange::Exchange;
use std::thread;
use std::time::Duration;
use tsumugi_backends::boot::BootMethod;
use tsumugi_core::boot::BootError;
use tsumugi_pvas::partition::RankState;
use tsumugi_pvas::{Detector, Member};

/// The bootstrap connection and the failure detector, which a rank keeps while it
/// runs.
#[derive(Debug, Default)]
pub(crate) struct Ties {
    pub(super) is_done: bool,
    pub(super) peers: Option<Member>,
    pub(super) boot: Option<(BootMethod, Exchange)>,
    pub(super) detector: Option<Detector>,
    /// The time that ranks have after a death before they are ended.
    pub(super) grace: Duration,
}

impl Ties {
    /// Waits for all ranks of the job, on all nodes.
    pub(crate) fn meet(&mut self) -> Result<(), BootError> {
        self.boot.as_mut().map_or(Ok(()), |(_, exchange)| exchange.meet())
    }

    /// Called when this rank has ended successfully.
    pub(crate) fn finish(mut self) {
        self.is_done = true;
    }
}

impl Drop for Ties {
    fn drop(&mut self) {
        // A rank that ends because another one has failed waits here, so that the
        // launcher sees the failed rank end first: the exit code of that rank is
        // the job's.
        if !self.is_done && self.peers.as_ref().is_some_and(has_failed) {
            let is_remote = matches!(self.boot, Some((BootMethod::Server, _)));
            thread::sleep(if is_remote { self.grace + AFTER_YOU_THERE } else { AFTER_YOU });
        }
        self.detector = None;
        let Some((method, mut boot)) = self.boot.take() else { return };
        if self.is_done || method == BootMethod::Pmi {
            // hydra ignores the exit code of a rank that disconnects without a
            // message. An error of `leave` is ignored, because the launcher may be
            // gone by now.
            let _ = boot.leave();
        } else {
            // The launcher must see the connection close and the process end at the
            // same time; otherwise it ends the job before it has the exit code.
            std::mem::forget(boot);
        }
    }
}

/// Whether a peer has been declared lost, and the launcher does not know of it yet.
fn has_failed(own: &Member) -> bool {
    if own.first_failure().rank().is_some() {
        return false;
    }
    let peers = own.neighbours().filter(|rank| *rank != own.rank());
    peers.into_iter().any(|rank| own.control_of(rank).state() == RankState::Failed)
}

/// A launcher needs less time than this to notice a death.
const AFTER_YOU: Duration = Duration::from_millis(200);
/// An agent first ends its other ranks, after their grace time.
const AFTER_YOU_THERE: Duration = Duration::from_millis(400);
