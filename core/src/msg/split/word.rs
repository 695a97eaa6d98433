//! The split word: one message that both of its sides copy, the receiver from the
//! front, the sender from the back, until they meet.
//!
//! ```text
//!   bytes   ├─ receiver ─►│  unclaimed   │◄─ sender ─┤
//!   word    id (32) | open (1) | sender's, in units (15) | receiver's (15)
//! ```
//!
//! The bytes that a program has written last, most often the end, are still in
//! the caches of the sender's core where the message is longer than they are. The
//! bytes that it reads first, the beginning, come into the caches of the
//! receiver's core. Between two cores with 2 MiB each, 2 MiB took 197 us in these
//! directions and 222 us from the other ends.
//!
//! Each side claims a part before it copies it: first three eighths, which so
//! stay in the caches of the same core from message to message, then a quarter of
//! what is left, so that the two sides end at about the same time however fast
//! each is. A side that never comes costs the other nothing. There is one word
//! for each lane, for one message at a time; it is in the lane's memory.
//!
//! | | opened by | closed by |
//! |---|---|---|
//! | a receive that the sender knows | the sender | the receiver if it claimed any part, when it has copied it; else the sender |
//! | a message that lies with its sender | the receiver | the same |
//!
//! The word decides which side copies which bytes. It does not show that anything
//! was copied: packets report that. Progress: wait-free except for
//! [`claim`](Split::claim), which is lock-free: it fails only where the other
//! side has claimed something.

use crate::mutate;
use crate::sync::{AtomicU64, Ordering};
use core::ops::Range;

/// Which side copies which part of a message. Zero at first.
#[derive(Debug)]
#[repr(transparent)]
pub struct Split(AtomicU64);

/// The side of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitSide {
    /// Copies from the back.
    Sender,
    /// Copies from the front.
    Receiver,
}

/// Result of an attempt to claim a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// This side must copy these bytes.
    Part(Range<u64>),
    /// Nothing is left. True if the other side has claimed anything.
    Over(bool),
}

impl Split {
    /// Makes a word without a message.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Makes a word without a message.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Opens the word for the receive `id`. Returns whether the word was free; if
    /// not, another message has it. Wait-free.
    pub fn open(&self, id: u32) -> bool {
        // Relaxed, here and below: the word orders nothing. A side that learns of
        // the message by a packet sees the word open, and packets also report
        // what is copied.
        let word = u64::from(id) << ID_SHIFT | OPEN;
        self.0.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Claims the next part of the `len` bytes of the receive `id`, of `least`
    /// bytes or more, unless it is the last part. After `Over` the sender no
    /// longer uses the word; the receiver must [close](Self::close) it if the
    /// receiver has claimed anything. Lock-free.
    pub fn claim(&self, id: u32, side: SplitSide, len: u64, least: u64) -> Claimed {
        let unit = unit(len, least);
        let units = len.div_ceil(unit);
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let is_its = mutate!("msg_split_any_id": word >> ID_SHIFT == u64::from(id) => true);
            if !is_its || word & OPEN == 0 {
                // The sender has closed the word if the receiver took no part;
                // the receiver has closed it if it took some.
                return Claimed::Over(true);
            }
            let [sent, fetched] = [word >> COUNT_BITS & COUNT_MAX, word & COUNT_MAX];
            let left = units - (sent + fetched).min(units);
            let is_closed = left == 0 && side == SplitSide::Sender && fetched == 0;
            if left == 0 && !is_closed {
                return Claimed::Over([fetched, sent][side as usize] > 0);
            }
            let own = [sent, fetched][side as usize];
            let part = match (units * 3 / 8, left / 4) {
                (first, _) if own == 0 && left >= units - first => first,
                (_, next) => next,
            };
            let part = part.max(1);
            let next = match side {
                _ if is_closed => 0,
                SplitSide::Sender => word + (part << COUNT_BITS),
                SplitSide::Receiver => word + part,
            };
            let claimed = mutate!("msg_split_unclaimed":
                self.0.compare_exchange(word, next, Ordering::Relaxed, Ordering::Relaxed)
                => {
                    self.0.store(next, Ordering::Relaxed);
                    Ok(word)
                }
            );
            match claimed {
                Ok(_) if is_closed => return Claimed::Over(false),
                Ok(_) => {
                    let from = match side {
                        SplitSide::Sender => units - sent - part,
                        SplitSide::Receiver => fetched,
                    };
                    return Claimed::Part(from * unit..len.min((from + part) * unit));
                }
                Err(now) => word = now,
            }
        }
    }

    /// Copies, by `copy`, all parts that this side can claim, and
    /// [closes](Self::close) the word where this side must. Returns whether this
    /// side has claimed anything, and whether the other side has: the argument of
    /// [`split_done`](super::super::MessageMachine::split_done). Lock-free, except for
    /// the copies.
    pub fn share(
        &self,
        id: u32,
        side: SplitSide,
        len: u64,
        least: u64,
        mut copy: impl FnMut(Range<u64>),
    ) -> [bool; 2] {
        let mut has_claimed = false;
        loop {
            match self.claim(id, side, len, least) {
                Claimed::Part(part) => copy(part),
                Claimed::Over(other) => {
                    if side == SplitSide::Receiver && has_claimed {
                        self.close();
                    }
                    return [has_claimed, other];
                }
            }
            has_claimed = true;
        }
    }

    /// Closes the word: the receiver has copied all that it has claimed.
    /// Wait-free.
    pub fn close(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Default for Split {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the bytes of a unit of the counts: `least` times a power of two, so
/// that the counts can hold all units.
fn unit(len: u64, least: u64) -> u64 {
    let mut unit = least.max(1);
    while len.div_ceil(unit) > COUNT_MAX {
        unit *= 2;
    }
    unit
}

const COUNT_BITS: u32 = 15;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const OPEN: u64 = 1 << (2 * COUNT_BITS);
const ID_SHIFT: u32 = 32;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Has the sides claim in the order of `whose` until nothing is left: the parts of each
    /// side, and what each side learned of the other at the end.
    fn all(
        split: &Split,
        len: u64,
        least: u64,
        mut whose: impl FnMut() -> SplitSide,
    ) -> [(Vec<Range<u64>>, Option<bool>); 2] {
        let mut sides = [(Vec::new(), None), (Vec::new(), None)];
        while sides.iter().any(|(_, over)| over.is_none()) {
            let side = whose();
            let (parts, over) = &mut sides[side as usize];
            match split.claim(7, side, len, least) {
                _ if over.is_some() => {}
                Claimed::Part(part) => parts.push(part),
                Claimed::Over(other) => *over = Some(other),
            }
        }
        sides
    }

    fn check(len: u64, least: u64, whose: impl FnMut() -> SplitSide) -> [bool; 2] {
        let split = Split::new();
        assert!(split.open(7) && !split.open(8));
        let [sender, receiver] = all(&split, len, least, whose);
        let mut end = 0;
        for part in receiver.0.iter().chain(sender.0.iter().rev()) {
            assert_eq!(part.start, end, "{receiver:?} {sender:?}");
            end = part.end;
        }
        assert_eq!(end, len);
        let took = [!sender.0.is_empty(), !receiver.0.is_empty()];
        assert_eq!(sender.1, Some(took[1]));
        if took[1] {
            assert_eq!(receiver.1, Some(took[0]));
            assert!(!split.open(8), "the receiver has not closed the word");
            split.close();
        }
        assert!(split.open(8));
        took
    }

    #[test]
    fn every_byte_is_claimed_once() {
        for len in [1, 4095, 4096, 4097, 100_000, 1 << 20, (1 << 30) + 5] {
            let mut turn = 0u32;
            check(len, 4096, || {
                turn += 1;
                if turn.is_multiple_of(3) { SplitSide::Sender } else { SplitSide::Receiver }
            });
        }
    }

    #[test]
    fn either_side_can_copy_every_part() {
        let mut turns = 0;
        let mut first = |side: SplitSide, other: SplitSide| {
            turns = 0;
            check(1 << 20, 4096, || {
                turns += 1;
                if turns < 100 { side } else { other }
            })
        };
        assert_eq!(first(SplitSide::Sender, SplitSide::Receiver), [true, false]);
        assert_eq!(first(SplitSide::Receiver, SplitSide::Sender), [false, true]);
    }

    #[test]
    fn a_late_side_claims_nothing_of_the_next_message() {
        let split = Split::new();
        assert!(split.open(7));
        while split.claim(7, SplitSide::Sender, 1 << 16, 4096) != Claimed::Over(false) {}
        assert!(split.open(9));
        assert_eq!(split.claim(7, SplitSide::Receiver, 1 << 16, 4096), Claimed::Over(true));
        assert_eq!(split.claim(9, SplitSide::Receiver, 4096, 4096), Claimed::Part(0..4096));
    }

    /// Three eighths first, then a quarter of the rest, down to a unit; the sender from the
    /// back.
    #[test]
    fn parts_become_smaller() {
        for side in [SplitSide::Sender, SplitSide::Receiver] {
            let split = Split::new();
            assert!(split.open(7));
            let mut sizes = Vec::new();
            let mut end = 0;
            while let Claimed::Part(part) = split.claim(7, side, 32 * 64, 64) {
                let (near, far) = match side {
                    SplitSide::Sender => (32 * 64 - part.end, 32 * 64 - part.start),
                    SplitSide::Receiver => (part.start, part.end),
                };
                assert_eq!(near, end);
                end = far;
                sizes.push((part.end - part.start) / 64);
            }
            assert_eq!(sizes, [12, 5, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1]);
        }
        // The first part of the other side is as long, if that much is left.
        let split = Split::new();
        assert!(split.open(7));
        let claim = |side: SplitSide| split.claim(7, side, 32 * 64, 64);
        assert_eq!(claim(SplitSide::Sender), Claimed::Part(20 * 64..32 * 64));
        assert_eq!(claim(SplitSide::Receiver), Claimed::Part(0..12 * 64));
        assert_eq!(claim(SplitSide::Sender), Claimed::Part(18 * 64..20 * 64));
        let split = Split::new();
        assert!(split.open(7));
        let claim = |side: SplitSide| split.claim(7, side, 32 * 64, 64);
        for part in [20..32, 15..20, 12..15] {
            assert_eq!(claim(SplitSide::Sender), Claimed::Part(part.start * 64..part.end * 64));
        }
        assert_eq!(
            claim(SplitSide::Receiver),
            Claimed::Part(0..3 * 64),
            "a quarter: 12 are left of 32"
        );
    }

    /// Lengths are counted in units of `least`; units are longer where the counter is too small.
    #[test]
    fn a_part_has_a_minimum_length() {
        let first = |len: u64, least: u64| {
            let split = Split::new();
            assert!(split.open(7));
            split.claim(7, SplitSide::Receiver, len, least)
        };
        assert_eq!(first(16, 0), Claimed::Part(0..6));
        assert_eq!(first(100, 64), Claimed::Part(0..64));
        assert_eq!(first(1, 64), Claimed::Part(0..1));
        let Claimed::Part(part) = first(COUNT_MAX * 128, 64) else { panic!("the part is free") };
        assert_eq!(part.end % 128, 0);
    }

    #[test]
    fn each_side_learns_whether_the_other_has_copied() {
        let both = |first: SplitSide| {
            let split = Split::new();
            assert!(split.open(7));
            let mut copied = [0, 0];
            let other =
                if first == SplitSide::Sender { SplitSide::Receiver } else { SplitSide::Sender };
            let mut share = |side: SplitSide| {
                let parts = &mut copied[side as usize];
                split.share(7, side, 5_000, 64, |part| *parts += part.end - part.start)
            };
            let said = [share(first), share(other)];
            assert!(split.open(8), "the word was closed");
            (said, copied)
        };
        assert_eq!(both(SplitSide::Sender), ([[true, false], [false, true]], [5_000, 0]));
        assert_eq!(both(SplitSide::Receiver), ([[true, false], [false, true]], [0, 5_000]));
        // The sender takes one part, the receiver all others, and closes.
        let split = Split::new();
        assert!(split.open(7));
        let sent = split.claim(7, SplitSide::Sender, 5_000, 64);
        let mut fetched = 0;
        let said =
            split.share(7, SplitSide::Receiver, 5_000, 64, |part| fetched += part.end - part.start);
        let Claimed::Part(sent) = sent else { panic!("the part is free") };
        assert_eq!((said, fetched), ([true, true], sent.start));
        assert_eq!(split.claim(7, SplitSide::Sender, 5_000, 64), Claimed::Over(true));
        assert!(split.open(8));
    }
}
