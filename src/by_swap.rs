//! What a device's atomics lack, by the one that they all have.
//!
//! A device adds to words of 8 bytes, compares and swaps them, and no more.
//! On words whose agent it is, all else is a loop round its compare-and-swap:
//! of the word of 8 bytes that the narrower one is a half of.
//!
//! Progress: lock-free, as any such loop; each turn is a blocking operation.

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
