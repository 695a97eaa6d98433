//! What an access to a window asks for.

use tsumugi_core::mem::Rank;

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
