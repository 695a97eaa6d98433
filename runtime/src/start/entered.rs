//! A rank of which the program's own `main` is a ULT: for programs that call the library
//! from the middle of their `main`, such as those of MPI.

use super::begun::{Apart, BegunRank, Span};
use super::place::{Unpin, place_of};
use crate::config::Chosen;
use crate::error::Error;
use crate::handle::RankHandle;
use crate::job::{JoinedJob, Ties};
use std::fmt;
use tsumugi_ult::Entered;

/// Makes the calling thread a worker of a rank of `job`, and what it runs a ULT, until it
/// [leaves](EnteredRank::leave). `None`: this is not possible here, because the caller is a
/// ULT already, or on a system where no thread can enter a scheduler.
///
/// # Errors
///
/// Those of the start of the rank.
pub fn enter_job(job: JoinedJob, chosen: &Chosen) -> Result<Option<EnteredRank>, Error> {
    let JoinedJob { member, method, is_shared, network, mut ties } = job;
    let (place, unpin) = place_of(&member, method, is_shared, chosen);
    let mut meet = || ties.meet();
    let span = network.map(|network| Span { network, meet: &mut meet });
    let (begun, scheduler, meet) =
        BegunRank::begin(member, chosen, &place, span, Apart::default())?;
    let is_met = meet.is_some();
    // The only worker's ULTs stay on its thread anyway.
    let entered = if chosen.workers > 1 { scheduler.enter_pinned() } else { scheduler.enter() };
    let Ok(entered) = entered else { return Ok(None) };
    Ok(Some(EnteredRank { entered, begun, unpin, ties, is_met }))
}

/// A rank of which the program's `main` is a ULT.
pub struct EnteredRank {
    entered: Entered,
    begun: BegunRank,
    unpin: Unpin,
    ties: Ties,
    /// Whether the ranks of all nodes meet at the end.
    is_met: bool,
}

impl EnteredRank {
    /// The rank.
    pub fn handle(&self) -> &RankHandle {
        &self.begun.handle
    }

    /// Whether the caller is the ULT that has entered.
    pub fn is_caller(&self) -> bool {
        self.entered.is_caller()
    }

    /// Waits until all ranks have come to this call, and ends the rank: the caller is an
    /// ordinary thread again.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: another rank has died; this one has ended all the same.
    ///
    /// # Panics
    ///
    /// If the caller is not the ULT that has entered.
    pub fn leave(self) -> Result<(), Error> {
        let Self { entered, begun, unpin, mut ties, is_met } = self;
        let result = begun.settle();
        entered.leave();
        let mut meet = || ties.meet();
        begun.end(result.is_ok(), is_met.then_some(&mut meet));
        unpin.end();
        if result.is_ok() {
            ties.finish();
        }
        result
    }
}

impl fmt::Debug for EnteredRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EnteredRank({:?})", self.begun.handle)
    }
}
