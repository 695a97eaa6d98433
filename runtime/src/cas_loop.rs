//! Atomics that a device lacks, by compare-and-swap, which all devices have.
//!
//! A device has fetch-and-add and compare-and-swap on words of 8 bytes, and no more.
//! If a device is the agent of a word, every other atomic on the word is a loop
//! round its compare-and-swap; an atomic on a word of 4 bytes is one on the word of
//! 8 bytes that contains it.
//!
//! Progress: lock-free, as any compare-and-swap loop; each step is a blocking
//! operation.

use tsumugi_core::mem::{RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};

/// The next step of such an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CasTurn {
    /// This operation is to be carried out, and its result [taken](CasLoop::take).
    Next(Op),
    /// The atomic has ended with this old value.
    Ended(u64),
}

/// An atomic that the device does not have, as a loop of operations that it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CasLoop {
    op: Op,
    /// The position of the word in the word of 8 bytes.
    shift: u64,
    mask: u64,
    whole: RemoteAddr,
    /// The value of the 8 bytes that the last operation found.
    old: Option<u64>,
}

impl CasLoop {
    /// Makes the loop, and its first operation; `None`: `op` is no atomic.
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

    /// Takes the value that the last operation has found, and returns the next step.
    pub(crate) fn take(&mut self, found: u64) -> CasTurn {
        let was = found >> self.shift & self.mask;
        if self.old == Some(found) {
            return CasTurn::Ended(was);
        }
        self.old = Some(found);
        let new = changed(&self.op, was).unwrap_or(was);
        let new = found & !(self.mask << self.shift) | (new & self.mask) << self.shift;
        let swap = Op::compare_swap(self.whole, found, new).tagged(self.op.tag);
        CasTurn::Next(if self.op.notify { swap.notifying() } else { swap })
    }
}

/// The new value of a word with the value `was`.
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
