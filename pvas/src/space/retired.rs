//! Spaces whose ranks were threads of this process and are gone.
//!
//! mimalloc never gives an arena up, so the next space of the same shape is
//! made of an old one: its head, starter memory, exposed memory and stacks are
//! given back to the system and are zero again, its heaps go on as they are.
//! What was not released in a heap is lost; in exposed memory it is not.

use super::{Own, Space};
use crate::config::Config;
use crate::partition::Shape;
use crate::sys;
use std::sync::{Mutex, PoisonError};
use tsumugi_core::mem::Rank;

/// Keeps what is left of a space, all of whose partitions have memory of
/// their own and whose ranks are gone.
pub(super) fn retire(mut space: Space) {
    for (rank, own) in (0..).map(Rank).zip(&mut space.owns) {
        let (start, shape) = (space.shape.start(rank), space.shape);
        // SAFETY: mapped, and lent to nobody who is still here.
        let is_clean = unsafe {
            sys::discard(start, shape.heap_offset())
                && sys::discard(start + shape.stacks_offset(), shape.stack_bytes)
        };
        if !is_clean {
            // Never to be used again, and never unmapped: mimalloc knows it.
            std::mem::forget(space);
            return;
        }
        // SAFETY: zero again, and nobody else's.
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
