//! Spaces of this process in which the ranks were threads that have ended.
//!
//! mimalloc never frees an arena, so the next space of the same shape is made from
//! an old one: its head, starter memory, exposed memory and stacks are returned to
//! the kernel and are zero again; its heaps go on as they are. Blocks that were not
//! released in a heap are lost, but not those in exposed memory.

use super::{Own, Space};
use crate::config::Config;
use crate::partition::Shape;
use crate::sys;
use std::sync::{Mutex, PoisonError};
use tsumugi_core::mem::LocalRank;

/// Keeps a space for later use. All of its partitions have allocators in this
/// process, and its ranks have ended.
pub(super) fn retire(mut space: Space) {
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
        (own.exposed, own.rings) = unsafe { Own::exposed(shape, &space.policy, own.tally, rank) };
    }
    RETIRED.lock().unwrap_or_else(PoisonError::into_inner).push(space);
}

/// A retired space of the same shape with room for `size` ranks.
pub(super) fn reuse(size: u32, shape: Shape, config: &Config) -> Option<Space> {
    let (base, policy) = (config.base, config.policy);
    let mut retired = RETIRED.lock().unwrap_or_else(PoisonError::into_inner);
    let place = retired.iter().position(|space| {
        let same = Shape { base: shape.base, ..space.shape } == shape && space.policy == policy;
        same && space.mapped >= size && base.is_none_or(|base| base == space.shape.base)
    })?;
    let mut space = retired.swap_remove(place);
    space.size = size;
    space.make_headers();
    Some(space)
}

static RETIRED: Mutex<Vec<Space>> = Mutex::new(Vec::new());
