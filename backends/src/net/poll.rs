//! Completions on their way up.
//!
//! ```text
//!  completion queue ─► context ─► operation: next piece │ notification │ done
//!        │                     ─► directory slot: its operations go on
//!        │                     ─► packet: sent │ arrived
//!        ├─ not done, for another's fault ─► posted again
//!        └─ error ─► named (peer, operation, code) ─► Doubtful: the directory
//!                    shows whether the key is stale; if it is not, or there is
//!                    no answer, the peer is lost
//! ```
//!
//! Progress: one read of the completion queue in each poll; nothing waits.

use super::failure::DeviceFailure;
use super::in_flight::{InFlightOp, InFlightState, PostOutcome};
use super::nic_endpoint::{DomainShared, NicEndpoint};
use super::scratch::Context;
use super::wire::{CompletionEntry, CompletionStatus, NetWire};
use core::ffi::c_int;
use libc::{ENOSYS, EOPNOTSUPP};
use tsumugi_core::backend::Completion;
use tsumugi_core::mem::{AddrError, Rank, RegionKey, Width};
use tsumugi_core::op::Kind;
use tsumugi_core::sync::Ordering;

impl<W: NetWire> NicEndpoint<W> {
    pub(super) fn poll(&mut self, shared: &DomainShared, completions: &mut [Completion]) -> usize {
        self.read_queue(shared);
        if !self.later.is_empty() {
            self.retry_later(shared);
        }
        if !self.packets.returned.is_empty() {
            self.send_again(shared);
        }
        self.wire.ring_doorbell();
        let mut count = 0;
        while count < completions.len()
            && let Some(completion) = self.ready.pop_front()
        {
            completions[count] = completion;
            count += 1;
        }
        count
    }

    /// Returns true if there is nothing to do before a completion comes, and the
    /// completion will make the descriptor readable.
    pub(super) fn arm(&mut self) -> bool {
        self.later.is_empty()
            && self.ready.is_empty()
            && self.packets.returned.is_empty()
            && !self.packets.has_arrived()
            && self.wire.try_wait()
    }

    fn read_queue(&mut self, shared: &DomainShared) {
        match self.wire.completions(&mut self.entries) {
            Ok(count) => {
                for at in 0..count {
                    let entry = self.entries[at];
                    self.ended(shared, entry);
                }
            }
            Err(code) => self.failures.add(DeviceFailure::new(None, None, code, 0)),
        }
    }

    #[inline]
    fn ended(&mut self, shared: &DomainShared, entry: CompletionEntry) {
        match (entry.end, self.scratch.context_of(entry.context)) {
            (CompletionStatus::Done(_), Some(Context::Operation(at))) => {
                self.uncount(at);
                self.arrived(shared, at);
            }
            (_, context) => self.ended_otherwise(shared, entry, context),
        }
    }

    /// Handles a completion that is not of an operation, or not a success.
    fn ended_otherwise(
        &mut self,
        shared: &DomainShared,
        entry: CompletionEntry,
        context: Option<Context>,
    ) {
        match (entry.end, context) {
            (CompletionStatus::Done(_), Some(Context::Read(at))) => {
                self.uncount_read(at);
                self.slot_arrived(shared, at);
            }
            (CompletionStatus::Done(_), Some(Context::Send(at))) => self.packets.sent(at),
            (CompletionStatus::Done(bytes), Some(Context::Receive(at))) => {
                self.packets.packet_arrived(at, bytes)
            }
            (CompletionStatus::Immediate(number), Some(Context::Receive(at))) => {
                self.packets.immediate_arrived(at, number)
            }
            (CompletionStatus::Done(_) | CompletionStatus::Immediate(_), _) => {
                self.failures.add(DeviceFailure::new(None, None, libc::EIO, 0))
            }
            (CompletionStatus::Again, _) => self.again(context),
            (CompletionStatus::Refused { code, provider_code }, _) => {
                self.failed(shared, context, code, provider_code, false);
            }
            (CompletionStatus::Gone { code, provider_code }, _) => {
                self.failed(shared, context, code, provider_code, true);
            }
        }
    }

    /// Handles a request that the device has not done because another request
    /// failed.
    fn again(&mut self, context: Option<Context>) {
        match context {
            Some(Context::Operation(at)) => {
                self.uncount(at);
                match self.flights[at].state {
                    InFlightState::Posted => {
                        self.flights[at].state = InFlightState::Waiting;
                        self.later.push_back(at as u32);
                    }
                    InFlightState::Lost => self.release(at),
                    _ => {}
                }
            }
            Some(Context::Read(at)) => {
                self.uncount_read(at);
                // The operations that wait for the read request it again.
                self.reads[at] = None;
            }
            Some(Context::Send(at)) => self.packets.returned.push_back(at as u32),
            Some(Context::Receive(at)) => self.packets.failed(at),
            None => {}
        }
    }

    fn failed(
        &mut self,
        shared: &DomainShared,
        context: Option<Context>,
        code: c_int,
        provider_code: c_int,
        is_gone: bool,
    ) {
        let (peer, kind) = match context {
            Some(Context::Operation(at)) => {
                let op = &self.flights[at].op;
                (Some(op.remote.rank), Some(op.kind))
            }
            Some(Context::Read(at)) => (self.reads[at].map(|read| read.rank), None),
            Some(Context::Send(at)) => (self.packets.receiver(at), None),
            _ => (None, None),
        };
        self.failures.add(DeviceFailure::new(peer, kind, code, provider_code));
        match context {
            Some(Context::Operation(at)) => {
                self.uncount(at);
                if is_gone {
                    self.gone(at);
                } else {
                    self.verify_key(shared, at, code);
                }
            }
            Some(Context::Read(at)) => {
                self.uncount_read(at);
                if let Some(read) = self.reads[at].take() {
                    self.end_decided(read, None);
                }
            }
            Some(Context::Send(at)) => self.packets.sent(at),
            Some(Context::Receive(at)) => self.packets.failed(at),
            None => {}
        }
    }

    /// Handles an operation that got no answer.
    fn gone(&mut self, at: usize) {
        let rank = self.flights[at].op.remote.rank;
        match self.flights[at].state {
            InFlightState::Lost => self.release(at),
            InFlightState::Posted => self.finish(at, Err(AddrError::PeerLost { rank })),
            _ => {}
        }
    }

    /// Removes an operation from the count of requests that the device has.
    #[inline]
    fn uncount(&mut self, at: usize) {
        let counted = core::mem::take(&mut self.flights[at].counted);
        self.posted -= usize::from(counted);
    }

    /// Handles the success of the request that was posted for this operation.
    #[inline]
    fn arrived(&mut self, shared: &DomainShared, at: usize) {
        let in_flight_op = &mut self.flights[at];
        match in_flight_op.state {
            InFlightState::Posted => {}
            InFlightState::Lost => return self.release(at),
            state => {
                debug_assert!(false, "a completion for an operation in the state {state:?}");
                return;
            }
        }
        in_flight_op.moved += in_flight_op.piece;
        let InFlightOp { op, moved, rings, .. } = *in_flight_op;
        let old = match (op.width(), op.kind) {
            (None, _) if moved < op.bytes() => {
                in_flight_op.state = InFlightState::Waiting;
                self.later.push_back(at as u32);
                return;
            }
            (None, _) | (_, Kind::PutWord) => 0,
            (Some(width), _) => {
                // SAFETY: the words of this slot, with which the device has
                // finished.
                unsafe { load(&raw const (*self.scratch.words(at)).result, width) }
            }
        };
        if op.notify && !rings && op.writes() && !self.notify_owner(shared, &op) {
            self.flights[at].state = InFlightState::Notifying(old);
            self.later.push_back(at as u32);
        } else {
            self.finish(at, Ok(old));
        }
    }

    /// Handles an operation that the device has refused.
    fn verify_key(&mut self, shared: &DomainShared, at: usize, code: c_int) {
        let op = self.flights[at].op;
        match self.flights[at].state {
            InFlightState::Lost => return self.release(at),
            InFlightState::Posted => {}
            _ => return,
        }
        if matches!(code, ENOSYS | EOPNOTSUPP) {
            self.finish(at, Err(AddrError::Unsupported { addr: op.remote }));
            return;
        }
        let (rank, key) = (op.remote.rank, op.remote.key);
        let same =
            |known: &super::memory::CachedRegion| known.rank == rank && known.listing_key == key;
        for key in self.cache.forget(same) {
            self.wire.unmap_key(key);
        }
        let in_flight_op = &mut self.flights[at];
        (in_flight_op.state, in_flight_op.since) = (InFlightState::Verifying, self.serial);
        self.later.push_back(at as u32);
        self.read_directory(shared, at);
    }

    /// Retries the operations that wait for room, or for data that may be known
    /// now.
    fn retry_later(&mut self, shared: &DomainShared) {
        for _ in 0..self.later.len() {
            let Some(at) = self.later.pop_front() else { return };
            let at = at as usize;
            match self.flights[at].state {
                InFlightState::Waiting => match self.issue(shared, at, false) {
                    PostOutcome::Posted => {}
                    PostOutcome::Ended(result) => self.finish(at, result),
                    PostOutcome::Unknown => {
                        self.later.push_back(at as u32);
                        self.read_directory(shared, at);
                    }
                    PostOutcome::Kept => self.later.push_back(at as u32),
                    PostOutcome::Again => {
                        self.later.push_front(at as u32);
                        return;
                    }
                },
                InFlightState::Verifying => {
                    self.later.push_back(at as u32);
                    self.read_directory(shared, at);
                }
                InFlightState::Notifying(old) => {
                    let op = self.flights[at].op;
                    if self.notify_owner(shared, &op) {
                        self.finish(at, Ok(old));
                    } else {
                        self.later.push_back(at as u32);
                    }
                }
                state => {
                    debug_assert!(false, "an operation in the state {state:?} waits to be posted")
                }
            }
        }
    }

    /// Ends the operations to a dead rank that can be ended. A get that the device
    /// still has goes on until the device releases it: until then the device may
    /// write to the caller's buffer.
    pub(super) fn abandon(&mut self, shared: &DomainShared, rank: Rank) {
        for at in 0..self.reads.len() {
            if self.reads[at].is_some_and(|read| read.rank == rank) {
                self.uncount_read(at);
            }
        }
        let lost = Err(AddrError::PeerLost { rank });
        let kept = shared.kept.load(Ordering::Relaxed);
        let is_kept = |key: RegionKey| kept != 0 && key.to_bits() == kept;
        for at in 0..self.flights.len() {
            let InFlightOp { op, state, .. } = self.flights[at];
            if op.remote.rank != rank {
                continue;
            }
            // The request must not count any more, so that others can be posted.
            self.uncount(at);
            match state {
                InFlightState::Waiting | InFlightState::Verifying => self.end_waiting(at, lost),
                InFlightState::Notifying(old) => self.end_waiting(at, Ok(old)),
                InFlightState::Posted if op.kind != Kind::Get || is_kept(op.local().key) => {
                    self.flights[at].state = InFlightState::Lost;
                    self.ready.push_back(Completion { tag: op.tag, result: lost });
                }
                InFlightState::Posted | InFlightState::Free | InFlightState::Lost => {}
            }
        }
    }
}

/// # Safety
///
/// `from` is a word that may be read.
unsafe fn load(from: *const u64, width: Width) -> u64 {
    // SAFETY: the caller guarantees a readable word; a narrow word lies at the
    // start of the wide one.
    unsafe {
        match width {
            Width::W1 => u64::from(from.cast::<u8>().read()),
            Width::W2 => u64::from(from.cast::<u16>().read()),
            Width::W4 => u64::from(from.cast::<u32>().read()),
            Width::W8 => from.read(),
        }
    }
}
