//! The allocators of a partition.

use crate::config::{Peers, Policy};
use crate::exposed::ExposedArea;
use crate::heap::Heap;
use crate::partition::PartitionShape;
use crate::populate::Tally;
use std::ptr::NonNull;
use tsumugi_core::mem::LocalRank;

/// The allocators of a partition, for its owner.
pub(super) struct PartitionAllocators {
    pub(super) exposed: ExposedArea,
    /// The first part of exposed memory, if peers may only read the rest.
    pub(super) rings: Option<ExposedArea>,
    /// The heap is never freed: mimalloc keeps it.
    pub(super) heap: &'static Heap,
    /// Populates the pages that both allocators use for the first time.
    pub(super) tally: Option<&'static Tally>,
}

impl PartitionAllocators {
    /// Makes the allocator of exposed memory, and one for rings if their memory is
    /// separate.
    ///
    /// # Safety
    ///
    /// The exposed part of the partition must stay mapped until the process ends,
    /// and must be all zeroes and not used otherwise.
    pub(super) unsafe fn exposed(
        shape: PartitionShape,
        policy: &Policy,
        tally: Option<&'static Tally>,
        rank: LocalRank,
    ) -> (ExposedArea, Option<ExposedArea>) {
        let (first, end) = (shape.exposed_offset(), shape.heap_offset());
        let area = |first, end| {
            // SAFETY: both areas are parts of the caller's memory and do not
            // overlap.
            unsafe { ExposedArea::new(place(shape, rank, first), end - first, tally) }
        };
        match policy.peers {
            Peers::Write | Peers::ReadHeap => (area(first, end), None),
            Peers::Read => (area(shape.rings_end(), end), Some(area(first, shape.rings_end()))),
        }
    }
}

/// The address of an offset in a rank's partition.
pub(super) fn place(shape: PartitionShape, rank: LocalRank, offset: usize) -> NonNull<u8> {
    NonNull::new((shape.start(rank) + offset) as *mut u8).expect("a base above zero")
}
