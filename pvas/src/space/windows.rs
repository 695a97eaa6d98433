//! The windows of peers' partitions that this process has populated.

use crate::config::{Policy, Populate};
use crate::populate::Tally;
use std::sync::OnceLock;
use tsumugi_core::sync::AtomicU64;

/// The windows of its peers' partitions that a process has populated.
#[derive(Debug, Default)]
pub(super) struct PopulatedWindows {
    /// If the policy populates peers' pages: for each partition, a bit for each
    /// window, which is set when the window has been populated.
    pub(super) windows: Vec<OnceLock<Box<[AtomicU64]>>>,
    pub(super) tally: Tally,
}

impl PopulatedWindows {
    pub(super) fn of(size: u32, policy: &Policy) -> Self {
        let size = if policy.populate == Populate::Peers { size } else { 0 };
        Self { windows: (0..size).map(|_| OnceLock::new()).collect(), ..Self::default() }
    }
}

/// The bytes of the bitmap of a peer's windows, which is kept from its first use
/// on.
pub const fn windows_bytes(partition_bytes: usize) -> usize {
    partition_bytes.div_ceil(WINDOW_BYTES).div_ceil(64) * 8
}

/// The bytes that one call for a peer's partition populates: 64 small pages.
pub(super) const WINDOW_BYTES: usize = 256 << 10;
