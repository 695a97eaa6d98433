//! One rank that enters and leaves a group lock, without IO.
//!
//! ```text
//!   Out ── enter ─► Coming ── the side is open ──► In ── leave ─► Going ─► Out
//!                     │                            ▲               │ the last one:
//!                     ▼ it is not                  │               ▼ Ringing
//!                   Asking ──► Waiting ── granted ─┘
//! ```
//!
//! If the side is open at the rank's leaf, entering costs one atomic on memory of
//! the own machine, and leaving another one.

use super::side::GroupSide;
use super::step::StepId;
use super::tree::{BlockWord, SIDE_WORDS, Tree};
use super::vertex::{COME_SHIFT, OPEN};
use core::hash::{Hash, Hasher};
use tsumugi_core::mem::{AddrError, Rank, RemoteAddr, Width};
use tsumugi_core::mutate;
use tsumugi_core::op::{Kind as OpKind, Op};
use tsumugi_core::signal::Until;

/// The state of a rank at a group lock. Two entries are equal if they will do the
/// same.
#[derive(Clone, Debug)]
pub struct GroupMember {
    tree: Tree,
    rank: Rank,
    at: MemberStep,
    side: GroupSide,
    is_posted: bool,
    step: u32,
}

/// Where the rank of a [`GroupMember`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberPlace {
    /// Outside.
    Out,
    /// On its way in.
    Entering,
    /// Inside.
    In,
    /// On its way out.
    Leaving,
    /// An operation has failed, or a rank has died: the rank cannot use this lock
    /// any more.
    Failed(AddrError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum MemberStep {
    Out,
    Coming,
    Asking(u64),
    Waiting(u64),
    In,
    Going,
    Ringing,
    Failed(AddrError),
}

impl GroupMember {
    /// The entry of `rank`, which is outside.
    pub const fn new(tree: Tree, rank: Rank) -> Self {
        Self { tree, rank, at: MemberStep::Out, side: GroupSide::All, is_posted: false, step: 0 }
    }

    /// Begins to enter on a side.
    ///
    /// # Panics
    ///
    /// If the rank is not outside. A rank that is inside must not enter once more,
    /// because the rank would wait for its own leaving if the side was revoked
    /// between.
    pub fn enter(&mut self, side: GroupSide) {
        assert!(self.at == MemberStep::Out, "enter by a rank that is not outside: {self:?}");
        (self.side, self.at) = (side, MemberStep::Coming);
    }

    /// Begins to leave. Operations that were begun inside must have completed, at
    /// the remote ends.
    ///
    /// # Panics
    ///
    /// If the rank is not inside.
    pub fn leave(&mut self) {
        assert!(self.at == MemberStep::In, "leave by a rank that is not inside: {self:?}");
        self.at = MemberStep::Going;
    }

    /// The next operation to post, with remote completion. A caller that cannot post
    /// it at once must keep it.
    pub fn poll_op(&mut self) -> Option<(StepId, Op)> {
        if self.is_posted {
            return None;
        }
        let (leaf, index) = self.tree.leaf_of(self.rank);
        let word = |word, index| self.tree.word(leaf, word, index);
        let add = |at, delta: u64| Op::atomic(OpKind::FetchAdd, at, delta);
        let side = self.side as u32 * SIDE_WORDS;
        let op = match self.at {
            MemberStep::Coming => add(word(BlockWord::Come, side), 1 << COME_SHIFT),
            MemberStep::Asking(ticket) => {
                Op::put_word(word(BlockWord::Below, index), Width::W8, ticket).notifying()
            }
            MemberStep::Going => add(word(BlockWord::Gone, side), 1),
            MemberStep::Ringing => add(word(BlockWord::Quiet, 0), 1).notifying(),
            MemberStep::Out | MemberStep::Waiting(_) | MemberStep::In | MemberStep::Failed(_) => {
                return None;
            }
        };
        self.is_posted = true;
        Some((StepId::from_bits(self.step), op))
    }

    /// Handles the end of an operation. A second end of the same operation is
    /// ignored.
    pub fn handle_completed(&mut self, id: StepId, result: Result<u64, AddrError>) {
        if self.under_way() != Some(id) {
            return;
        }
        self.is_posted = false;
        self.step = self.step.wrapping_add(1);
        let old = match result {
            Ok(old) => old,
            Err(error) => {
                self.at = MemberStep::Failed(error);
                return;
            }
        };
        self.at = match self.at {
            MemberStep::Coming if old & OPEN != 0 => MemberStep::In,
            // The bits above the side's bit: how many have come, with this rank.
            MemberStep::Coming => {
                MemberStep::Asking(((old >> COME_SHIFT) + 1) << COME_SHIFT | self.side as u64)
            }
            MemberStep::Asking(ticket) => MemberStep::Waiting(ticket),
            MemberStep::Going if old == u64::MAX => mutate!("group_last_silent":
                MemberStep::Ringing => MemberStep::Out),
            MemberStep::Going | MemberStep::Ringing => MemberStep::Out,
            at => at,
        };
    }

    /// The own word that ends the wait, and the value that it must get.
    pub fn waits_for(&self) -> Option<(RemoteAddr, Until)> {
        let MemberStep::Waiting(ticket) = self.at else { return None };
        Some((self.tree.granted(self.rank), Until::Equal(ticket)))
    }

    /// Handles that the own word has the value `value`.
    pub fn handle_word(&mut self, value: u64) {
        if self.at == MemberStep::Waiting(value) {
            self.at = MemberStep::In;
        }
    }

    /// Handles the death of a rank, which may be the rank that would have let this
    /// rank in.
    pub fn handle_lost(&mut self, rank: Rank) {
        if let MemberStep::Waiting(_) = self.at {
            self.at = MemberStep::Failed(AddrError::PeerLost { rank });
        }
    }

    /// The operation that is posted and has not ended.
    pub fn under_way(&self) -> Option<StepId> {
        self.is_posted.then_some(StepId::from_bits(self.step))
    }

    /// The side that the rank is on, or enters.
    pub const fn side(&self) -> GroupSide {
        self.side
    }

    /// Where the rank is.
    pub const fn place(&self) -> MemberPlace {
        match self.at {
            MemberStep::Out => MemberPlace::Out,
            MemberStep::Coming | MemberStep::Asking(_) | MemberStep::Waiting(_) => {
                MemberPlace::Entering
            }
            MemberStep::In => MemberPlace::In,
            MemberStep::Going | MemberStep::Ringing => MemberPlace::Leaving,
            MemberStep::Failed(error) => MemberPlace::Failed(error),
        }
    }
}

impl PartialEq for GroupMember {
    fn eq(&self, other: &Self) -> bool {
        let same = |entry: &Self| (entry.tree, entry.rank, entry.at, entry.side, entry.is_posted);
        same(self) == same(other)
    }
}

impl Eq for GroupMember {}

impl Hash for GroupMember {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.rank, self.at, self.side, self.is_posted).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_core::mem::RegionKey;

    fn entry(rank: u32) -> GroupMember {
        GroupMember::new(Tree::new(4, 2, 2, RegionKey::new(0, 1), 0).unwrap(), Rank(rank))
    }

    /// A second end of an operation, or a late one, is ignored.
    #[test]
    fn an_operation_ends_once() {
        let mut own = entry(1);
        own.enter(GroupSide::Exclusive);
        let (come, _) = own.poll_op().expect("the rank enters");
        own.handle_completed(come, Ok(OPEN));
        assert_eq!(own.place(), MemberPlace::In);
        own.handle_completed(come, Err(AddrError::PeerLost { rank: Rank(0) }));
        own.leave();
        let (go, _) = own.poll_op().expect("the rank leaves");
        own.handle_completed(come, Ok(0));
        assert_eq!((own.place(), own.under_way()), (MemberPlace::Leaving, Some(go)));
        own.handle_completed(go, Ok(0));
        assert_eq!(own.place(), MemberPlace::Out);
    }

    #[test]
    fn entries_are_equal_if_their_next_steps_are() {
        let (one, mut other) = (entry(1), entry(1));
        assert!(one == other && one != entry(2));
        other.enter(GroupSide::All);
        assert!(one != other);
        let come = other.clone();
        other.poll_op();
        assert!(come != other, "one entry has posted, and the other will");
        assert!(one == GroupMember { step: 7, ..one.clone() }, "the step number has no meaning");
    }
}
