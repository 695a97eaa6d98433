//! One rank that goes in and out of a group lock, without IO.
//!
//! ```text
//!   Out ── enter ─► Coming ── the side is open ──► In ── leave ─► Going ─► Out
//!                     │                            ▲               │ the last one:
//!                     ▼ it is not                  │               ▼ Ringing
//!                   Asking ──► Waiting ── granted ─┘
//! ```
//!
//! With the side open at the rank's leaf: one atomic on memory of its own
//! machine to enter, one to leave.

use super::Side;
use super::tree::{BlockWord, SIDE_WORDS, Tree};
use super::vertex::{COME_SHIFT, OPEN};
use core::hash::{Hash, Hasher};
use tsumugi_core::mem::{AddrError, Rank, RemoteAddr, Width};
use tsumugi_core::op::{Kind as OpKind, Op};
use tsumugi_core::signal::Until;
use tsumugi_core::sync::mutant;

use super::claim::StepId;

/// A rank before a group lock. Two are equal if they will do the same.
#[derive(Clone, Debug)]
pub struct Entry {
    tree: Tree,
    rank: Rank,
    at: At,
    side: Side,
    is_posted: bool,
    step: u32,
}

/// How an [`Entry`] stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Outside.
    Out,
    /// On its way in.
    Entering,
    /// Inside.
    In,
    /// On its way out.
    Leaving,
    /// It is over with this lock.
    Failed(AddrError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Out,
    Coming,
    Asking(u64),
    Waiting(u64),
    In,
    Going,
    Ringing,
    Failed(AddrError),
}

impl Entry {
    /// `rank`, outside.
    pub const fn new(tree: Tree, rank: Rank) -> Self {
        Self { tree, rank, at: At::Out, side: Side::All, is_posted: false, step: 0 }
    }

    /// Goes in.
    ///
    /// # Panics
    ///
    /// If it is not outside: who is inside must not enter once more, as a
    /// revocation would keep it waiting for itself.
    pub fn enter(&mut self, side: Side) {
        assert!(self.at == At::Out, "{self:?} is not outside");
        (self.side, self.at) = (side, At::Coming);
    }

    /// Goes out. What was done inside must have completed, at the remote ends.
    ///
    /// # Panics
    ///
    /// If it is not inside.
    pub fn leave(&mut self) {
        assert!(self.at == At::In, "{self:?} is not inside");
        self.at = At::Going;
    }

    /// The next operation to post, whose completion must be remote. Whoever
    /// cannot post it keeps it.
    pub fn poll_op(&mut self) -> Option<(StepId, Op)> {
        if self.is_posted {
            return None;
        }
        let (leaf, index) = self.tree.leaf_of(self.rank);
        let word = |word, index| self.tree.word(leaf, word, index);
        let add = |at, delta: u64| Op::atomic(OpKind::FetchAdd, at, delta);
        let side = self.side as u32 * SIDE_WORDS;
        let op = match self.at {
            At::Coming => add(word(BlockWord::Come, side), 1 << COME_SHIFT),
            At::Asking(ticket) => {
                Op::put_word(word(BlockWord::Below, index), Width::W8, ticket).notifying()
            }
            At::Going => add(word(BlockWord::Gone, side), 1),
            At::Ringing => add(word(BlockWord::Quiet, 0), 1).notifying(),
            At::Out | At::Waiting(_) | At::In | At::Failed(_) => return None,
        };
        self.is_posted = true;
        Some((StepId::from_bits(self.step), op))
    }

    /// An operation has ended. One that ends a second time is ignored.
    pub fn handle_completed(&mut self, id: StepId, result: Result<u64, AddrError>) {
        if self.under_way() != Some(id) {
            return;
        }
        self.is_posted = false;
        self.step = self.step.wrapping_add(1);
        let old = match result {
            Ok(old) => old,
            Err(error) => {
                self.at = At::Failed(error);
                return;
            }
        };
        self.at = match self.at {
            At::Coming if old & OPEN != 0 => At::In,
            // Above the side's bit: how many have come, with this one.
            At::Coming => At::Asking(((old >> COME_SHIFT) + 1) << COME_SHIFT | self.side as u64),
            At::Asking(ticket) => At::Waiting(ticket),
            At::Going if old == u64::MAX && !mutant("group_last_silent") => At::Ringing,
            At::Going | At::Ringing => At::Out,
            at => at,
        };
    }

    /// The own word that ends the wait, and what it must become.
    pub fn waits_for(&self) -> Option<(RemoteAddr, Until)> {
        let At::Waiting(ticket) = self.at else { return None };
        Some((self.tree.granted(self.rank), Until::Equal(ticket)))
    }

    /// That word is now `value`.
    pub fn handle_word(&mut self, value: u64) {
        if self.at == At::Waiting(value) {
            self.at = At::In;
        }
    }

    /// A rank has died, and with it perhaps whoever would have let us in.
    pub fn handle_lost(&mut self, rank: Rank) {
        if let At::Waiting(_) = self.at {
            self.at = At::Failed(AddrError::PeerLost { rank });
        }
    }

    /// The operation that is posted and has not ended.
    pub fn under_way(&self) -> Option<StepId> {
        self.is_posted.then_some(StepId::from_bits(self.step))
    }

    /// Which side it is on, or goes to.
    pub const fn side(&self) -> Side {
        self.side
    }

    /// How it stands.
    pub const fn place(&self) -> Place {
        match self.at {
            At::Out => Place::Out,
            At::Coming | At::Asking(_) | At::Waiting(_) => Place::Entering,
            At::In => Place::In,
            At::Going | At::Ringing => Place::Leaving,
            At::Failed(error) => Place::Failed(error),
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        let same = |entry: &Self| (entry.tree, entry.rank, entry.at, entry.side, entry.is_posted);
        same(self) == same(other)
    }
}

impl Eq for Entry {}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.rank, self.at, self.side, self.is_posted).hash(state);
    }
}
