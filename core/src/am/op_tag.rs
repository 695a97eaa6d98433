//! The tags of a machine's operations: the kind of the operation, the index of the entry
//! that it belongs to, and the generation of that entry.

use crate::tag::Tag;

pub(super) fn tag(kind: usize, index: usize, generation: u32) -> Tag {
    Tag::from_bits(u64::from(generation) << 24 | (kind << INDEX_BITS | index) as u64)
}

pub(super) const PUT: usize = 0;
pub(super) const BELL: usize = 1;
pub(super) const FETCH: usize = 2;
pub(super) const NOTICE: usize = 3;
pub(super) const INDEX_BITS: u32 = 22;
pub(super) const INDEX_MASK: usize = (1 << INDEX_BITS) - 1;
