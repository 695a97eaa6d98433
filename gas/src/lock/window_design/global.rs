//! One lock for the whole window, whatever the target. Holders of all targets, and of
//! one target shared, are readers of the lock; a holder of one target exclusively is
//! its writer. So writers of different targets wait for each other.

use super::want::Want;
use crate::lock::side::GroupSide;

/// The side on which an access holds the lock.
#[inline]
pub(super) const fn side_of(want: Want) -> GroupSide {
    match want {
        Want::All | Want::Shared(_) => GroupSide::All,
        Want::Exclusive(_) => GroupSide::Exclusive,
    }
}

/// Whether a rank that holds the lock on one side would wait for itself if it claimed
/// the lock on the other one, or as the writer again.
pub(in crate::lock) fn would_wait_for_itself(held: GroupSide, wanted: Option<GroupSide>) -> bool {
    (wanted, held) != (Some(GroupSide::All), GroupSide::All)
}
