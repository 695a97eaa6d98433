//! The locks of a window, and what an access locks of them.

use super::tree::Tree;
use super::words::Lock;
use tsumugi_core::mem::Rank;

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

/// The targets that an access locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Want {
    /// Every target, together with other accesses that want the same or share a
    /// target.
    All,
    /// This target, together with others.
    Shared(Rank),
    /// This target, alone.
    Exclusive(Rank),
}
