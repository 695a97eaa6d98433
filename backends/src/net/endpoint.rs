//! One queue of the device, as seen by its user: operations down, completions and
//! packets up.
//!
//! Progress: nothing here waits. While another thread registers memory, `post`
//! accepts no operation and `poll` finds no completion.

use super::domain::NetDomain;
use super::failure::DeviceFailures;
use super::nic_endpoint::NicEndpoint;
use super::packet::{Arrival, PacketError};
use super::wire::NetWire;
use core::fmt;
use core::ptr::NonNull;
use std::sync::{MutexGuard, PoisonError};
use tsumugi_core::backend::{Capabilities, Completion, Domain, Endpoint};
use tsumugi_core::mem::{Access, Need, Rank, Region, RegionKey, RegisterError, RemoteAddr};
use tsumugi_core::op::Op;

/// One queue of the device. A drop waits, for a second at most, until nothing is in
/// flight.
pub struct NetEndpoint<'d, W: NetWire> {
    domain: &'d NetDomain<W>,
    index: usize,
    /// Whether the last poll left arrivals for `receive`.
    to_receive: bool,
}

impl<'d, W: NetWire> NetEndpoint<'d, W> {
    pub(super) fn new(domain: &'d NetDomain<W>, index: usize) -> Self {
        Self { domain, index, to_receive: true }
    }

    /// Sends a packet. The packet is copied, and arrives once and whole, or not at
    /// all if the peer is lost; packets may overtake each other. Never waits.
    ///
    /// # Errors
    ///
    /// A [`PacketError`], and nothing was sent:
    ///
    /// - [`PacketError::Full`]: no buffer is free, the provider accepts nothing now, the
    ///   rank's card has not come yet, or another thread uses the endpoint. The caller
    ///   must try again later.
    /// - [`PacketError::TooLong`]: `bytes` is longer than a packet.
    /// - [`PacketError::Addr`]: the rank does not exist, has died, or cannot be reached.
    pub fn try_send(&mut self, to: Rank, bytes: &[u8]) -> Result<(), PacketError> {
        self.domain.try_send(self.index, to, bytes)
    }

    /// Passes the arrivals of earlier polls to `handle`: packets, at most
    /// [`PACKETS_AT_ONCE`](super::PACKETS_AT_ONCE), and the words of this rank that
    /// a notifying operation has changed. Returns how many there were; if there
    /// were at least `PACKETS_AT_ONCE`, there may be more.
    #[inline]
    pub fn receive(&mut self, handle: &mut dyn FnMut(Arrival<'_>)) -> usize {
        if self.to_receive { self.take_arrivals(handle) } else { 0 }
    }

    fn take_arrivals(&mut self, handle: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let shared = &self.domain.shared;
        let Some(mut nic) = self.try_rail() else { return 0 };
        let handed = nic.receive(shared, handle);
        self.to_receive = nic.packets.needs_receive();
        handed
    }

    /// The descriptor to sleep on after [`arm`](Endpoint::arm) has returned true;
    /// `None` if the provider has none, or none was requested: then a sleep must
    /// have a limit.
    pub fn event(&self) -> Option<std::os::fd::RawFd> {
        self.domain.nics[self.index].lock().ok()?.wire.event()
    }

    /// The number of failures so far, and the last failure.
    pub fn failures(&self) -> DeviceFailures {
        self.domain.nics[self.index].lock().map(|nic| nic.failures).unwrap_or_default()
    }

    /// Whether a packet that is sent to that rank now would overtake an operation
    /// on it that was posted before, because the operation's region or peer is not
    /// known yet, or the queue is full. Returns true while another thread uses the
    /// endpoint.
    #[inline]
    pub fn holds(&self, rank: Rank) -> bool {
        self.try_rail().is_none_or(|nic| nic.holds(rank))
    }

    /// The number of operations in flight.
    pub fn in_flight(&self) -> usize {
        self.domain.nics[self.index].lock().map(|nic| nic.in_flight()).unwrap_or_default()
    }

    /// The index of this endpoint in its domain.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Calls `ask` with the wire.
    pub(crate) fn with_wire<R>(&self, ask: impl FnOnce(&W) -> R) -> Option<R> {
        self.domain.nics[self.index].lock().ok().map(|nic| ask(&nic.wire))
    }

    #[inline]
    fn try_rail(&self) -> Option<MutexGuard<'d, NicEndpoint<W>>> {
        self.domain.try_rail(self.index)
    }
}

impl<W: NetWire> NetDomain<W> {
    /// An endpoint, if one is left.
    pub fn try_endpoint(&self) -> Option<NetEndpoint<'_, W>> {
        let index = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(NetEndpoint::new(self, index))
    }

    pub(super) fn give_back(&self, index: usize) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(index);
    }
}

impl<W: NetWire> Domain for NetDomain<W> {
    type Endpoint<'d>
        = NetEndpoint<'d, W>
    where
        W: 'd;

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn rank(&self) -> Rank {
        self.shared.rank
    }

    fn size(&self) -> u32 {
        self.shared.size
    }

    unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        // SAFETY: the caller keeps the contract of `register`.
        let region = unsafe { self.shared.table.register(base, bytes, access)? };
        // SAFETY: as above.
        unsafe { self.show(region) }
    }

    fn unregister(&self, key: RegionKey) -> bool {
        // The devices first: meanwhile the slot must not go to another region.
        let place = RemoteAddr { rank: self.shared.rank, key, offset: 0 };
        let is_for = |need| self.shared.table.resolve(place, 0, need).is_ok();
        if !is_for(Need::Local) {
            return false;
        }
        let is_shown = self.limits.local_mr || is_for(Need::Read);
        for index in (0..self.nics.len()).filter(|_| is_shown) {
            self.nic(index).unregister(key);
        }
        self.shared.table.unregister(key)
    }

    /// # Panics
    ///
    /// If all endpoints are in use; [`try_endpoint`](Self::try_endpoint) returns
    /// `None` then.
    fn endpoint(&self) -> NetEndpoint<'_, W> {
        let count = self.nics.len();
        self.try_endpoint()
            .unwrap_or_else(|| panic!("all {count} endpoints of the domain are in use"))
    }
}

impl<W: NetWire> Endpoint for NetEndpoint<'_, W> {
    #[inline]
    fn post(&mut self, ops: &[Op]) -> usize {
        let shared = &self.domain.shared;
        self.try_rail().map_or(0, |mut nic| {
            nic.end_lost_ops(shared);
            nic.post(shared, ops)
        })
    }

    #[inline]
    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        let shared = &self.domain.shared;
        let Some(mut nic) = self.try_rail() else { return 0 };
        nic.end_lost_ops(shared);
        let count = nic.poll(shared, completions);
        self.to_receive = nic.packets.needs_receive();
        count
    }

    #[inline]
    fn turn(&mut self, ops: &[Op], completions: &mut [Completion]) -> (usize, usize) {
        let shared = &self.domain.shared;
        let Some(mut nic) = self.try_rail() else { return (0, 0) };
        nic.end_lost_ops(shared);
        let taken = nic.post(shared, ops);
        let count = nic.poll(shared, completions);
        self.to_receive = nic.packets.needs_receive();
        (taken, count)
    }

    fn arm(&mut self) -> bool {
        self.domain.arm(self.index)
    }
}

impl<W: NetWire> Drop for NetEndpoint<'_, W> {
    fn drop(&mut self) {
        let (limit, mut sink) = (std::time::Duration::from_secs(1), [Completion::EMPTY; 16]);
        let start = std::time::Instant::now();
        while self.in_flight() > 0 && start.elapsed() < limit {
            self.poll(&mut sink);
        }
        while self.poll(&mut sink) > 0 {}
        if self.in_flight() == 0 {
            self.domain.give_back(self.index);
        }
    }
}

impl<W: NetWire> fmt::Debug for NetEndpoint<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "endpoint {} of {:?}", self.index, self.domain)
    }
}
