//! Spaces of this process in which the ranks were threads that have ended.
//!
//! mimalloc never frees an arena, so the next space of the same shape is made from
//! an old one: its head, starter memory, exposed memory and stacks are returned to
//! the kernel and are zero again; its heaps go on as they are. Blocks that were not
//! released in a heap are lost, but not those in exposed memory.

use super::allocators::PartitionAllocators;
use crate::config::{Policy, SpaceConfig};
use crate::partition::PartitionShape;
use crate::sys;
use std::sync::{Mutex, PoisonError};
use tsumugi_core::mem::LocalRank;

/// The parts of a space that the next space of the same shape takes over.
pub(super) struct RetiredSpace {
    pub(super) shape: PartitionShape,
    pub(super) policy: Policy,
    /// The number of mapped partitions.
    pub(super) mapped: u32,
    /// The allocators of all mapped partitions.
    pub(super) owns: Vec<PartitionAllocators>,
}

/// Keeps a space for later use. All of its partitions have allocators in this
/// process, and its ranks have ended.
pub(super) fn retire(mut space: RetiredSpace) {
    for (rank, own) in (0..).map(LocalRank).zip(&mut space.owns) {
        let (start, shape) = (space.shape.start(rank), space.shape);
        // SAFETY: the range is mapped, and no user of the memory is left.
        let is_clean = unsafe {
            sys::discard(start, shape.heap_offset())
                && sys::discard(start + shape.stacks_offset(), shape.stack_bytes)
        };
        if !is_clean {
            // The space must never be used again, and never unmapped, because
            // mimalloc keeps its heaps.
            std::mem::forget(space);
            return;
        }
        // SAFETY: the memory is zero again, and not used otherwise.
        (own.exposed, own.rings) =
            unsafe { PartitionAllocators::exposed(shape, &space.policy, own.tally, rank) };
    }
    RETIRED.lock().unwrap_or_else(PoisonError::into_inner).push(space);
}

/// A retired space of the same shape with room for `size` ranks.
pub(super) fn take(size: u32, shape: PartitionShape, config: &SpaceConfig) -> Option<RetiredSpace> {
    let (base, policy) = (config.base, config.policy);
    let mut retired = RETIRED.lock().unwrap_or_else(PoisonError::into_inner);
    let place = retired.iter().position(|space| {
        let same =
            PartitionShape { base: shape.base, ..space.shape } == shape && space.policy == policy;
        same && space.mapped >= size && base.is_none_or(|base| base == space.shape.base)
    })?;
    Some(retired.swap_remove(place))
}

static RETIRED: Mutex<Vec<RetiredSpace>> = Mutex::new(Vec::new());
