//! How much memory a graph may take.
//!
//! A size line is a claim. What it would cost is worked out before anything
//! is allocated, and compared with what the machine has left.

use crate::memory;

/// How much memory a graph may take.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    bytes_max: u64,
}

impl Limit {
    /// `bytes_max` bytes.
    pub const fn bytes(bytes_max: u64) -> Self {
        Self { bytes_max }
    }

    /// Half of what is left on this machine.
    pub fn of_this_machine() -> Self {
        Self::bytes(memory::left_bytes().unwrap_or(FALLBACK_BYTES) / 2)
    }

    /// Whether a graph of this size fits; if not, (needed, allowed) bytes.
    pub fn admit(self, vertices: u64, entries: u64) -> Result<(), (u64, u64)> {
        let needed = vertices
            .saturating_mul(VERTEX_BYTES)
            .saturating_add(entries.saturating_mul(ENTRY_BYTES));
        if needed <= self.bytes_max { Ok(()) } else { Err((needed, self.bytes_max)) }
    }
}

/// Row starts, a cursor while they are filled, levels of two searches, the
/// queue of the serial one.
const VERTEX_BYTES: u64 = 8 + 8 + 4 + 4 + 4;
/// The pair as read, and a neighbour in each of two rows.
const ENTRY_BYTES: u64 = 8 + 4 + 4;
/// Where the machine does not say.
const FALLBACK_BYTES: u64 = 2 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_does_not_overflow() {
        assert_eq!(Limit::bytes(1 << 40).admit(u64::MAX, u64::MAX), Err((u64::MAX, 1 << 40)));
        assert_eq!(Limit::bytes(100).admit(2, 2), Ok(()));
    }

    #[test]
    fn the_machine_has_room_for_the_packages() {
        assert_eq!(Limit::of_this_machine().admit(63_666, 277_179), Ok(()));
    }
}
