//! What a device's atomics lack, by the one that they all have.
//!
//! A device adds to words of 8 bytes, compares and swaps them, and no more.
//! On words whose agent it is, all else is a loop round its compare-and-swap:
//! of the word of 8 bytes that the narrower one is a half of.
//!
//! Progress: lock-free, as any such loop; each turn is a blocking operation.

use crate::AddrError;
use tsumugi_core::mem::{RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};

/// What becomes of such an operation next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// This is carried out, and what it finds is [taken](BySwap::take).
    Next(Op),
    /// It has ended: what was there.
    Ended(u64),
}

/// An operation that the device has not, as a loop of those that it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BySwap {
    op: Op,
    /// Where its word is in the word of 8 bytes.
    shift: u64,
    mask: u64,
    whole: RemoteAddr,
    /// What was found, and is to be swapped.
    old: Option<u64>,
}

impl BySwap {
    /// The loop, and what it begins with; `None`: it is no atomic.
    pub(crate) fn begin(op: &Op) -> Option<(Self, Op)> {
        let (shift, mask) = match op.width()? {
            Width::W8 => (0, u64::MAX),
            Width::W4 => (8 * (op.remote.offset & 4), u64::from(u32::MAX)),
            _ => return None,
        };
        changed(op, 0)?;
        let whole = RemoteAddr { offset: op.remote.offset & !7, ..op.remote };
        let first = Op::get_word(whole, Width::W8).tagged(op.tag);
        Some((Self { op: *op, shift, mask, whole, old: None }, first))
    }

    /// What the last one has found.
    pub(crate) fn take(&mut self, found: u64) -> Turn {
        let was = found >> self.shift & self.mask;
        if self.old == Some(found) {
            return Turn::Ended(was);
        }
        self.old = Some(found);
        let new = changed(&self.op, was).unwrap_or(was);
        let new = found & !(self.mask << self.shift) | (new & self.mask) << self.shift;
        let swap = Op::compare_swap(self.whole, found, new).tagged(self.op.tag);
        Turn::Next(if self.op.notify { swap.notifying() } else { swap })
    }
}

/// Carries out what the device has not; `run` is what it has.
pub(super) fn by_compare_swap(
    op: &Op,
    mut run: impl FnMut(&Op) -> Result<u64, AddrError>,
) -> Result<u64, AddrError> {
    let Some((mut by_swap, mut next)) = BySwap::begin(op) else {
        return Err(AddrError::Unsupported { addr: op.remote });
    };
    loop {
        match by_swap.take(run(&next)?) {
            Turn::Next(op) => next = op,
            Turn::Ended(was) => return Ok(was),
        }
    }
}

/// What the operation makes of a word.
fn changed(op: &Op, was: u64) -> Option<u64> {
    let operand = op.operand();
    Some(match op.kind {
        Kind::FetchAdd => was.wrapping_add(operand),
        Kind::Swap => operand,
        Kind::FetchAnd => was & operand,
        Kind::FetchOr => was | operand,
        Kind::FetchXor => was ^ operand,
        Kind::CompareSwap if was == op.compare() => operand,
        Kind::CompareSwap => was,
        Kind::Put | Kind::Get | Kind::PutWord | Kind::GetWord => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;
    use tsumugi_core::mem::RegionKey;

    /// A device of two words, on which somebody else is quicker at first.
    fn device(words: &mut [u64; 2], mut rivals: u32, op: &Op) -> Result<u64, AddrError> {
        by_compare_swap(op, |op| {
            let word = &mut words[op.remote.offset as usize / 8];
            let was = *word;
            match op.kind {
                Kind::GetWord => {}
                Kind::CompareSwap if rivals > 0 => {
                    rivals -= 1;
                    *word += 1 << 16;
                    return Ok(*word);
                }
                Kind::CompareSwap if was == op.compare() => *word = op.operand(),
                Kind::CompareSwap => {}
                kind => panic!("{kind:?}"),
            }
            Ok(was)
        })
    }

    #[test]
    fn every_operation_changes_its_own_bytes_alone() {
        let at = |offset| RemoteAddr { offset, rank: Rank(0), key: RegionKey::new(0, 1) };
        let mut words = [0, 7 << 32 | 5];
        let mut rivals = 2;
        let mut run = |op: Op| device(&mut words, std::mem::take(&mut rivals), &op).unwrap();
        assert_eq!(run(Op::atomic(Kind::FetchAdd, at(12), u32::MAX)), 7);
        assert_eq!(run(Op::atomic(Kind::FetchOr, at(8), 2u32)), 2 << 16 | 5);
        assert_eq!(run(Op::compare_swap(at(12), 9u32, 1u32)), 6);
        assert_eq!(run(Op::compare_swap(at(12), 6u32, 1u32)), 6);
        assert_eq!(run(Op::atomic(Kind::FetchXor, at(12), 3u32)), 1);
        assert_eq!(run(Op::atomic(Kind::FetchAnd, at(12), 2u32)), 2);
        assert_eq!(run(Op::atomic(Kind::Swap, at(8), 9u64)), 2 << 32 | 2 << 16 | 7);
        assert_eq!(words, [0, 9]);
    }

    #[test]
    fn what_is_no_atomic_is_refused() {
        let at = RemoteAddr { offset: 0, rank: Rank(0), key: RegionKey::new(0, 1) };
        for op in [Op::put_word(at, Width::W8, 1), Op::get_word(at, Width::W2)] {
            assert_eq!(device(&mut [0; 2], 0, &op), Err(AddrError::Unsupported { addr: at }));
        }
    }
}
