//! A grace period over all ranks: it waits until all reads that were under way when it
//! began have ended, anywhere.
//!
//! ```text
//!  of each rank:  reader counts: read ─► no read of either phase ─► next
//!                   │  ▲ └─► reads of the other phase: pause, again
//!                   │  └───────── lost the race ──┐
//!                   └─► compare-swap: turn ───────┘
//!                         └─► until no read of the phase before is left,
//!                             or the phase was turned again
//! ```
//!
//! The phase is turned only when the count of the other phase is 0. So a grace period that
//! finds the phase turned again has the proof that all reads of the phase before
//! have ended. One grace period is enough for all pages that had moved before it began: its
//! cost, one read per rank without readers, is shared by all frames that were
//! collected for it.

use super::gate::ReaderEpochs;
use super::protocol::{PageAction, PageProtocol};
use super::{PageLayout, WordOp};
use core::convert::Infallible;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::mutate;

/// One grace period, which accesses no page. At its end, frames that were retired before it
/// began may be freed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GracePeriod {
    layout: PageLayout,
    rank: u32,
    at: GraceStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum GraceStep {
    Look,
    Pause,
    Turn(u64),
    Wait(u8),
    PauseFor(u8),
    Over,
    Failed(AddrError),
}

impl GracePeriod {
    /// A grace period that is to begin.
    pub const fn new(layout: PageLayout) -> Self {
        Self { layout, rank: 0, at: GraceStep::Look }
    }

    fn finds(&mut self, bits: u64) -> GraceStep {
        let epochs = ReaderEpochs(bits);
        match [epochs.phase(), 1 - epochs.phase()].map(|phase| epochs.count(phase)) {
            [0, 0] => self.next(),
            [_, 0] => mutate!("page_sweep_blind": GraceStep::Turn(bits) => self.next()),
            _ => mutate!("page_sweep_blind": GraceStep::Pause => self.next()),
        }
    }

    fn next(&mut self) -> GraceStep {
        self.rank += 1;
        if self.rank < self.layout.shape().homes.ranks() {
            GraceStep::Look
        } else {
            GraceStep::Over
        }
    }
}

impl PageProtocol for GracePeriod {
    type Access = Infallible;
    type Outcome = ();

    fn act(&self) -> PageAction<Self::Access, Self::Outcome> {
        let epochs = self.layout.reader_epochs(Rank(self.rank));
        match self.at {
            // Not a load: a read that enters the reader counts after this operation sees
            // through it which headers were marked before.
            GraceStep::Look => PageAction::Do(WordOp::add(epochs, 0)),
            GraceStep::Wait(_) => PageAction::Do(WordOp::load(epochs)),
            GraceStep::Pause | GraceStep::PauseFor(_) => PageAction::Pause(None),
            GraceStep::Turn(seen) => {
                PageAction::Do(WordOp::exchange(epochs, seen, ReaderEpochs(seen).turned().0))
            }
            GraceStep::Over => PageAction::Over(()),
            GraceStep::Failed(error) => PageAction::Failed(error),
        }
    }

    fn answer(&mut self, result: Result<u64, AddrError>) {
        self.at = match (result, self.at) {
            // A dead rank reads nothing any more.
            (
                Err(AddrError::PeerLost { rank }),
                GraceStep::Look | GraceStep::Turn(_) | GraceStep::Wait(_),
            ) => mutate!("page_sweep_ends_at_the_dead":
                self.next() => GraceStep::Failed(AddrError::PeerLost { rank })),
            (Err(error), _) => GraceStep::Failed(error),
            (Ok(old), GraceStep::Turn(seen)) if old == seen => {
                GraceStep::Wait(ReaderEpochs(seen).phase())
            }
            (Ok(old), GraceStep::Look | GraceStep::Turn(_)) => self.finds(old),
            (Ok(old), GraceStep::Wait(phase)) => {
                let epochs = ReaderEpochs(old);
                let is_empty = epochs.count(phase) == 0 || epochs.phase() == phase;
                if is_empty { self.next() } else { GraceStep::PauseFor(phase) }
            }
            (Ok(_), GraceStep::Pause) => GraceStep::Look,
            (Ok(_), GraceStep::PauseFor(phase)) => GraceStep::Wait(phase),
            (Ok(_), GraceStep::Over | GraceStep::Failed(_)) => {
                unreachable!("no answer is due: {self:?}")
            }
        };
    }
}
