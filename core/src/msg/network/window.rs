//! The window of numbered parcels that can be on the way. Numbers wrap.

/// Numbered parcels of one rank to another that can be on the way.
pub(super) const WINDOW: u32 = 32;

/// Returns whether a position comes after another.
pub(super) const fn is_after(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}
