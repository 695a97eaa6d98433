//! Commands: descriptors of third-party copies. A rank asks another one to do a
//! copy, in 64 bytes, and receives a report of its end.
//!
//! The source of a copy carries it out. A caller that is neither source nor
//! destination writes a command in its own memory and leaves a note (a notification)
//! at the source:
//!
//! ```text
//!   caller C                     source S                  destination D
//!   command ─┐ write
//!            ├─── the command ───────►  a cell: C's, and others'
//!            │ ── note: C, index ────►  a free word of a few (one CAS)
//!            └─◄─ get 64 bytes ───────  only if the cell is not it
//!                                       ──────── put ────────►
//!   end word ◄── stamp, outcome ──────
//! ```
//!
//! So a copy takes one trip to the source, one put, and one trip back.
//!
//! Where devices keep the order of the operations that they are given, or the put is
//! short enough that the note behind it is in the same packet, the source does not
//! wait for the put. For the same reason the command goes with its note. Right
//! behind the put, the source leaves a relay note at the destination, which finds
//! the note when the bytes are there, and reports the end to the caller: one trip
//! less, as many as a put and a message.
//!
//! ```text
//!   caller C                     source S                  destination D
//!   command, note ────────────►            ── put, and a
//!                                             relay: C, index, stamp ──►
//!   end word ◄─────────────────────────────── half a stamp, relayed ──
//! ```
//!
//! If the destination has no free word for the note, or the device does not take
//! the put at once, the source reports the end as above. Of two ends the
//! caller takes the first; the second one then has the stamp of an earlier life. A
//! destination that dies may not have reported: the caller then ends the copy
//! itself. A destination that was lost to the caller before, and lives, would report
//! in vain: a caller that knows of a loss asks the source to report the end itself.
//!
//! The cell is a hint. Its content may be old, may be written in part, or may be of
//! another caller that has the same cell; then the source fetches the command from
//! the caller's memory.
//!
//! - Commands that wait for room wait in the caller's memory, and take none of the
//!   source's resources: a caller that dies or stalls blocks no other caller (A7).
//!   The source takes a note when it has a place to do the copy, and from then on it
//!   needs only memory of other ranks: no two ranks wait for each other.
//! - The command does not change between the note and the end, so that no get finds
//!   half of a command (A6). A command that was given up, and overwritten, has
//!   another stamp, and the check fails for a mixture of both. The check includes
//!   the caller's rank, so that the content of a cell does not pass for another
//!   caller's command.
//! - An end that comes late, for an earlier command in the same place, has another
//!   stamp.
//!
//! ```text
//!  word 0  check
//!       1  kind (8) | count (32) | index (16) | no relay (1)
//!       2  stamp (32) | source rank (32)
//!       3  destination, or the list
//!       4  source, or the list's two ranks
//!       5  bytes of a block
//!       6  stride of the destination, or the flag
//!       7  stride of the source, or what is added to it
//! ```
//!
//! A note contains the caller's rank plus one (32), the command's index (16) and
//! half of its stamp (16); the highest bit is set in a relay note.

use crate::address::GlobalAddr;
use crate::control::COMMAND_BYTES;
use crate::request::{Copy, GlobalRequest, ListCopy};
use tsumugi_core::mem::Rank;
use tsumugi_core::mutate;

/// One command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyCommand {
    pub(crate) request: GlobalRequest,
    /// The command's place at the caller, and the life of that place.
    pub(crate) index: u16,
    pub(crate) stamp: u32,
    /// The rank that is to carry it out.
    pub(crate) to: Rank,
    /// The source must report the end itself, and must not have the destination
    /// report it.
    pub(crate) no_relay: bool,
}

/// A notification: the rank and the place of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandNote {
    pub(crate) from: Rank,
    pub(crate) index: u16,
    pub(crate) stamp: u16,
    /// The command was carried out: the receiver must report this to the caller.
    pub(crate) is_relay: bool,
}

/// The end of a command, in the word that its caller has for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    /// A report by the source: the life of the place, and an error's code or 0.
    Told { stamp: u32, code: u32 },
    /// A report by the destination, without error; the destination has only half of
    /// the stamp.
    Relayed { stamp: u16 },
}

impl CommandEnd {
    pub(crate) fn encode(self) -> u64 {
        match self {
            Self::Told { stamp, code } => u64::from(stamp) << 32 | u64::from(code),
            Self::Relayed { stamp } => u64::from(stamp) << 32 | u64::from(RELAYED),
        }
    }

    pub(crate) fn decode(word: u64) -> Self {
        let (stamp, code) = ((word >> 32) as u32, word as u32);
        match code {
            RELAYED => Self::Relayed { stamp: stamp as u16 },
            code => Self::Told { stamp, code },
        }
    }

    /// The error's code, if this is the end of that life.
    pub(crate) fn of(self, life: u32) -> Option<u32> {
        match self {
            Self::Told { stamp, code } => (stamp == life).then_some(code),
            Self::Relayed { stamp } => (stamp == life as u16).then_some(0),
        }
    }
}

impl CopyCommand {
    /// The command as words; `None` for requests that other ranks cannot be asked to
    /// do. With strided blocks, the caller changes the flag when they have landed.
    pub(crate) fn encode(&self, from: Rank) -> Option<[u64; WORDS]> {
        let (kind, count, rest) = match self.request {
            GlobalRequest::Copy(copy) if copy.is_one_block() => {
                let Copy { dst, src, bytes, flag, add, .. } = copy;
                (BLOCK, 1, [dst.to_bits(), src.to_bits(), bytes, flag.to_bits(), add])
            }
            GlobalRequest::Copy(copy) => {
                let Copy { dst, src, bytes, count, dst_stride, src_stride, .. } = copy;
                let strides = [dst_stride as u64, src_stride as u64];
                (STRIDED, count, [dst.to_bits(), src.to_bits(), bytes, strides[0], strides[1]])
            }
            GlobalRequest::List(ListCopy { entries, count, from, to }) => {
                let ranks = u64::from(from.0) << 32 | u64::from(to.0);
                (LIST, count, [entries.to_bits(), ranks, 0, 0, 0])
            }
            GlobalRequest::Word(_) | GlobalRequest::Fence => return None,
        };
        let head = kind | u64::from(count) << 8 | u64::from(self.index) << 40;
        let head = head | u64::from(self.no_relay) << 56;
        let second = u64::from(self.stamp) | u64::from(self.to.0) << 32;
        let mut words = [0, head, second, rest[0], rest[1], rest[2], rest[3], rest[4]];
        words[0] = check(&words, from);
        Some(words)
    }

    /// The command in words that `from` wrote; `None` if they are no command of
    /// `from`.
    pub(crate) fn decode(words: &[u64; WORDS], from: Rank) -> Option<Self> {
        if mutate!("gas_command_unchecked": words[0] != check(words, from) => false) {
            return None;
        }
        let addr = |index: usize| GlobalAddr::from_bits(words[index]);
        let count = (words[1] >> 8) as u32;
        let copy = Copy::new(addr(3), addr(4), words[5]);
        let request = match words[1] & 0xff {
            BLOCK => GlobalRequest::Copy(copy.then_add(addr(6), words[7])),
            STRIDED => GlobalRequest::Copy(copy.strided(count, words[6] as i64, words[7] as i64)),
            LIST => GlobalRequest::List(ListCopy {
                entries: addr(3),
                count,
                from: Rank((words[4] >> 32) as u32),
                to: Rank(words[4] as u32),
            }),
            _ => return None,
        };
        let (index, stamp) = ((words[1] >> 40) as u16, words[2] as u32);
        let (to, no_relay) = (Rank((words[2] >> 32) as u32), words[1] >> 56 & 1 != 0);
        Some(Self { request, index, stamp, to, no_relay })
    }
}

impl CommandNote {
    pub(crate) fn encode(self) -> u64 {
        let from = u64::from(self.from.0 + 1) | u64::from(self.is_relay) << 31;
        from << 32 | u64::from(self.index) << 16 | u64::from(self.stamp)
    }

    pub(crate) fn decode(word: u64) -> Option<Self> {
        let from = (word >> 32) as u32;
        let (is_relay, from) = (from >> 31 != 0, from & u32::MAX >> 1);
        let from = Rank(from.checked_sub(1)?);
        Some(Self { from, index: (word >> 16) as u16, stamp: word as u16, is_relay })
    }
}

/// Multiplies, adds and rotates over the words; no protection against an adversary.
fn check(words: &[u64; WORDS], from: Rank) -> u64 {
    let seed = (u64::from(from.0) + 1).wrapping_mul(ODD);
    let mix = |sum: u64, word: &u64| (sum ^ word).wrapping_mul(ODD).rotate_left(29);
    let mixed = words[1..].iter().fold(seed, mix);
    // Never 0, which is the content of fresh memory.
    (mixed ^ mixed >> 32) | 1 << 63
}

pub(crate) const WORDS: usize = COMMAND_BYTES / 8;
const BLOCK: u64 = 1;
const STRIDED: u64 = 2;
const LIST: u64 = 3;
/// A code that no error has.
const RELAYED: u32 = u32::MAX;
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(bits: u64) -> GlobalAddr {
        GlobalAddr::from_bits(bits)
    }

    #[test]
    fn a_command_is_64_bytes_and_is_decoded_as_it_was_encoded() {
        let block = Copy::new(addr(11), addr(12), 13);
        for request in [
            GlobalRequest::Copy(block.then_add(addr(14), 15)),
            GlobalRequest::Copy(block.strided(9, -64, 128)),
            GlobalRequest::List(ListCopy {
                entries: addr(1),
                count: 7,
                from: Rank(5),
                to: Rank(6),
            }),
        ] {
            let to = Rank(1 << 20);
            let command = CopyCommand { request, index: 9, stamp: u32::MAX, to, no_relay: true };
            let words = command.encode(Rank(4)).unwrap();
            assert_eq!(CopyCommand::decode(&words, Rank(4)), Some(command));
            assert_eq!(CopyCommand::decode(&words, Rank(5)), None, "a command of another caller");
        }
        let (request, to) = (GlobalRequest::Fence, Rank(0));
        let fence = CopyCommand { request, index: 0, stamp: 0, to, no_relay: false };
        assert_eq!(fence.encode(Rank(0)), None);
    }

    /// A mixture of two commands, word by word, is not decoded as a command.
    #[test]
    fn a_torn_command_is_not_decoded() {
        let command = |stamp| {
            let copy = Copy::new(addr(u64::from(stamp) * 64), addr(7 + u64::from(stamp)), 8);
            let (request, to) = (copy.into(), Rank(3));
            CopyCommand { request, index: 1, stamp, to, no_relay: false }.encode(Rank(2)).unwrap()
        };
        let (old, new) = (command(8), command(9));
        for mixture in 1..(1u32 << WORDS) - 1 {
            let words: [u64; WORDS] = core::array::from_fn(|index| {
                if mixture >> index & 1 == 0 { old[index] } else { new[index] }
            });
            if words != old && words != new {
                assert_eq!(CopyCommand::decode(&words, Rank(2)), None, "mixture {mixture:#b}");
            }
        }
        assert_eq!(CopyCommand::decode(&[0; WORDS], Rank(0)), None);
    }

    #[test]
    fn a_note_is_never_zero() {
        for is_relay in [false, true] {
            let note = CommandNote { from: Rank(0), index: 0, stamp: 0, is_relay };
            assert_ne!(note.encode(), 0);
            assert_eq!(CommandNote::decode(note.encode()), Some(note));
        }
        assert_eq!(CommandNote::decode(0), None);
    }
}
