//! The registered memory of a machine, and when its doorbells are rung.

use crate::mem::LocalAddr;
use crate::sync::mapped::AtomicU64;

/// The registered memory of a rank, in 8-byte words.
#[derive(Clone, Copy, Debug)]
pub struct AmMemory<'m> {
    /// [`AmShape::memory_size`](super::AmShape::memory_size) bytes, all zero, which peers
    /// may read and write.
    pub lanes: &'m [AtomicU64],
    /// One cell of [`CELL_BYTES`](super::CELL_BYTES) for each
    /// [`StagingCell`](super::StagingCell), from which puts are made.
    pub staging: &'m [AtomicU64],
    /// The address of `staging` as the local end of a put.
    pub staging_at: LocalAddr,
    /// The address of the landing buffers, which follow each other, as the local
    /// end of a get.
    pub landing_at: LocalAddr,
    /// Bytes of each landing buffer: the longest payload, the same on all ranks.
    pub landing_bytes: u64,
}

/// When the bell (doorbell) for a cell is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorbellOrder {
    /// Together with the cell: where a put and a later atomic arrive in order, or
    /// nearly always do.
    WithCell,
    /// When the put has completed: where the completion means that the put has
    /// landed.
    AfterCell,
}
