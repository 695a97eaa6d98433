//! The word of a lock in which readers count themselves.
//!
//! ```text
//!  reader preference (Mellor-Crummey and Scott)
//!    bit 0  a writer is interested        bit 2 ..   readers, also those
//!    bit 1  a writer is inside                       that wait
//!
//!  neutral, writer preference (phases)
//!    bit 0  a writer is there: readers that come now wait for it
//!    bit 1  it waits for the readers before it: the last is to wake it
//!    bit 2  the phase: which of two lists new readers wait in
//!    bit 3 .. 33   readers, also those that wait
//!    bit 33 .. 64  how many readers have left; while bit 1 is set: -(readers that
//!                  are still to leave), so that the last of them makes it 0
//! ```

use super::kind::LockKind;

/// Reader preference: a writer is interested.
pub(super) const INTERESTED: u64 = 1;
/// Reader preference: a writer is inside.
pub(super) const INSIDE: u64 = 2;
/// Phases: a writer has come.
pub(super) const THERE: u64 = 1;
/// Phases: the writer waits for readers.
pub(super) const DRAINING: u64 = 2;
/// Phases: the current phase.
pub(super) const PHASE: u64 = 4;

/// The value that a reader adds when it comes.
pub(super) const fn arrive(kind: LockKind) -> u64 {
    if has_phases(kind) { PHASE_READER } else { READER }
}

/// The value that a reader adds when it leaves.
pub(super) const fn depart(kind: LockKind) -> u64 {
    if has_phases(kind) { GONE.wrapping_sub(PHASE_READER) } else { READER.wrapping_neg() }
}

/// Whether a reader that found `count` must wait.
pub(super) const fn blocks(kind: LockKind, count: u64) -> bool {
    count & if has_phases(kind) { THERE } else { INSIDE } != 0
}

/// Whether a reader that found `blocked` when it came has been let in when the word
/// is `now`.
pub(super) const fn let_in(kind: LockKind, blocked: u64, now: u64) -> bool {
    !blocks(kind, now) || has_phases(kind) && (blocked ^ now) & PHASE != 0
}

/// Whether readers are counted.
pub(super) const fn has_readers(kind: LockKind, count: u64) -> bool {
    if has_phases(kind) { readers(count) > 0 } else { count >= READER }
}

/// Whether a reader that found `count` when it left was the last reader that a
/// writer waits for.
pub(super) const fn was_last(kind: LockKind, count: u64) -> bool {
    if has_phases(kind) {
        count & DRAINING != 0 && count >> GONE_SHIFT == GONE_MASK
    } else {
        count == READER + INTERESTED
    }
}

/// Phases: the number of readers.
pub(super) const fn readers(count: u64) -> u64 {
    count >> READER_SHIFT & READER_MASK
}

/// Phases: the value that a writer that found `count` adds, so that the last reader
/// finds out that it is the last.
pub(super) const fn drain(count: u64) -> u64 {
    DRAINING.wrapping_sub((readers(count) + (count >> GONE_SHIFT)) << GONE_SHIFT)
}

/// Whether all readers had left when a writer that first found `before` added
/// [`drain`] of it and found `now`.
pub(super) const fn is_drained(before: u64, now: u64) -> bool {
    (now >> GONE_SHIFT) == (readers(before) + (before >> GONE_SHIFT)) & GONE_MASK
}

/// Phases: the value that a writer adds when it leaves and the word is `count`.
pub(super) const fn leave(count: u64) -> u64 {
    let phase = if count & PHASE == 0 { PHASE } else { PHASE.wrapping_neg() };
    phase.wrapping_sub(count & (THERE | DRAINING))
}

pub(super) const fn has_phases(kind: LockKind) -> bool {
    matches!(kind, LockKind::Neutral | LockKind::Writers)
}

const READER: u64 = 4;
const READER_SHIFT: u32 = 3;
const PHASE_READER: u64 = 1 << READER_SHIFT;
const GONE_SHIFT: u32 = 33;
const GONE: u64 = 1 << GONE_SHIFT;
const READER_MASK: u64 = (1 << (GONE_SHIFT - READER_SHIFT)) - 1;
const GONE_MASK: u64 = u64::MAX >> GONE_SHIFT;

#[cfg(test)]
mod tests {
    use super::*;

    /// The last reader is recognized at any count of readers that have left.
    #[test]
    fn the_last_reader_of_a_phase_is_known() {
        for gone in [0, 1, GONE_MASK - 1, GONE_MASK] {
            let mut count = gone << GONE_SHIFT;
            for _ in 0..3 {
                count = count.wrapping_add(arrive(LockKind::Neutral));
            }
            let before = count;
            count += THERE;
            // One reader leaves before the writer asks to be woken, and one comes.
            count = count.wrapping_add(depart(LockKind::Neutral));
            count = count.wrapping_add(arrive(LockKind::Neutral));
            assert!(!is_drained(before, count));
            count = count.wrapping_add(drain(before));
            assert!(!was_last(LockKind::Neutral, count));
            count = count.wrapping_add(depart(LockKind::Neutral));
            assert!(was_last(LockKind::Neutral, count));
            count = count.wrapping_add(depart(LockKind::Neutral));
            assert_eq!((readers(count), count >> GONE_SHIFT), (1, 0));
            count = count.wrapping_add(leave(count));
            assert_eq!(count & (THERE | DRAINING | PHASE), PHASE);
        }
    }
}
