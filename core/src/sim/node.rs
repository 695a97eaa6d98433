//! One node of a network: a device with endpoints, and a queue of its own.

use super::memory::{RegionBytes, SimMemory};
use super::net::Net;
use crate::backend::{Capabilities, Completion, Domain, Endpoint, LoadStore, execute};
use crate::mem::{
    Access, AddrError, LocalAddr, Need, Rank, Region, RegionKey, RegisterError, RemoteAddr, Width,
};
use crate::op::Op;
use crate::time::{Clock, Instant};
use core::fmt;
use core::ptr::NonNull;

/// One node of a [`Net`]. Cheap to copy.
///
/// As a [`LoadStore`], a node can access only its own memory.
#[derive(Clone, Copy)]
pub struct SimNode<'n> {
    net: &'n Net,
    rank: Rank,
}

/// A queue of a node's device. The network owns it: operations may complete after
/// this handle was dropped, and those completions are lost.
pub struct NodeEndpoint<'n> {
    net: &'n Net,
    queue: u32,
}

impl Net {
    /// One of the nodes.
    ///
    /// # Panics
    ///
    /// If the network has no such node.
    pub fn node(&self, rank: Rank) -> SimNode<'_> {
        let nodes = self.tables.len();
        assert!((rank.0 as usize) < nodes, "{rank} does not exist: the network has {nodes} nodes");
        SimNode::new(self, rank)
    }
}

impl<'n> SimNode<'n> {
    pub(super) const fn new(net: &'n Net, rank: Rank) -> Self {
        Self { net, rank }
    }

    /// The network.
    pub const fn net(&self) -> &'n Net {
        self.net
    }

    /// This node.
    pub const fn rank(&self) -> Rank {
        self.rank
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        self.net.now()
    }

    /// The time until which this node's processor is busy: later than
    /// [`now`](Self::now) only on a [`CostModel`](super::CostModel).
    pub fn busy_until(&self) -> Instant {
        let busy = self
            .net
            .state
            .with(|state| state.load.as_ref().map_or(0, |load| load.busy_until(self.rank)));
        self.now().max(Instant::from_ns(busy))
    }

    /// Posts an operation; its end is a [`SimEvent`](super::SimEvent) of this node.
    /// Returns false if too many operations are in flight, or the node is dead.
    #[must_use = "on false the operation was not posted"]
    pub fn try_post(&self, op: &Op) -> bool {
        self.net.state.with(|state| state.post(self.rank.0, op))
    }

    /// Like [`try_post`](Self::try_post), for callers for which a full queue is a
    /// defect.
    ///
    /// # Panics
    ///
    /// If too many operations are in flight.
    pub fn post(&self, op: &Op) {
        let taken = self.try_post(op) || self.net.is_dead(self.rank);
        assert!(taken, "the queue of {} is full: {op:?}", self.rank);
    }

    /// Sets a timer: the node receives [`SimEvent::Timer`](super::SimEvent::Timer) with
    /// `token` at `at`. A timer cannot be cancelled; the token tells timers apart.
    pub fn wake_at(&self, at: Instant, token: u64) {
        self.net.state.with(|state| {
            state.calendar.add(at.as_ns(), super::flight::DueAction::Timer, self.rank.0, token)
        });
    }

    /// Registers zero bytes that live as long as the network.
    ///
    /// # Errors
    ///
    /// [`RegisterError::TableFull`] if the node has no free registration.
    pub fn allocate(&self, bytes: u64, access: Access) -> Result<Region, RegisterError> {
        let chunk = RegionBytes::new(bytes);
        let base = chunk.base();
        self.net.state.with(|state| state.memory.push(chunk));
        // SAFETY: the memory belongs to the network and lives as long as its tables.
        unsafe { self.net.tables[self.rank.0 as usize].register(base, bytes, access) }
    }

    /// Loads the word at `offset` of a region of this node.
    ///
    /// # Errors
    ///
    /// - [`AddrError::StaleKey`]: no region that peers may access is registered under `key`.
    /// - [`AddrError::OutOfRange`]: the word is not inside the region.
    /// - [`AddrError::Unaligned`]: `offset` is not a multiple of 8.
    /// - [`AddrError::PeerLost`]: the node was declared dead.
    pub fn load(&self, key: RegionKey, offset: u64) -> Result<u64, AddrError> {
        let remote = RemoteAddr { rank: self.rank, key, offset };
        execute(self, &Op::get_word(remote, Width::W8))
    }

    /// Stores a word at `offset` of a region of this node.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load), and [`AddrError::ReadOnly`] if peers may only read
    /// the region.
    pub fn store(&self, key: RegionKey, offset: u64, value: u64) -> Result<(), AddrError> {
        let remote = RemoteAddr { rank: self.rank, key, offset };
        execute(self, &Op::put_word(remote, Width::W8, value)).map(|_| ())
    }

    const fn wire(&self) -> SimMemory<'n> {
        SimMemory { tables: self.net.tables.as_slice(), from: self.rank }
    }
}

impl<'n> Domain for SimNode<'n> {
    type Endpoint<'d>
        = NodeEndpoint<'n>
    where
        Self: 'd;

    fn capabilities(&self) -> Capabilities {
        let config = self.net.config();
        Capabilities {
            name: "sim",
            load_store: false,
            device_atomics: true,
            inline_bytes_max: 0,
            in_flight_max: config.in_flight_max as usize,
            in_order: false,
            remote_completion: config.early == 0,
        }
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.net.tables.len() as u32
    }

    unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        // SAFETY: the caller's.
        unsafe { self.net.tables[self.rank.0 as usize].register(base, bytes, access) }
    }

    fn unregister(&self, key: RegionKey) -> bool {
        self.net.tables[self.rank.0 as usize].unregister(key)
    }

    fn endpoint(&self) -> NodeEndpoint<'n> {
        NodeEndpoint { net: self.net, queue: self.net.state.with(|state| state.open(self.rank)) }
    }
}

// SAFETY: the wire's contract, restricted to the node's own memory.
unsafe impl LoadStore for SimNode<'_> {
    fn size(&self) -> u32 {
        self.net.tables.len() as u32
    }

    fn resolve(&self, addr: RemoteAddr, bytes: u64, need: Need) -> Result<NonNull<u8>, AddrError> {
        if addr.rank != self.rank && (addr.rank.0 as usize) < self.net.tables.len() {
            return Err(AddrError::OtherNode { rank: addr.rank });
        }
        self.wire().resolve(addr, bytes, need)
    }

    fn local(&self, addr: LocalAddr, bytes: u64) -> Result<NonNull<u8>, AddrError> {
        self.wire().local(addr, bytes)
    }

    /// Does nothing: a node needs no event for a change that it made itself.
    fn notify(&self, _: RemoteAddr, _: NonNull<u8>) {}
}

impl Endpoint for NodeEndpoint<'_> {
    fn post(&mut self, ops: &[Op]) -> usize {
        self.net.state.with(|state| ops.iter().take_while(|op| state.post(self.queue, op)).count())
    }

    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        self.net.state.with(|state| state.poll(self.queue, completions))
    }

    /// A completion raises the event [`SimEvent::Interrupt`](super::SimEvent::Interrupt).
    fn arm(&mut self) -> bool {
        self.net.state.with(|state| state.arm(self.queue));
        true
    }
}

impl fmt::Debug for SimNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimNode({} of {})", self.rank, self.net.tables.len())
    }
}

impl fmt::Debug for NodeEndpoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeEndpoint({})", self.queue)
    }
}
