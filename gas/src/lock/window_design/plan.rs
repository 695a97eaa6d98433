//! The locks of a window, by one of the designs, and what an access locks of them.

use super::global;
use super::want::Want;
use crate::lock::side::GroupSide;
use crate::lock::tree::Tree;
use crate::lock::words::Lock;
use tsumugi_core::mem::RemoteAddr;

/// The design of a window's locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockDesign {
    /// One lock for the whole window.
    Global,
    /// A word for the window and a word for each target, polled.
    TwoLevel,
    /// A group lock on a tree, and a lock for each target.
    Tree,
}

impl LockDesign {
    /// The side of the group lock on which an access is, if it is on one.
    #[inline]
    pub const fn side_of(self, want: Want) -> Option<GroupSide> {
        match (self, want) {
            (Self::Global, _) => Some(global::side_of(want)),
            (_, Want::All) => Some(GroupSide::All),
            (_, Want::Exclusive(_)) => Some(GroupSide::Exclusive),
            (_, Want::Shared(_)) => None,
        }
    }
}

/// The locks of a window. All ranks have equal values of it.
#[derive(Clone, Copy, Debug)]
pub struct LockPlan {
    /// The design of the locks.
    pub design: LockDesign,
    /// The lock of rank 0. Each rank has one at the same place.
    pub lock: Lock,
    /// The group lock.
    pub tree: Tree,
}

impl LockPlan {
    /// The lock of the target that is wanted.
    pub(in crate::lock) fn lock_of(&self, want: Want) -> Lock {
        let lock = self.lock;
        match (self.design, want) {
            // Holders of all targets are readers of the one lock.
            (LockDesign::Global, _) | (_, Want::All) => lock,
            (_, Want::Shared(rank) | Want::Exclusive(rank)) => {
                Lock { home: RemoteAddr { rank, ..lock.home }, ..lock }
            }
        }
    }
}
