//! Reads slots of a peer's directory, when an operation's region is not known, or
//! when the device has refused the operation.
//!
//! ```text
//!  operation ─► read ─► listing ─► the cache: operations go on
//!                 │ torn: again       └─► not there: its key is stale
//!                 └─ no answer: the peer is lost
//! ```

use super::failure::DeviceFailure;
use super::in_flight::{InFlightOp, InFlightState};
use super::memory::{Listing, SLOT_BYTES};
use super::nic_endpoint::{DomainShared, NicEndpoint, SlotRead};
use super::scratch::Context;
use super::wire::{NetWire, RemoteBuffer};
use core::ffi::c_int;
use libc::{EAGAIN, EINPROGRESS};
use tsumugi_core::mem::AddrError;
use tsumugi_core::op::Op;

impl<W: NetWire> NicEndpoint<W> {
    /// Reads the directory slot of an operation's region, unless a read of that
    /// slot is under way. If there is no room, a later poll tries again.
    pub(super) fn read_directory(&mut self, shared: &DomainShared, at: usize) {
        let InFlightOp { op, since, .. } = self.flights[at];
        let (rank, slot) = (op.remote.rank, op.remote.key.index());
        let serves =
            |read: &SlotRead| read.rank == rank && read.slot == slot && read.serial > since;
        if self.reads.iter().flatten().any(serves) {
            return;
        }
        match self.peer(shared, rank) {
            Ok(Some(_)) => {}
            // The next poll tries again.
            Ok(None) => return,
            Err(error) => return self.end_waiting(at, Err(error)),
        }
        let Some(free) = self.reads.iter().position(Option::is_none) else { return };
        self.serial += 1;
        let serial = self.serial;
        self.reads[free] = Some(SlotRead { rank, slot, serial, tries: 0, counted: false });
        self.read_slot(shared, free);
    }

    /// Posts a read of a directory slot, or gives the read up.
    pub(super) fn read_slot(&mut self, shared: &DomainShared, read: usize) {
        let Some(SlotRead { rank, slot, .. }) = self.reads[read] else { return };
        if self.must_wait() || self.must_back_off(rank) {
            self.reads[read] = None;
            return;
        }
        let Ok(Some(peer)) = self.peer(shared, rank) else {
            self.reads[read] = None;
            return;
        };
        let addr = peer.origin + (slot * SLOT_BYTES) as u64;
        let remote = RemoteBuffer { peer: peer.addr, addr, key: peer.key };
        let local = self.scratch.local(self.scratch.slot(read));
        let context = self.scratch.context(Context::Read(read));
        // SAFETY: the scratch slot belongs to this read; no other operation uses
        // it.
        let answer = unsafe { self.wire.get(local, SLOT_BYTES, remote, context, false) } as c_int;
        if let Some(read) = &mut self.reads[read]
            && answer == 0
        {
            read.counted = true;
            self.posted += 1;
        }
        if answer != 0 {
            let given_up = self.reads[read].take();
            if answer != -EAGAIN
                && answer != -EINPROGRESS
                && !self.is_not_yet_reachable(rank, -answer)
            {
                self.failures.add(DeviceFailure::new(Some(rank), None, -answer, 0));
                self.end_decided(given_up.expect("the read was begun above"), None);
            }
        }
    }

    /// Removes a read from the count of requests that the device has.
    pub(super) fn uncount_read(&mut self, at: usize) {
        let counted = self.reads[at].as_mut().map(|read| core::mem::take(&mut read.counted));
        self.posted -= usize::from(counted == Some(true));
    }

    /// Handles a directory slot that has come.
    pub(super) fn slot_arrived(&mut self, shared: &DomainShared, at: usize) {
        let Some(read) = &mut self.reads[at] else { return };
        // SAFETY: the scratch slot belongs to this read, and the device has
        // finished with it.
        let words = unsafe { self.scratch.slot(at).read() }.map(u64::from_le);
        match Listing::decode(&words) {
            Err(_) if read.tries < TORN_MAX => {
                read.tries += 1;
                self.read_slot(shared, at);
            }
            decoded => {
                let read = *read;
                self.reads[at] = None;
                let found = decoded.unwrap_or(None);
                let listing = found.filter(|listing| listing.key.index() == read.slot);
                self.learn(shared, read, listing);
            }
        }
    }

    fn learn(&mut self, shared: &DomainShared, read: SlotRead, listing: Option<Listing>) {
        if let Some(listing) = &listing
            && let Ok(Some(peer)) = self.peer(shared, read.rank)
        {
            match self.wire.map_key(&listing.raw, listing.origin) {
                Ok(key) => {
                    if let Some(gone) = self.cache.add(read.rank, listing, peer.addr, key) {
                        self.wire.unmap_key(gone.remote.key);
                    }
                }
                Err(code) => {
                    self.failures.add(DeviceFailure::new(Some(read.rank), None, code, 0));
                    return self.end_decided(read, None);
                }
            }
        }
        self.end_decided(read, Some(listing));
    }

    /// Ends the operations for which a directory read is decisive: those that
    /// waited for the read and have a key that is not in the slot. `None`: there
    /// was no answer.
    pub(super) fn end_decided(&mut self, read: SlotRead, answer: Option<Option<Listing>>) {
        let waiting: Vec<usize> = self.later.iter().map(|&at| at as usize).collect();
        for at in waiting {
            let InFlightOp { op, state, since, .. } = self.flights[at];
            let is_of = op.remote.rank == read.rank
                && op.remote.key.index() == read.slot
                && since < read.serial
                && matches!(state, InFlightState::Waiting | InFlightState::Verifying)
                && self.cache_lacks(&op, state);
            if !is_of {
                continue;
            }
            let lost = Err(AddrError::PeerLost { rank: read.rank });
            let result = match answer {
                None => lost,
                Some(listing) => match listing.is_some_and(|found| found.key == op.remote.key) {
                    // The key is there, but the device has refused the operation.
                    true if state == InFlightState::Verifying => lost,
                    true => continue,
                    false => Err(AddrError::StaleKey { addr: op.remote }),
                },
            };
            self.end_waiting(at, result);
        }
    }

    /// Whether an operation lacks its region; one that only waits for room in the
    /// queue does not.
    fn cache_lacks(&self, op: &Op, state: InFlightState) -> bool {
        state == InFlightState::Verifying
            || self.cache.find(op.remote.rank, op.remote.key).is_none()
    }
}

/// How often a torn directory slot is read again.
const TORN_MAX: u32 = 1000;
