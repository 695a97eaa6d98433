//! One relocation: the step at which it is, and what it knows.

use super::outcome::{Refusal, RetiredFrame};
use crate::page::entry::{DirectoryEntry, PageId, PageState};
use crate::page::gate::GateState;
use crate::page::layout::PageLayout;
use tsumugi_core::mem::{AddrError, Rank};

/// One page on its way. Its [access](crate::page::PageAction::Access) copies the page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relocation {
    pub(super) layout: PageLayout,
    /// The rank that is to own the page, and the rank that carries out the move.
    pub(super) rank: Rank,
    pub(super) by: Rank,
    pub(super) page: PageId,
    pub(super) at: MoveStep,
    /// The place of the page before the move. The epoch may be wrong after a
    /// take-over, until the header was read.
    pub(super) from: DirectoryEntry,
    /// The frame that was taken for the page at its new owner.
    pub(super) frame: Option<u32>,
    /// Bits of the ranks that may hold the page, and the rank that is being stopped.
    pub(super) holders: u64,
    pub(super) holder: u32,
    /// A mover that has died.
    pub(super) dead: Option<Rank>,
    pub(super) has_taken_over: bool,
    /// A rank has died that may still write to the old frame.
    pub(super) is_tainted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MoveStep {
    Ask,
    /// Waits for another mover of the page, which is this rank.
    Wait(Rank),
    FindFrame(u32),
    TakeFrame(u32, u64, u32),
    Lock,
    TakeOver(Rank),
    /// Empties or marks the list of holders, which is expected to have this value.
    Disown(u64),
    /// Changes the gate of a holder, which is expected to have this value, to this
    /// state.
    Stop(u64, GateState),
    /// Reads the gate of the holder again.
    Probe,
    /// Waits because pins are in the gate.
    Drain,
    ReadHeader,
    Copy,
    Mark,
    MarkOld,
    Commit,
    /// Writes a header with a new epoch at the old place, where the page stays, and
    /// then fails.
    Renew(AddrError),
    /// Writes the old entry back, and then fails.
    Restore(AddrError),
    /// Marks the header of the new frame, because the next rank that takes the frame
    /// must not find it live.
    Unmark(Refusal),
    /// Frees the new frame, and then ends with this result.
    GiveBack(Option<Refusal>),
    Over,
    Refused(Refusal),
}

impl Relocation {
    /// The move of a page to `rank`, which carries it out.
    pub const fn new(layout: PageLayout, rank: Rank, page: PageId) -> Self {
        Self::to(layout, rank, rank, page)
    }

    /// The move of a page to `rank`, carried out by `by`; `rank` takes no part.
    pub const fn to(layout: PageLayout, rank: Rank, by: Rank, page: PageId) -> Self {
        let from = DirectoryEntry { owner: rank, frame: 0, epoch: 0 };
        Self {
            layout,
            rank,
            by,
            page,
            at: MoveStep::Ask,
            from,
            frame: None,
            holders: 0,
            holder: 0,
            dead: None,
            has_taken_over: false,
            is_tainted: false,
        }
    }

    /// Whether the move is over and the page is in another frame than before.
    pub fn has_moved(&self) -> bool {
        self.at == MoveStep::Over && self.frame.is_some()
    }

    /// The frame that the page has left, if the move is over and that frame may be
    /// freed: a frame that a dead mover may still write to is never freed.
    pub fn retired(&self) -> Option<RetiredFrame> {
        let is_free = self.has_moved() && !self.is_tainted;
        is_free.then_some(RetiredFrame { owner: self.from.owner, frame: self.from.frame })
    }

    pub(super) fn moving(&self) -> PageState {
        PageState::Moving { owner: self.from.owner, frame: self.from.frame, by: self.by }
    }
}
