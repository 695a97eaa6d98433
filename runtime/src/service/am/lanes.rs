//! The lanes of a rank: their number, their memory, and other sizes of calls.

use std::ptr::NonNull;
use tsumugi_core::am::AmShape;
use tsumugi_core::sync::mapped::AtomicU64 as Word;

/// The lanes of a rank with `peers` neighbours. Lanes to other nodes have fewer
/// cells the more ranks the job has.
pub(super) fn shape(peers: u32, ranks: u32) -> AmShape {
    let later = (LATER_CELLS / ranks.max(1)).clamp(4, AmShape::CELLS);
    AmShape { peers, cells: AmShape::CELLS, later_cells: 1 << later.ilog2() }
}

/// The block as words.
///
/// # Safety
///
/// `start` has `bytes` initialised bytes, aligned to 8, that are only accessed as
/// words or plain bytes, for the rest of the job.
pub(super) unsafe fn words(start: NonNull<u8>, bytes: usize) -> &'static [Word] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start.as_ptr().cast(), bytes / 8) }
}

/// Calls of this rank that can be under way.
pub(super) const CALLS_MAX: usize = 1024;
pub(super) const STAGING_CELLS: usize = 64;
/// Cells of all lanes together to peers of other nodes, if a large job's ranks were
/// all such peers; each lane has at least four.
pub(super) const LATER_CELLS: u32 = 4096;
pub(super) const LANDINGS: usize = 4;
/// The longest payload.
pub(crate) const LANDING_BYTES: usize = 256 << 10;
/// Operations that are carried out between two turns with the lock.
pub(super) const BATCH: usize = 8;
