//! Setup of a machine: its memory, its tables, and the errors in them.

use super::cell::CELL_BYTES;
use super::lanes::{self, AmLanes, AmShape, BLOCK_PEERS, LaneBlock};
use super::machine::AmMachine;
use super::memory::{AmMemory, DoorbellOrder};
use super::op_tag::INDEX_MASK;
use super::tables::{AmPeer, AmTables, LandingBuffer, PendingCall, StagingCell};
use crate::mem::PeerIndex;
use crate::sync::mapped::AtomicU64;
use core::fmt;

/// Why a machine could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupError {
    /// The shape is not valid: this rank is not one of the peers, there are more
    /// peers than 2^22, or a number of cells is not a power of two up to
    /// [`CELLS_MAX`](super::CELLS_MAX).
    Shape(AmShape),
    /// The lanes or the staging cells are shorter than they must be.
    Memory {
        /// Bytes that are there.
        bytes: usize,
        /// Bytes that are needed.
        needed: usize,
    },
    /// A table has a wrong length: not one entry for each peer (or, in
    /// [`AmMachine::grow`], each block), no call, fewer than two staging cells, of which
    /// one may be reserved for a reply, or more entries than a tag can name.
    Tables,
}

impl<'m> AmMachine<'m> {
    /// Makes a machine that is connected to no peer yet, not even to itself.
    ///
    /// # Errors
    ///
    /// - [`SetupError::Shape`]: the shape is not valid, or `rank` is not one of its peers.
    /// - [`SetupError::Memory`]: the lanes are shorter than [`AmShape::memory_size`], or the
    ///   staging cells shorter than one cell for each entry of their table.
    /// - [`SetupError::Tables`]: there is not one entry for each peer, no entry for a call,
    ///   fewer than two for staging cells, or a table is longer than a tag can name.
    pub fn new(
        own: PeerIndex,
        shape: AmShape,
        bell: DoorbellOrder,
        memory: AmMemory<'m>,
        tables: AmTables<'m>,
    ) -> Result<Self, SetupError> {
        if !shape.is_valid() || own.0 >= shape.peers {
            return Err(SetupError::Shape(shape));
        }
        let staging_bytes = tables.slots.len() * CELL_BYTES;
        for (words, needed) in
            [(memory.lanes, shape.memory_size()), (memory.staging, staging_bytes)]
        {
            let bytes = size_of_val(words);
            if bytes < needed {
                return Err(SetupError::Memory { bytes, needed });
            }
        }
        let too_many = [tables.calls.len(), tables.slots.len(), tables.landings.len()];
        if tables.peers.len() != shape.peers as usize
            || tables.calls.is_empty()
            || tables.slots.len() < 2
            || too_many.iter().any(|len| *len > INDEX_MASK)
        {
            return Err(SetupError::Tables);
        }
        tables.peers.fill(AmPeer::EMPTY);
        Ok(Self {
            own,
            shape,
            bell,
            lanes: AmLanes::new(memory.lanes, shape),
            blocks: &mut [],
            active: AmPeer::queue(),
            later: AmPeer::queue(),
            notices: AmPeer::notice_queue(),
            free_calls: PendingCall::all(tables.calls),
            ended: PendingCall::queue(),
            free_slots: StagingCell::all(tables.slots),
            outgoing: StagingCell::queue(),
            free_landings: LandingBuffer::all(tables.landings),
            fetches: LandingBuffer::queue(),
            landed: LandingBuffer::queue(),
            memory,
            tables,
            promised: 0,
            notices_open: 0,
            is_landing: false,
            has_room: false,
            dropped: 0,
            earliest: None,
        })
    }
}

impl<'m> AmMachine<'m> {
    /// Returns the number of peers; [`grow`](Self::grow) adds more.
    pub fn peers(&self) -> u32 {
        self.tables.peers.len() as u32
    }

    /// Adds [`BLOCK_PEERS`] peers, which get the next numbers and are not
    /// connected. Their lanes are in `lanes`, of [`AmShape::block`]. The new tables
    /// must have one entry for each peer, and one for each block; the entries of
    /// the old tables are copied.
    ///
    /// # Errors
    ///
    /// Nothing has happened then.
    ///
    /// - [`SetupError::Memory`]: `lanes` is shorter than the memory of a block.
    /// - [`SetupError::Tables`]: `peers` does not have [`BLOCK_PEERS`] entries more than
    ///   before, or `blocks` not one more.
    pub fn grow(
        &mut self,
        lanes: &'m [AtomicU64],
        peers: &'m mut [AmPeer],
        blocks: &'m mut [LaneBlock<'m>],
    ) -> Result<(), SetupError> {
        let shape = self.shape.block();
        let (bytes, needed) = (size_of_val(lanes), shape.memory_size());
        if bytes < needed {
            return Err(SetupError::Memory { bytes, needed });
        }
        let (had_peers, had_blocks) = (self.tables.peers.len(), self.blocks.len());
        if peers.len() != had_peers + BLOCK_PEERS as usize || blocks.len() != had_blocks + 1 {
            return Err(SetupError::Tables);
        }
        peers.fill(AmPeer::EMPTY);
        peers[..had_peers].copy_from_slice(self.tables.peers);
        blocks[..had_blocks].copy_from_slice(self.blocks);
        blocks[had_blocks] = LaneBlock(Some(AmLanes::new(lanes, shape)));
        (self.tables.peers, self.blocks) = (peers, blocks);
        Ok(())
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(shape) => write!(
                f,
                "a shape of {} peers with {} and {} cells a lane is not valid: this rank must be \
                 one of the peers, and each number of cells a power of two up to {}",
                shape.peers,
                shape.cells,
                shape.later_cells,
                lanes::CELLS_MAX
            ),
            Self::Memory { bytes, needed } => {
                write!(f, "active messages need {needed} bytes of memory, not {bytes}")
            }
            Self::Tables => f.write_str(
                "a table for active messages has a wrong length: one entry for each peer, and at \
                 least 1 call and 2 staging cells are needed",
            ),
        }
    }
}

impl core::error::Error for SetupError {}
