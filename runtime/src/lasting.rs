//! An operation on a word that may outlive its caller: if the caller is cut off,
//! because its scheduler ends, another ULT waits for the end of the same operation,
//! and gets its result.
//!
//! ```text
//!   caller:   begin ─► begun ─► wait ─► ended
//!                        │ cut off
//!   another:             └────► wait ─► ended
//! ```
//!
//! An atomic that the device does not have is a loop of operations that it has; the
//! other ULT goes on with the step that was under way.

use crate::cas_loop::{CasLoop, CasTurn};
use std::cell::Cell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr;
use tsumugi_core::completion::Ticket;
use tsumugi_core::mem::AddrError;
use tsumugi_core::mem::Agent;
use tsumugi_core::op::Op;
use tsumugi_core::stats::Counter;
use tsumugi_core::wait::{Reason, Wait, Waker};

/// The state of such an operation, on the stack of the ULT that carries it out. See
/// the module.
pub struct Lasting {
    /// The operation that is begun next, or is under way.
    op: Cell<Op>,
    /// The loop of which it is a step, if it is one.
    by_swap: Cell<Option<CasLoop>>,
    /// A copy of the ticket of the operation under way; only one of the two copies
    /// is used.
    ticket: Cell<Option<ManuallyDrop<Ticket<'static>>>>,
}

impl Lasting {
    /// Makes the state of an operation that has not begun.
    #[inline]
    pub fn new(op: Op) -> Self {
        Self { op: Cell::new(op), by_swap: Cell::new(None), ticket: Cell::new(None) }
    }

    /// Copies the state for another ULT, which carries the operation to its end.
    ///
    /// # Safety
    ///
    /// The ULT that has carried the operation so far never goes on, and no other ULT
    /// takes it over.
    pub unsafe fn take_over(&self) -> Self {
        // SAFETY: by the caller's promise only one of the two copies is used, and
        // dropping either drops nothing.
        unsafe { ptr::read(self) }
    }

    /// The operation that is begun next, or is under way.
    pub(crate) fn op(&self) -> Op {
        self.op.get()
    }

    /// Takes the ticket of the operation, if another ULT has begun it.
    pub(crate) fn under_way(&self) -> Option<Ticket<'static>> {
        self.ticket.take().map(ManuallyDrop::into_inner)
    }

    /// Records that the operation is under way, until [`ended`](Self::ended).
    pub(crate) fn begun(&self, ticket: &Ticket<'static>) {
        // SAFETY: a second copy of the ticket. The caller uses its own copy; only if
        // the caller never goes on, the ULT that takes over uses this one.
        self.ticket.set(Some(ManuallyDrop::new(unsafe { ptr::read(ticket) })));
    }

    /// Handles the end of the operation. Returns its result, or `None` if another
    /// step is due.
    pub(crate) fn ended(&self, result: Result<u64, AddrError>) -> Option<Result<u64, AddrError>> {
        self.ticket.set(None);
        let op = self.op.get();
        let Some(mut by_swap) = self.by_swap.take() else {
            return match result {
                Err(AddrError::Unsupported { .. }) if op.remote.key.agent() == Agent::Device => {
                    self.turns(CasLoop::begin(&op), result)
                }
                result => Some(result),
            };
        };
        match result.map(|found| by_swap.take(found)) {
            Ok(CasTurn::Next(next)) => self.turns(Some((by_swap, next)), result),
            Ok(CasTurn::Ended(was)) => Some(Ok(was)),
            Err(error) => Some(Err(error)),
        }
    }

    /// Sets the next step, or returns the result if there is none.
    fn turns(
        &self,
        next: Option<(CasLoop, Op)>,
        result: Result<u64, AddrError>,
    ) -> Option<Result<u64, AddrError>> {
        let Some((by_swap, op)) = next else { return Some(result) };
        self.by_swap.set(Some(by_swap));
        self.op.set(op);
        None
    }
}

impl fmt::Debug for Lasting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lasting({:?})", self.op.get())
    }
}

/// Waits as `W` does, but leaves the operation under way if the waiter is cut off:
/// another ULT takes it over.
pub(crate) struct Stays<W>(pub(crate) W);

// SAFETY: `W` keeps the contract of `Wait`, and each call is passed on to it.
unsafe impl<W: Wait> Wait for Stays<W> {
    unsafe fn sleep(&self, reason: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.0.sleep(reason, commit) };
    }

    fn yield_now(&self) {
        self.0.yield_now();
    }

    fn count(&self, counter: Counter) {
        self.0.count(counter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_core::mem::Rank;
    use tsumugi_core::mem::{RegionKey, RemoteAddr, Width};
    use tsumugi_core::op::Kind;

    /// An address in a device's words.
    fn at(offset: u64) -> RemoteAddr {
        RemoteAddr { offset, rank: Rank(0), key: RegionKey::new(0, 1).of(Agent::Device) }
    }

    /// A device of two words, with gets and compare-and-swaps of whole words only,
    /// on which a rival changes the word first some times.
    fn device(words: &mut [u64; 2], mut rivals: u32, op: &Op) -> Result<u64, AddrError> {
        let mut run = |op: &Op| {
            let word = &mut words[op.remote.offset as usize / 8];
            let was = *word;
            match op.kind {
                _ if op.width() != Some(Width::W8) => {
                    return Err(AddrError::Unsupported { addr: op.remote });
                }
                Kind::GetWord => {}
                Kind::CompareSwap if rivals > 0 => {
                    rivals -= 1;
                    *word += 1 << 16;
                    return Ok(*word);
                }
                Kind::CompareSwap if was == op.compare() => *word = op.operand(),
                Kind::CompareSwap => {}
                _ => return Err(AddrError::Unsupported { addr: op.remote }),
            }
            Ok(was)
        };
        let mut lasting = Lasting::new(*op);
        loop {
            let result = run(&lasting.op());
            if let Some(result) = lasting.ended(result) {
                return result;
            }
            // Each step may run on another ULT. SAFETY: the copy before is not used again.
            lasting = unsafe { lasting.take_over() };
        }
    }

    #[test]
    fn every_operation_changes_only_its_own_bytes() {
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
    fn an_operation_that_is_not_an_atomic_is_refused() {
        for op in [Op::put_word(at(0), Width::W8, 1), Op::get_word(at(0), Width::W2)] {
            assert_eq!(device(&mut [0; 2], 0, &op), Err(AddrError::Unsupported { addr: at(0) }));
        }
    }
}
