//! Which rows of a rank are in use: memory in which its groups publish short values.
//!
//! ```text
//!  split: each member offers its free rows ─► all choose the lowest row that is free at
//!         and its highest number              all members, and begin above all numbers
//!  drop:  the row is free again once all members have done what this one has begun
//! ```
//!
//! A rank has [`COLLECTIVE_ROWS`] rows, the first for the group of all ranks. A group for
//! which no row is free at all of its members sends messages.

use std::ptr::NonNull;
use tsumugi_core::coll::row::CellRow;
use tsumugi_core::mem::LocalRank;
use tsumugi_core::wait::Reason;
use tsumugi_pvas::Member;
use tsumugi_pvas::partition::COLLECTIVE_ROWS;

/// The row of a member, and its place on the node.
#[derive(Clone, Copy)]
pub(super) struct RowPlace {
    row: NonNull<CellRow>,
    place: LocalRank,
}

/// Who uses the rows of a rank.
#[derive(Default)]
pub(super) struct RowTable {
    uses: [RowUse; COLLECTIVE_ROWS],
    /// For what a caller that sleeps has last waited in each row, for reports.
    waits: [Option<Reason>; COLLECTIVE_ROWS],
}

#[derive(Default)]
enum RowUse {
    #[default]
    Free,
    /// A group has it, or it is offered to one.
    Used,
    /// The group has gone; its members may still read, or watch, for what has this number.
    Left { members: Box<[RowPlace]>, number: u64 },
}

// SAFETY: rows are atomics in the control blocks of the node, which stay mapped as long as
// the `Member` of the service that has the place.
unsafe impl Send for RowPlace {}
// SAFETY: as above.
unsafe impl Sync for RowPlace {}

/// What a member offers to the new groups of a split.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowOffer {
    /// A bit for each row that is free.
    pub(super) free: u64,
    /// The highest number that this member has used in any row.
    pub(super) top: u64,
}

impl RowTable {
    /// Keeps all free rows, and returns them.
    pub(super) fn offer(&mut self, member: &Member) -> RowOffer {
        let mut free = 0;
        for (index, one) in self.uses.iter_mut().enumerate() {
            if one.is_free() {
                *one = RowUse::Used;
                free |= 1 << index;
            }
        }
        let top = member.control().rows().iter().map(CellRow::done).max().unwrap_or(0);
        RowOffer { free, top }
    }

    /// Notes that the group with the row `index` has gone: the row is free when its members
    /// have done what has this number.
    pub(super) fn leave(&mut self, index: usize, members: Box<[RowPlace]>, number: u64) {
        self.uses[index] = RowUse::Left { members, number };
    }

    /// Notes for what a caller is about to sleep in a row.
    pub(super) fn note_wait(&mut self, index: usize, reason: Reason) {
        self.waits[index] = Some(reason);
    }

    /// For what a caller sleeps in the row `index`, if one does.
    pub(super) fn wait_in(&self, index: usize) -> Option<Reason> {
        *self.waits.get(index)?
    }

    /// Gives the rows back that were offered.
    pub(super) fn take_back(&mut self, free: u64) {
        for (index, one) in self.uses.iter_mut().enumerate() {
            if free & 1 << index != 0 {
                *one = RowUse::Free;
            }
        }
    }
}

impl RowUse {
    fn is_free(&self) -> bool {
        match self {
            Self::Free => true,
            Self::Used => false,
            Self::Left { members, number } => members.iter().all(|at| at.row().done() >= *number),
        }
    }
}

impl RowPlace {
    /// The row `index` of the rank at `place`.
    pub(super) fn new(member: &Member, place: LocalRank, index: usize) -> Self {
        Self { row: NonNull::from(&member.space().control(place).rows()[index]), place }
    }

    pub(super) const fn place(&self) -> LocalRank {
        self.place
    }

    pub(super) fn row(&self) -> &CellRow {
        // SAFETY: mapped, see above.
        unsafe { self.row.as_ref() }
    }
}
