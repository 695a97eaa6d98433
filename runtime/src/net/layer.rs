//! The rank's endpoint of the network layer, which the other parts of a rank call.

use super::bounce::{Bounce, CHUNK_BYTES};
use super::facts::NetworkCounts;
use super::fault::FaultInjector;
use super::fetch::Fetches;
use super::fetch_window::FetchWindows;
use super::heartbeat::Heartbeats;
use super::joined::Joined;
use super::link::NetLink;
use super::network::{self, Network};
use super::parcel::{Parcel, ParcelError, ParcelHandler};
use super::registration::RegistrationCache;
use super::shared::NetShared;
use super::suspect::Suspects;
use super::{device, link};
use crate::completion_memory::CompletionMemory;
use crate::config::Chosen;
use crate::error::Error;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock};
use tsumugi_core::completion::Completions;
use tsumugi_core::engine::{Delegate, Engine, Executor, Port, PortCounts, Work};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::mem::{Agent, LocalAddr, Region, RegionKey, RegisterError, RemoteAddr};
use tsumugi_core::ring::Mpsc;
use tsumugi_core::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tsumugi_pvas::Member;

/// The rank's endpoint of the network layer, for all ranks of other nodes.
pub struct NetLayer {
    pub(super) engine: Engine<'static, NetLink>,
    pub(super) bounce: Bounce,
    /// The memory that the engine points into; it is freed after the engine.
    parts: NonNull<NetParts>,
}

/// The parts that the engine borrows, in the order in which they are dropped.
struct NetParts {
    executors: Vec<Executor<'static, NetLink>>,
    counts: Vec<PortCounts>,
    rings: Vec<Mpsc<Work, RING_SLOTS>>,
    table: CompletionMemory,
    shared: NetShared,
    fetches: Fetches,
}

// SAFETY: the only field that is not `Send` is the pointer to the parts; the parts
// are owned by this value alone, and the engine that points into them may be shared.
unsafe impl Send for NetLayer {}
// SAFETY: the same.
unsafe impl Sync for NetLayer {}

impl NetLayer {
    /// Makes the network layer of a rank on a device that was opened before.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]: the heap has no room for the bounce buffers.
    /// [`Error::Register`]: the device cannot register memory of the rank.
    pub(crate) fn new(network: Network, member: &Member, chosen: &Chosen) -> Result<Self, Error> {
        let Network { device, cards, faults } = network;
        let heartbeats = Heartbeats::new(member, chosen.silence, device.parcel_bytes_max());
        let links = device.endpoints();
        let spins = chosen.spin > 0 || device.event(0).is_none();
        let windows = device.moves().memory.then(|| FetchWindows::new(member, device.pins()));
        let lets_go = device.moves().memory && device.lets_go();
        let pins = lets_go.then(|| RegistrationCache::new(member));
        let parts = Box::leak(Box::new(NetParts {
            executors: Vec::with_capacity(links),
            counts: (0..links).map(|_| PortCounts::new()).collect(),
            rings: (0..links).map(|_| Mpsc::new()).collect(),
            table: CompletionMemory::new(TAGS),
            shared: NetShared {
                bad: faults.map(|faults| FaultInjector::new(faults, links)),
                device,
                member: member.clone(),
                direct: member.direct(),
                handlers: std::array::from_fn(|_| OnceLock::new()),
                bell: OnceLock::new(),
                serve: OnceLock::new(),
                gone_seen: Mutex::new(0),
                gone_count: AtomicU32::new(0),
                polls: AtomicU64::new(0),
                asleep: AtomicU64::new(0),
                nap: AtomicU32::new(0),
                arrivals: AtomicU64::new(0),
                strays: AtomicU64::new(0),
                served: AtomicU64::new(0),
                bounced: AtomicU64::new(0),
                unsent: AtomicU64::new(0),
                turned_away: AtomicBool::new(false),
                spins,
                rounds: chosen.spin,
                is_looked_for: AtomicBool::new(false),
                heartbeats,
                suspects: Suspects::default(),
                cards,
                windows,
                pins,
                joined: Joined::new(),
            },
            fetches: Fetches::new(),
        }));
        let whole = NonNull::from(&mut *parts);
        let NetParts { executors, counts, rings, table, shared, .. } = parts;
        let (shared, table) = (&*shared, table.view());
        for (ring, counts) in rings.iter_mut().zip(&*counts) {
            let port = Port::new(NetLink::new(shared), table, counts);
            // SAFETY: only this delegate takes from the ring.
            executors.push(Executor::Delegate(unsafe { Delegate::new(port, ring.view()) }));
        }
        let engine = Engine::new(table, executors);
        let net = Self { engine, bounce: Bounce::new(member)?, parts: whole };
        net.register(&member.starter())?;
        net.register(&member.collective())?;
        net.register(net.bounce.region())?;
        net.shared().device.keep(net.bounce.region().key);
        Ok(net)
    }

    pub(super) fn shared(&self) -> &'static NetShared {
        // SAFETY: the parts live until `drop`. The reference is used only by methods
        // of `self`, and by the poller, which holds an `Arc` of `self`.
        unsafe { &(*self.parts.as_ptr()).shared }
    }

    /// Whether the rank is of another node.
    #[inline]
    pub fn leads_to(&self, rank: Rank) -> bool {
        let member = &self.shared().member;
        rank.0 < member.size() && !member.is_near(rank)
    }

    /// Whether the device carries out operations on `addr`: its rank is on another
    /// node, or the agent of its region is the device.
    pub(crate) fn has(&self, addr: &RemoteAddr) -> bool {
        addr.key.agent() == Agent::Device || self.leads_to(addr.rank)
    }

    /// How much the links have done so far.
    pub fn counts(&self) -> NetworkCounts {
        // SAFETY: the parts live until `drop`.
        let counts = unsafe { &self.parts.as_ref().counts };
        let sum = |of: fn(&PortCounts) -> &AtomicU64| {
            counts.iter().map(|counts| of(counts).load(Ordering::Relaxed)).sum()
        };
        NetworkCounts {
            operations: sum(|of| &of.posted),
            doorbells: sum(|of| &of.doorbells),
            cards: self.shared().cards.fetched(),
            bounced: self.shared().bounced.load(Ordering::Relaxed),
            shown: self.shared().pins.as_ref().map_or(0, RegistrationCache::shown),
            served: self.shared().served.load(Ordering::Relaxed),
        }
    }

    /// Whether the device can be the agent of words.
    pub fn has_atomics(&self) -> bool {
        self.shared().device.has_atomics()
    }

    /// The member of the node that has this network layer.
    pub(crate) fn member(&self) -> &Member {
        &self.shared().member
    }

    /// Whether a completed put is in the target's memory (remote completion).
    pub(crate) fn remote_completion(&self) -> bool {
        self.shared().device.remote_completion()
    }

    /// Length in bytes of the longest copy between ranks of two other nodes that is
    /// faster as a get and a put of this rank's device than as a request to the
    /// processor of one of them; 0: no copy is.
    pub(crate) fn carried_bytes_max(&self) -> u64 {
        if self.shared().device.moves().memory { CARRIED_BYTES } else { 0 }
    }

    /// Whether an emulated operation arrives after the puts, of at most `bytes` bytes
    /// each, that the same caller posted before it, and is carried out when they have
    /// landed.
    pub(crate) fn keeps_order(&self, bytes: u64) -> bool {
        self.shared().bad.is_none() && self.shared().device.keeps_order(bytes)
    }

    /// Registers a region of this rank with the device, under the key that it has,
    /// so that the other nodes can access it.
    ///
    /// # Errors
    ///
    /// [`RegisterError`] of the device.
    pub fn register(&self, region: &Region) -> Result<(), RegisterError> {
        // SAFETY: the region is in the partition's table, and the caller that
        // registered it there promised the same; it is unregistered here before it
        // is there.
        unsafe { self.shared().device.register(region) }
    }

    /// Takes a chunk of the bounce buffers, if one is free.
    pub(crate) fn lend(&self) -> Option<LocalAddr> {
        let chunk = self.bounce.try_take()?;
        let at = chunk.local();
        chunk.into_index();
        Some(at)
    }

    /// Whether no chunk will ever be free again.
    pub(crate) fn has_lent_all(&self) -> bool {
        self.bounce.is_used_up()
    }

    /// Gives back a chunk that was [lent](Self::lend), when the last operation on it
    /// has ended with `result`.
    pub(crate) fn give_back(&self, chunk: LocalAddr, result: Result<u64, AddrError>) {
        let chunk = self.bounce.lent(chunk.offset as usize / CHUNK_BYTES);
        // SAFETY: nothing is copied.
        let _ = unsafe { chunk.finish(result, None, 0) };
    }

    /// Ends the registration, before the key may be used for another region.
    pub fn unregister(&self, key: RegionKey) {
        self.shared().device.unregister(key);
    }

    /// Allows long operations to register this memory with the device and to move it
    /// without a copy.
    ///
    /// # Safety
    ///
    /// The bytes are those of whole values that are not adopted otherwise, and they
    /// stay mapped to the same memory until [`disown`](Self::disown) has returned
    /// true.
    pub unsafe fn adopt(&self, start: usize, bytes: usize) {
        if let Some(pins) = &self.shared().pins {
            // SAFETY: the caller's.
            unsafe { pins.adopt(start, bytes) };
        }
    }

    /// Ends the adoption. Returns false, and changes nothing, if an operation on the
    /// memory has lost its peer: the device may still access the memory.
    pub fn disown(&self, start: usize) -> bool {
        let shared = self.shared();
        shared.pins.as_ref().is_none_or(|pins| pins.disown(shared.registrar(), start))
    }

    /// Sends a parcel. The bytes are copied; the parcel arrives once and whole, or
    /// never if the peer is lost. Parcels keep no order. Never waits.
    ///
    /// # Errors
    ///
    /// [`ParcelError`]; nothing was sent.
    pub(crate) fn try_send(&self, to: Rank, kind: Parcel, bytes: &[u8]) -> Result<(), ParcelError> {
        self.shared().try_send(0, to, kind, bytes)
    }

    /// Bytes of the longest parcel.
    pub(crate) fn parcel_bytes_max(&self) -> usize {
        self.shared().device.parcel_bytes_max()
    }

    /// Sets the handler of a kind of parcel. The thread that polls calls it for each
    /// parcel; it must be short and must not block. Once for each kind, before the
    /// start.
    pub(crate) fn on_parcel(&self, kind: Parcel, handle: ParcelHandler) {
        let set = self.shared().handlers[kind as usize].set(handle);
        assert!(set.is_ok(), "the handler of {kind:?} is set once");
    }

    /// Sets the function that is called when a notifying operation from another node
    /// has changed a word of this rank, after the waiters for that word were woken.
    /// Once, before the start.
    pub(crate) fn on_bell(&self, handle: Box<dyn Fn(LocalAddr) + Send + Sync>) {
        assert!(self.shared().bell.set(handle).is_ok(), "the handler of bells is set once");
    }

    /// Sets the function that the polling thread calls when something has arrived,
    /// so that requests of other ranks need not wait for a worker. Once, before the
    /// start.
    pub(crate) fn on_arrival(&self, serve: Box<dyn Fn() + Send + Sync>) {
        assert!(self.shared().serve.set(serve).is_ok(), "the handler of arrivals is set once");
    }

    pub(super) fn fetches(&self) -> &'static Fetches {
        // SAFETY: the parts live until `drop`, as in `shared`.
        unsafe { &(*self.parts.as_ptr()).fetches }
    }

    /// Posts operations, and takes completions and arrivals. Returns whether there
    /// were any.
    pub(crate) fn poll(&self) -> bool {
        self.count_poll();
        self.turn()
    }

    /// Shows the poller that another thread polls.
    #[inline]
    pub(super) fn count_poll(&self) {
        let polls = &self.shared().polls;
        // Relaxed: the poller only compares the count. If two threads poll at once,
        // one of their increments may be lost, but the count changes all the same.
        polls.store(polls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Polls as [`poll`](Self::poll) does, for the poller; its polls are not counted.
    pub(super) fn turn(&self) -> bool {
        let before = self.begin_turn();
        let polled = self.engine.poll() > 0;
        self.end_turn(before, polled)
    }

    /// Begins a turn; the caller works the engine next. Returns how much has arrived
    /// before.
    #[inline]
    pub(super) fn begin_turn(&self) -> u64 {
        self.shared().see_losses();
        self.shared().arrivals.load(Ordering::Relaxed)
    }

    /// Ends a turn: handles what the engine has brought. Returns whether there was
    /// anything; `polled`: an operation has ended.
    #[inline]
    pub(super) fn end_turn(&self, before: u64, polled: bool) -> bool {
        let shared = self.shared();
        let fetched = self.fetches().drive(&self.engine, &self.bounce);
        let arrived = shared.arrivals.load(Ordering::Relaxed) != before;
        if arrived && let Some(serve) = shared.serve.get() {
            serve();
        }
        polled || fetched || arrived
    }

    /// Whether a thread should poll, rather than sleep until the device's event.
    pub(crate) fn needs_poll(&self) -> bool {
        self.has_unsent() || (self.shared().spins && self.engine.needs_poll())
    }

    pub(super) fn has_unsent(&self) -> bool {
        let shared = self.shared();
        shared.unsent.load(Ordering::Relaxed) > 0
            || self.engine.has_gathered()
            || self.fetches().is_due()
            || shared.bad.as_ref().is_some_and(FaultInjector::holds_any)
    }
}

impl Drop for NetLayer {
    fn drop(&mut self) {
        if self.shared().member.gone_count() > 0 {
            // The device may still have operations to lost ranks, and it must not be
            // closed under them: the memory is leaked, and the process ends.
            return;
        }
        // The endpoints' drop waits up to a second for operations under way.
        self.engine.flush();
        // SAFETY: leaked in `new`; the engine holds the last references, and it is
        // not used any more.
        drop(unsafe { Box::from_raw(self.parts.as_ptr()) });
    }
}

impl fmt::Debug for NetLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NetLayer({:?}, {:?})", self.shared().device, self.engine)
    }
}

/// Bytes of the tables of a rank of a job on several nodes: of one endpoint, and of
/// the parts that the endpoints share. The bounce chunks, in the heap, take memory
/// only after they were used.
pub fn footprint() -> usize {
    let engine = size_of::<Executor<'_, NetLink>>() + size_of::<PortCounts>();
    let link = engine + size_of::<Mpsc<Work, RING_SLOTS>>() + link::footprint();
    let tables = size_of::<NetParts>() + Completions::memory_size(TAGS);
    tables + size_of::<NetLayer>() + link + device::footprint()
}

/// Bytes that a rank keeps for each rank of another node with which it has
/// communicated, if each is on a node of its own, and for at most [`HOSTS_MAX`](super::HOSTS_MAX) of
/// them: the names of further hosts are not kept.
pub const PEER_BYTES: usize = tsumugi_backends::PEER_BYTES + network::HOST_BYTES;

/// Bytes that the first rank of a node keeps for each other node, for its heartbeats
/// and their targets. The names of hosts come on top.
pub const HEARTBEAT_BYTES: usize = Heartbeats::NODE_BYTES + tsumugi_backends::PEER_BYTES;

/// A get and a put take four trips of the devices, and the bytes go twice; a request
/// to a processor takes four trips that wait for processors. At this many bytes both
/// take equally long.
const CARRIED_BYTES: u64 = 32 << 10;
/// Operations in flight of a rank. A few less than 1,024, so that the tables of a rank of a
/// million stay below 8 MB (`src/ledger/paper.rs`).
const TAGS: usize = 1016;
const RING_SLOTS: usize = 1024;
