//! The operations in flight of a rank that no engine carries out: waits for signals,
//! messages, and operations that a ULT carries out.
//!
//! The tables take their memory at their first use, so a rank without such operations has
//! none. What operations own that are in flight at the end of the rank is leaked.

use crate::block_pool::{BLOCKS, BlockPool, POOL_BYTES};
use crate::completion_memory::CompletionMemory;
use std::sync::OnceLock;
use tsumugi_core::completion::Completions;

/// The tables of a rank, once they are used.
#[derive(Debug, Default)]
pub(crate) struct HostOperations(OnceLock<HostTables>);

/// A table of completions, and blocks for what is too large for a completion slot.
#[derive(Debug)]
pub(crate) struct HostTables {
    completions: CompletionMemory,
    blocks: BlockPool,
}

/// The bytes of the tables, once they are used.
pub const HOST_BYTES: usize = Completions::memory_size(BLOCKS) + POOL_BYTES;

impl HostOperations {
    /// The tables, if they are used.
    pub(crate) fn used(&self) -> Option<&HostTables> {
        self.0.get()
    }

    #[inline]
    pub(crate) fn tables(&self) -> &HostTables {
        self.0.get_or_init(|| HostTables {
            completions: CompletionMemory::new(BLOCKS),
            blocks: BlockPool::new(),
        })
    }
}

impl HostTables {
    #[inline]
    pub(crate) fn completions(&self) -> Completions<'_> {
        self.completions.view()
    }

    #[inline]
    pub(crate) fn blocks(&self) -> &BlockPool {
        &self.blocks
    }
}
