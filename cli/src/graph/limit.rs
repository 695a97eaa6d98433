//! The memory limit for a graph.
//!
//! A file's size line may claim any size. The memory that it would need is computed
//! before any is allocated, and compared with what the machine has left.

use crate::memory;

/// The memory limit for a graph.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimit {
    bytes_max: u64,
}

impl MemoryLimit {
    /// A limit of `bytes_max` bytes.
    pub const fn bytes(bytes_max: u64) -> Self {
        Self { bytes_max }
    }

    /// A limit of half of the memory that is left on this machine.
    pub fn of_this_machine() -> Self {
        Self::bytes(memory::left_bytes().unwrap_or(FALLBACK_BYTES) / 2)
    }

    /// Checks that a graph of this size fits. The error holds the bytes that it
    /// needs and the bytes that are allowed.
    pub fn admit(self, vertices: u64, entries: u64) -> Result<(), (u64, u64)> {
        let needed = vertices
            .saturating_mul(VERTEX_BYTES)
            .saturating_add(entries.saturating_mul(ENTRY_BYTES));
        if needed <= self.bytes_max { Ok(()) } else { Err((needed, self.bytes_max)) }
    }
}

/// The row's start, a cursor for filling the row, the levels of two searches, and
/// the queue of the serial search.
const VERTEX_BYTES: u64 = 8 + 8 + 4 + 4 + 4;
/// The pair as read, and a neighbour in each of two rows.
const ENTRY_BYTES: u64 = 8 + 4 + 4;
/// The limit if the machine does not report its memory.
const FALLBACK_BYTES: u64 = 2 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_does_not_overflow() {
        assert_eq!(MemoryLimit::bytes(1 << 40).admit(u64::MAX, u64::MAX), Err((u64::MAX, 1 << 40)));
        assert_eq!(MemoryLimit::bytes(100).admit(2, 2), Ok(()));
    }

    #[test]
    fn the_machine_has_room_for_the_packages() {
        assert_eq!(MemoryLimit::of_this_machine().admit(63_666, 277_179), Ok(()));
    }
}
