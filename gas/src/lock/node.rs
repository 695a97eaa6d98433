//! Queue nodes: the words in a rank's own registered memory in which one of its
//! claims waits, and the names by which other ranks refer to them.
//!
//! ```text
//!  NodeId:  rank (24) | slot (16) | generation (24)      0: no node
//!
//!  words of a node, 8 bytes each
//!    state  generation << 8 | Queued, Head, In, Left or Free
//!    next   a NodeId, or "none yet" / "passed on" of a generation
//! ```
//!
//! Every life of a slot has a generation of its own, which is in each word and in
//! each name. A claim wakes a node by a compare-and-swap from the state of that
//! life. An operation that comes late changes nothing. A claim that finds `Left`
//! learns that the waiter has gone, and carries out the waiter's next steps in its
//! place. A generation repeats after 16,777,215 lives.

use tsumugi_core::mem::{Rank, RegionKey, RemoteAddr};

/// One life of a queue node of some rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct NodeId(u64);

/// The place of every rank's queue nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeTable {
    /// The key under which every rank's nodes are registered.
    pub key: RegionKey,
    /// The offset in the region at which the nodes begin: [`NODE_BYTES`] each, zero
    /// at first.
    pub offset: u64,
}

/// The nodes of one rank: which nodes are free, and the current life of each node.
/// The caller owns the memory of the slots.
#[derive(Debug)]
pub struct NodePool<'a> {
    rank: Rank,
    slots: &'a mut [NodeSlot],
}

/// The state of one node in a [`NodePool`]. All zeroes is a free node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeSlot {
    generation: u32,
    use_: Use,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Use {
    #[default]
    Free,
    Taken,
    /// Its claim has left the node in a queue: the node is free when its state word
    /// says so.
    Left,
}

/// The state of a node, as other ranks see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum NodeState {
    /// The node is behind others.
    Queued = 1,
    /// The node is the first of the writers, and waits for readers.
    Head = 2,
    /// The node has the lock.
    In = 3,
    /// The claim of the node has given up: a claim that finds this acts in its
    /// place.
    Left = 4,
    /// No claim reads the node any more.
    Free = 5,
}

impl NodeId {
    /// No node.
    pub const NONE: Self = Self(0);

    /// The name as a word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The name in such a word.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The rank that has the node in its memory.
    pub const fn rank(self) -> Rank {
        Rank((self.0 >> RANK_SHIFT) as u32)
    }

    /// The index of the node at its rank.
    pub const fn slot(self) -> usize {
        (self.0 >> SLOT_SHIFT & 0xffff) as usize
    }

    /// The life of the node.
    pub const fn generation(self) -> u32 {
        (self.0 & GENERATION_MASK) as u32
    }

    const fn new(rank: Rank, slot: usize, generation: u32) -> Self {
        Self((rank.0 as u64) << RANK_SHIFT | (slot as u64) << SLOT_SHIFT | generation as u64)
    }

    /// The value of the word `next` in this life while the node has no successor.
    pub(super) const fn nobody_yet(self) -> u64 {
        NO_RANK << RANK_SHIFT | self.0 & GENERATION_MASK
    }

    /// The value of the word `next` after the queue was passed on.
    pub(super) const fn passed_on(self) -> u64 {
        self.nobody_yet() | 1 << SLOT_SHIFT
    }

    /// The node that a word `next` names, or [`NONE`](Self::NONE).
    pub(super) const fn named_by(word: u64) -> Self {
        if word >> RANK_SHIFT == NO_RANK { Self::NONE } else { Self(word) }
    }

    /// The value of the word `state` in this life.
    pub(super) const fn state(self, state: NodeState) -> u64 {
        (self.0 & GENERATION_MASK) << 8 | state as u64
    }

    pub(super) const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl NodeTable {
    pub(super) const fn state_of(&self, node: NodeId) -> RemoteAddr {
        let offset = self.offset + node.slot() as u64 * NODE_BYTES;
        RemoteAddr { rank: node.rank(), key: self.key, offset }
    }

    pub(super) const fn next_of(&self, node: NodeId) -> RemoteAddr {
        let state = self.state_of(node);
        RemoteAddr { offset: state.offset + 8, ..state }
    }
}

impl<'a> NodePool<'a> {
    /// The nodes of `rank`, one for each slot. At first, all slots must have their
    /// default value.
    ///
    /// # Panics
    ///
    /// If there are more than 65,536, or the rank does not fit 24 bits.
    pub fn new(rank: Rank, slots: &'a mut [NodeSlot]) -> Self {
        let count = slots.len();
        assert!(count <= 1 << 16, "{count} queue nodes of {rank}: 65,536 are possible");
        assert!(u64::from(rank.0) < NO_RANK, "{rank}: a queue node names ranks below {NO_RANK}");
        Self { rank, slots }
    }

    /// Takes a node, in a new life. `None`: all nodes are in use. `load` reads the
    /// first word of a node of this rank. O(slots).
    pub fn try_take(&mut self, load: impl Fn(usize) -> u64) -> Option<NodeId> {
        let rank = self.rank;
        let is_free = |(index, slot): &(usize, &mut NodeSlot)| match slot.use_ {
            Use::Free => true,
            Use::Taken => false,
            Use::Left => {
                let life = NodeId::new(rank, *index, slot.generation);
                load(*index) == life.state(NodeState::Free)
            }
        };
        let (index, slot) = self.slots.iter_mut().enumerate().find(is_free)?;
        // Never 0, because the name 0 means no node.
        slot.generation = (slot.generation % GENERATION_MASK as u32) + 1;
        slot.use_ = Use::Taken;
        Some(NodeId::new(rank, index, slot.generation))
    }

    /// Gives a node back: its claim has ended, or `has_left` the node in a queue.
    ///
    /// # Panics
    ///
    /// If the node is not taken, or is an earlier life of its slot.
    pub fn release(&mut self, node: NodeId, has_left: bool) {
        let slot = &mut self.slots[node.slot()];
        let is_taken = slot.use_ == Use::Taken && slot.generation == node.generation();
        assert!(is_taken, "release of a queue node that is not taken: {node:?}");
        slot.use_ = if has_left { Use::Left } else { Use::Free };
    }
}

/// Bytes of registered memory that a queue node takes.
pub const NODE_BYTES: u64 = 16;

const RANK_SHIFT: u32 = 40;
const SLOT_SHIFT: u32 = 24;
const GENERATION_MASK: u64 = (1 << SLOT_SHIFT) - 1;
const NO_RANK: u64 = (1 << 24) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_of_its_parts() {
        let node = NodeId::new(Rank(663_551), 65_535, 0xff_ffff);
        assert_eq!((node.rank(), node.slot()), (Rank(663_551), 65_535));
        assert_eq!(node.generation(), 0xff_ffff);
        assert_eq!(NodeId::named_by(node.to_bits()), node);
        assert!(NodeId::named_by(node.nobody_yet()).is_none());
        assert!(NodeId::named_by(node.passed_on()).is_none());
        assert_ne!(node.nobody_yet(), node.passed_on());
    }

    #[test]
    fn an_abandoned_node_is_taken_when_it_is_free() {
        let mut slots = [NodeSlot::default(); 2];
        let mut pool = NodePool::new(Rank(3), &mut slots);
        let first = pool.try_take(|_| 0).unwrap();
        let second = pool.try_take(|_| 0).unwrap();
        assert!(pool.try_take(|_| 0).is_none());
        pool.release(second, true);
        assert!(pool.try_take(|_| second.state(NodeState::Left)).is_none());
        let third = pool.try_take(|_| second.state(NodeState::Free)).unwrap();
        assert_eq!((third.slot(), third.generation()), (second.slot(), 2));
        pool.release(first, false);
        assert_eq!(pool.try_take(|_| 0).unwrap().slot(), first.slot());
    }
}
