//! Operations on their way down.
//!
//! ```text
//!  post ─► Waiting ──────────────► Posted ─► (poll) ─► next piece, notification, done
//!             │ the region is not known: read its directory slot
//!             │ the queue is full: later
//!             ▼
//!           ended: no such rank, stale key, out of range, ...
//! ```
//!
//! Word operations of 4 and 8 bytes use the device's atomics, even a put and a get
//! of a word: over a stream of bytes a plain put may arrive in two parts. Puts and
//! gets of memory, and words of 1 and 2 bytes, are plain.
//!
//! A batch goes out as one: the wire is told whether a further request follows, and
//! rings the doorbell when all requests are written down.

use super::failure::DeviceFailure;
use super::immediate;
use super::in_flight::{InFlightOp, InFlightState, PostOutcome};
use super::nic_endpoint::{DomainShared, NicEndpoint};
use super::scratch::Context;
use super::wire::{LocalBuffer, NetWire, PostResult, RemoteBuffer, WordBuffers};
use core::ffi::c_int;
use libc::{EAGAIN, EINPROGRESS, ENOSYS, EOPNOTSUPP};
use tsumugi_core::backend::Completion;
use tsumugi_core::mem::{AddrError, Need, Rank};
use tsumugi_core::op::{Kind, Op};

impl<W: NetWire> NicEndpoint<W> {
    pub(super) fn in_flight(&self) -> usize {
        self.flights.len() - self.free.len() + self.ready.len()
    }

    pub(super) fn post(&mut self, shared: &DomainShared, ops: &[Op]) -> usize {
        let taken = self.take(shared, ops);
        self.wire.ring_doorbell();
        taken
    }

    fn take(&mut self, shared: &DomainShared, ops: &[Op]) -> usize {
        for (taken, op) in ops.iter().enumerate() {
            if self.in_flight() >= self.flights.len() {
                return taken;
            }
            if op.remote.rank.0 >= shared.size {
                let error = AddrError::NoSuchRank { rank: op.remote.rank, size: shared.size };
                self.ready.push_back(Completion { tag: op.tag, result: Err(error) });
                continue;
            }
            let Some(at) = self.free.pop() else { return taken };
            let at = at as usize;
            let since = self.serial;
            self.flights[at] = InFlightOp {
                op: *op,
                state: InFlightState::Waiting,
                moved: 0,
                piece: 0,
                since,
                counted: false,
                rings: false,
            };
            let more = self.limits.more && self.follows(ops.get(taken + 1));
            match self.issue(shared, at, more) {
                PostOutcome::Posted => {}
                PostOutcome::Ended(result) => self.finish(at, result),
                PostOutcome::Unknown => {
                    self.later.push_back(at as u32);
                    self.read_directory(shared, at);
                }
                PostOutcome::Kept => self.later.push_back(at as u32),
                // There is room for the operation; it must wait for its turn.
                PostOutcome::Again if self.limits.one_by_one => self.later.push_back(at as u32),
                PostOutcome::Again => {
                    self.release(at);
                    return taken;
                }
            }
        }
        ops.len()
    }

    /// Whether no request may be posted before another one has completed.
    #[inline]
    pub(super) fn must_wait(&self) -> bool {
        self.limits.one_by_one && self.posted + self.packets.under_way() > 0
    }

    /// Whether the next operation will be posted immediately after this one.
    fn follows(&self, next: Option<&Op>) -> bool {
        next.is_some_and(|next| {
            matches!(next.kind, Kind::Put | Kind::Get)
                && next.bytes() > 0
                && !self.free.is_empty()
                && self.cache.find(next.remote.rank, next.remote.key).is_some()
        })
    }

    /// Tries to post an operation, or its next piece.
    pub(super) fn issue(&mut self, shared: &DomainShared, at: usize, more: bool) -> PostOutcome {
        let InFlightOp { op, moved, .. } = self.flights[at];
        let need = if op.writes() { Need::Write } else { Need::Read };
        let align = op.width().map_or(1, |width| width as u64);
        let Some(known) = self.cache.find(op.remote.rank, op.remote.key) else {
            return PostOutcome::Unknown;
        };
        let remote = match known.resolve(op.remote, op.bytes(), need, align) {
            Ok(remote) => remote,
            Err(error) => return PostOutcome::Ended(Err(error)),
        };
        let is_open = known.is_open();
        if self.must_wait() || self.must_back_off(op.remote.rank) {
            return PostOutcome::Again;
        }
        let (answer, piece) = if op.width().is_none() {
            let local = match self.local(shared, op.local(), op.bytes()) {
                Ok(local) => local,
                Err(error) => return PostOutcome::Ended(Err(error)),
            };
            let piece = (op.bytes() - moved).min(self.limits.piece_bytes_max);
            if piece == 0 {
                return PostOutcome::Ended(Ok(0));
            }
            let local = LocalBuffer { at: local.at.wrapping_add(moved as usize), ..local };
            let remote = RemoteBuffer { addr: remote.addr + moved, ..remote };
            let is_last = moved + piece == op.bytes();
            let number = if is_last { self.immediate_of(&op) } else { None };
            self.flights[at].rings = number.is_some();
            (self.transfer(at, local, remote, piece, more, number), piece)
        } else {
            (self.word(at, &op, remote, is_open), 0)
        };
        match answer as c_int {
            0 => {
                let in_flight_op = &mut self.flights[at];
                (in_flight_op.state, in_flight_op.piece) = (InFlightState::Posted, piece);
                in_flight_op.counted = true;
                self.posted += 1;
                PostOutcome::Posted
            }
            code if code == -EAGAIN => PostOutcome::Again,
            code if code == -EINPROGRESS => PostOutcome::Kept,
            code if self.is_not_yet_reachable(op.remote.rank, -code) => PostOutcome::Again,
            code => {
                let rank = op.remote.rank;
                self.failures.add(DeviceFailure::new(Some(rank), Some(op.kind), -code, 0));
                PostOutcome::Ended(Err(match -code {
                    ENOSYS | EOPNOTSUPP => AddrError::Unsupported { addr: op.remote },
                    _ => AddrError::PeerLost { rank },
                }))
            }
        }
    }

    fn transfer(
        &mut self,
        at: usize,
        local: LocalBuffer,
        remote: RemoteBuffer,
        piece: u64,
        more: bool,
        number: Option<u32>,
    ) -> PostResult {
        let kind = self.flights[at].op.kind;
        let context = self.scratch.context(Context::Operation(at));
        let bytes = piece as usize;
        // SAFETY: both ends were checked for as many bytes, and the buffer belongs
        // to the operation until it ends.
        unsafe {
            match kind {
                _ if let Some(number) = number => {
                    self.wire.put_with_immediate(local, bytes, remote, context, number)
                }
                Kind::Get => self.wire.get(local, bytes, remote, context, more),
                _ => {
                    let inject = piece <= self.limits.inject_bytes;
                    self.wire.put(local, bytes, remote, context, more, inject)
                }
            }
        }
    }

    /// The number that a put carries to its target, if it can notify by itself.
    #[inline]
    fn immediate_of(&self, op: &Op) -> Option<u32> {
        let can = op.notify && self.limits.rings && matches!(op.kind, Kind::Put | Kind::PutWord);
        if can { immediate::immediate_of(op.remote) } else { None }
    }

    fn word(&mut self, at: usize, op: &Op, remote: RemoteBuffer, is_open: bool) -> PostResult {
        let words = self.scratch.words(at);
        let context = self.scratch.context(Context::Operation(at));
        let width = op.width().expect("a word operation") as usize;
        // SAFETY: the words of this slot, which no device uses now.
        let (operand, compare, result) = unsafe {
            store(&raw mut (*words).operand, op.operand(), width);
            if op.kind == Kind::CompareSwap {
                store(&raw mut (*words).compare, op.compare(), width);
            }
            (*words).result = 0;
            (&raw mut (*words).operand, &raw mut (*words).compare, &raw mut (*words).result)
        };
        let local = |word| self.scratch.local(word);
        let locals =
            WordBuffers { operand: local(operand), compare: local(compare), result: local(result) };
        if let Some(number) = self.immediate_of(op) {
            self.flights[at].rings = true;
            // SAFETY: a word of the slot, which does not change until the operation
            // ends.
            return unsafe {
                self.wire.put_with_immediate(locals.operand, width, remote, context, number)
            };
        }
        // An atomic get may need write permission.
        let atomics = self.limits.word_atomics && width >= 4 && is_open;
        // SAFETY: the words of the slot do not change until the operation ends.
        unsafe { self.wire.word(op, locals, remote, context, atomics) }
    }

    /// Whether an operation on that rank was accepted and is not on the wire yet,
    /// so that a packet that is sent now would overtake it.
    pub(super) fn holds(&self, rank: Rank) -> bool {
        self.later.iter().any(|&at| self.flights[at as usize].op.remote.rank == rank)
    }

    /// Ends an operation that is in the queue of those to be posted later.
    pub(super) fn end_waiting(&mut self, at: usize, result: Result<u64, AddrError>) {
        self.later.retain(|&other| other as usize != at);
        self.finish(at, result);
    }

    /// Ends an operation and queues its completion.
    #[inline]
    pub(super) fn finish(&mut self, at: usize, result: Result<u64, AddrError>) {
        let tag = self.flights[at].op.tag;
        self.release(at);
        self.ready.push_back(Completion { tag, result });
    }

    #[inline]
    pub(super) fn release(&mut self, at: usize) {
        self.flights[at].state = InFlightState::Free;
        self.free.push(at as u32);
    }
}

/// # Safety
///
/// `to` is a word that may be written.
unsafe fn store(to: *mut u64, value: u64, width: usize) {
    // SAFETY: the caller guarantees a writable word; a narrow word lies at the
    // start of the wide one.
    unsafe {
        match width {
            1 => to.cast::<u8>().write(value as u8),
            2 => to.cast::<u16>().write(value as u16),
            4 => to.cast::<u32>().write(value as u32),
            _ => to.write(value),
        }
    }
}
