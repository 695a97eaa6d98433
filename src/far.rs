//! All that leaves the node: operations on ranks of other nodes, and what runs
//! between them.
//!
//! ```text
//!  run, post ─► engine ─► link ─┬─ puts, gets ─────────► the device
//!               (delegate)      └─ atomics: errands ─┐
//!  try_send ─────────────────────────────────────────┴► packets
//!                                                          │
//!  poll ◄─ completions, parcels, bells ◄───────────────────┘
//!    ▲ workers between ULTs and when idle; the watch when nobody else does
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `device` | the two networks that there are |
//! | `bad` | the same with faults, if they are asked for |
//! | `begin` | how callers begin operations, and wait for them |
//! | `network` | what is opened before the others are known |
//! | `descriptors` | room for connections that nobody has asked for |
//! | `errand` | what the target's processor does for others |
//! | `parcel` | what packets carry |
//! | `shared` | the device, and what comes from it, for all of these |
//! | `link` | one endpoint of the device, and the errands of it |
//! | `pieces` | puts and gets of memory that nobody has registered |
//! | `pin` | memory of the heap, and adopted, that the device is shown for that |
//! | `bounce` | memory that an operation may use after its caller has gone |
//! | `window` | what of this rank's heap others may fetch messages from |
//! | `fetch` | long messages, on their way from there |
//! | `beat` | who is still there |
//! | `silence` | who is given up because nothing is heard of it |
//! | `pulse` | which rank of this node is held off for too long |
//! | `suspect` | who seems lost, until the launcher has said who has died |
//! | `watch` | the thread that polls when nobody does |
//! | `pause` | how long it sleeps where the device does not call |
//! | `seen` | what tests ask of all this |
//! | `joined` | a put and what goes in one parcel with it |
//! | `hostile` | what fuzzing and tests feed errands and beats with |
//!
//! Puts and gets are the provider's. Atomics are errands: a parcel to the
//! target, where whoever polls carries the operation out with the processor's
//! own instructions, which mix with those of its node; so are the words that
//! this provider cannot move whole. Of a region whose agent is the device all
//! is the device's.
//!
//! Progress: blocking calls sleep; `post`, `try_send` and `poll` are lock-free
//! but for a short lock of the device's.

mod bad;
mod beat;
mod begin;
mod bounce;
mod descriptors;
mod device;
mod errand;
mod fetch;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod hostile;
mod joined;
mod link;
mod network;
mod parcel;
mod pause;
mod pieces;
mod pin;
mod pulse;
#[cfg(test)]
mod seen;
mod shared;
mod silence;
mod suspect;
mod watch;
mod window;

pub(crate) use bad::{Clock, Faults};
pub(crate) use bounce::CHUNKS;
pub(crate) use device::Device;
pub(crate) use errand::JOINED_BYTES;
pub(crate) use fetch::Fetched;
pub(crate) use network::{Cards, HOSTS_MAX, Network, open};
pub use network::{NetworkCounts, NetworkFacts, NoNetwork};
pub(crate) use parcel::{Handler, Parcel, ParcelError};
pub(crate) use watch::Watch;

use crate::config::Chosen;
use crate::{AddrError, Error, Rank};
use bad::Bad;
use beat::Beats;
use bounce::Bounce;
use fetch::Fetches;
use joined::Joined;
use link::Link;
use pin::Pins;
use shared::Shared;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock};
use suspect::Suspects;
use tsumugi_core::completion::CompletionTable;
use tsumugi_core::engine::{Delegate, Engine, Executor, Port, PortCounts, Work};
use tsumugi_core::mem::{Agent, LocalAddr, Region, RegionKey, RegisterError, RemoteAddr};
use tsumugi_core::ring::Mpsc;
use tsumugi_core::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tsumugi_pvas::Member;
use window::Windows;

/// The way to the other nodes.
pub(crate) struct Far {
    engine: Engine<'static, Link>,
    bounce: Bounce,
    /// What the engine points into; freed when the engine is gone.
    parts: NonNull<Parts>,
}

/// In the order in which it goes.
struct Parts {
    executors: Vec<Executor<'static, Link>>,
    counts: Vec<PortCounts>,
    rings: Vec<Mpsc<Work, RING_SLOTS>>,
    table: CompletionTable<SHARDS>,
    shared: Shared,
    fetches: Fetches,
}

// SAFETY: the parts are what the engine points to, which may be shared.
unsafe impl Send for Far {}
// SAFETY: the same.
unsafe impl Sync for Far {}

impl Far {
    /// The way of a rank whose domain was opened before.
    ///
    /// # Errors
    ///
    /// [`Error::Register`], [`Error::OutOfMemory`].
    pub(crate) fn new(network: Network, member: &Member, chosen: &Chosen) -> Result<Self, Error> {
        let Network { device, cards, faults } = network;
        let beats = Beats::new(member, chosen.silence, parcel::bytes_max(&device));
        let links = device.endpoints();
        let spins = chosen.spin > 0 || device.event(0).is_none();
        let windows = device.moves().memory.then(|| Windows::new(member, device.pins()));
        let lets_go = device.moves().memory && device.lets_go();
        let pins = lets_go.then(|| Pins::new(member));
        let parts = Box::leak(Box::new(Parts {
            executors: Vec::with_capacity(links),
            counts: (0..links).map(|_| PortCounts::new()).collect(),
            rings: (0..links).map(|_| Mpsc::new()).collect(),
            table: CompletionTable::new(),
            shared: Shared {
                bad: faults.map(|faults| Bad::new(faults, links)),
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
                beats,
                suspects: Suspects::default(),
                cards,
                windows,
                pins,
                joined: Joined::new(),
            },
            fetches: Fetches::new(),
        }));
        let whole = NonNull::from(&mut *parts);
        let Parts { executors, counts, rings, table, shared, .. } = parts;
        let (shared, table) = (&*shared, table.view());
        for (ring, counts) in rings.iter_mut().zip(&*counts) {
            let port = Port::new(Link::new(shared), table, counts);
            // SAFETY: the ring is the delegate's alone.
            executors.push(Executor::Delegate(unsafe { Delegate::new(port, ring.view()) }));
        }
        let engine = Engine::new(table, executors);
        let far = Self { engine, bounce: Bounce::new(member)?, parts: whole };
        far.register(&member.starter())?;
        far.register(&member.collective())?;
        far.register(far.bounce.region())?;
        far.shared().device.keep(far.bounce.region().key);
        Ok(far)
    }

    fn shared(&self) -> &'static Shared {
        // SAFETY: the parts live until `drop`, and what is returned is used by
        // methods of `self`, and by the watch, which holds an `Arc` of it.
        unsafe { &(*self.parts.as_ptr()).shared }
    }

    /// Whether the rank is of another node.
    pub(crate) fn leads_to(&self, rank: Rank) -> bool {
        let member = &self.shared().member;
        rank.0 < member.size() && !member.is_near(rank)
    }

    /// Whether that is the device's to reach: on another node, or as its own.
    pub(crate) fn has(&self, addr: &RemoteAddr) -> bool {
        addr.key.agent() == Agent::Device || self.leads_to(addr.rank)
    }

    /// What the links have done so far.
    pub(crate) fn counts(&self) -> NetworkCounts {
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
            shown: self.shared().pins.as_ref().map_or(0, Pins::shown),
            served: self.shared().served.load(Ordering::Relaxed),
        }
    }

    /// Whether the device can be the agent of words.
    pub(crate) fn has_atomics(&self) -> bool {
        self.shared().device.has_atomics()
    }

    /// Whose way it is.
    pub(crate) fn member(&self) -> &Member {
        &self.shared().member
    }

    /// Whether a put that has completed has landed.
    pub(crate) fn remote_completion(&self) -> bool {
        self.shared().device.remote_completion()
    }

    /// Longest copy between ranks of two other nodes that is quicker as a get and a
    /// put of the device's than if the one rank's processor is asked for it and says
    /// when it is done; 0: none is.
    pub(crate) fn carried_bytes_max(&self) -> u64 {
        if self.shared().device.moves().memory { CARRIED_BYTES } else { 0 }
    }

    /// Whether an errand comes after the puts, of at most `bytes` bytes each, that
    /// were posted before it by the same caller, and finds that they have landed.
    pub(crate) fn keeps_order(&self, bytes: u64) -> bool {
        self.shared().bad.is_none() && self.shared().device.keeps_order(bytes)
    }

    /// Shows a region of this rank to the other nodes, under the key that it
    /// has.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    pub(crate) fn register(&self, region: &Region) -> Result<(), RegisterError> {
        // SAFETY: it was registered with the partition's table by somebody who
        // promised the same, and is unregistered here first.
        unsafe { self.shared().device.register(region) }
    }

    /// Lends a chunk of the pool, if one is free.
    pub(crate) fn lend(&self) -> Option<LocalAddr> {
        let chunk = self.bounce.try_take()?;
        let at = chunk.local();
        chunk.into_index();
        Some(at)
    }

    /// Whether there will never be one again.
    pub(crate) fn has_lent_all(&self) -> bool {
        self.bounce.is_used_up()
    }

    /// Gives one back that was [lent](Self::lend), when the last operation on it
    /// has ended like that.
    pub(crate) fn give_back(&self, chunk: LocalAddr, result: Result<u64, AddrError>) {
        let chunk = self.bounce.lent(chunk.offset as usize / bounce::CHUNK_BYTES);
        // SAFETY: nothing is copied.
        let _ = unsafe { chunk.finish(result, None, 0) };
    }

    /// Ends that, before the key may become somebody else's.
    pub(crate) fn unregister(&self, key: RegionKey) {
        self.shared().device.unregister(key);
    }

    /// Long operations may show the device this memory, from and to where it is.
    ///
    /// # Safety
    ///
    /// These are whole values' bytes that nobody else adopts, and they stay
    /// mapped to what they are until [`disown`](Self::disown) has said yes.
    pub(crate) unsafe fn adopt(&self, start: usize, bytes: usize) {
        if let Some(pins) = &self.shared().pins {
            // SAFETY: the caller's.
            unsafe { pins.adopt(start, bytes) };
        }
    }

    /// Ends that. False: an operation on it has lost its peer, the device may
    /// have the memory still, and nothing has happened.
    pub(crate) fn disown(&self, start: usize) -> bool {
        let shared = self.shared();
        shared.pins.as_ref().is_none_or(|pins| pins.disown(shared, start))
    }

    /// Sends a parcel: it is copied, and arrives once and whole, or never if
    /// the peer is lost; in no order. Never waits.
    ///
    /// # Errors
    ///
    /// [`ParcelError`]: nothing was sent.
    pub(crate) fn try_send(&self, to: Rank, kind: Parcel, bytes: &[u8]) -> Result<(), ParcelError> {
        self.shared().try_send(0, to, kind, bytes)
    }

    /// Bytes of the longest parcel.
    pub(crate) fn parcel_bytes_max(&self) -> usize {
        parcel::bytes_max(&self.shared().device)
    }

    /// Sets what is called for each parcel of a kind, by whoever polls; it
    /// must be short and must not block. Once for each, before the start.
    pub(crate) fn on_parcel(&self, kind: Parcel, handle: Handler) {
        let set = self.shared().handlers[kind as usize].set(handle);
        assert!(set.is_ok(), "{kind:?} has a handler");
    }

    /// Sets what is called when a notifying operation from another node has
    /// changed a word of ours, after those who wait for it were told. Once,
    /// before the start.
    pub(crate) fn on_bell(&self, handle: Box<dyn Fn(LocalAddr) + Send + Sync>) {
        assert!(self.shared().bell.set(handle).is_ok(), "bells have a handler");
    }

    /// Sets what is called by whoever polls, when something has arrived: what
    /// others wait for need not wait for a worker. Once, before the start.
    pub(crate) fn on_arrival(&self, serve: Box<dyn Fn() + Send + Sync>) {
        assert!(self.shared().serve.set(serve).is_ok(), "arrivals have a handler");
    }

    fn fetches(&self) -> &'static Fetches {
        // SAFETY: as in `shared`.
        unsafe { &(*self.parts.as_ptr()).fetches }
    }

    /// Posts, takes what has completed and what has arrived. Whether there was
    /// anything.
    pub(crate) fn poll(&self) -> bool {
        self.poll_by(|| self.engine.poll() > 0)
    }

    /// The same by a poll of the engine that something else comes with.
    #[inline]
    fn poll_by(&self, poll: impl FnOnce() -> bool) -> bool {
        let polls = &self.shared().polls;
        // Relaxed: the watch only compares it. Of two at once one may be lost,
        // and it has changed all the same.
        polls.store(polls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.turn_by(poll)
    }

    /// The same, of the watch.
    fn turn(&self) -> bool {
        self.turn_by(|| self.engine.poll() > 0)
    }

    #[inline]
    fn turn_by(&self, poll: impl FnOnce() -> bool) -> bool {
        let shared = self.shared();
        shared.see_losses();
        let before = shared.arrivals.load(Ordering::Relaxed);
        let polled = poll();
        let fetched = self.fetches().drive(&self.engine, &self.bounce);
        let arrived = shared.arrivals.load(Ordering::Relaxed) != before;
        if arrived && let Some(serve) = shared.serve.get() {
            serve();
        }
        polled || fetched || arrived
    }

    /// Whether somebody should poll, rather than sleep until the device calls.
    pub(crate) fn needs_poll(&self) -> bool {
        self.has_unsent() || (self.shared().spins && self.engine.needs_poll())
    }

    fn has_unsent(&self) -> bool {
        let shared = self.shared();
        shared.unsent.load(Ordering::Relaxed) > 0
            || self.engine.has_gathered()
            || self.fetches().is_due()
            || shared.bad.as_ref().is_some_and(Bad::holds_any)
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        if self.shared().member.gone_count() > 0 {
            // The device may have operations to the lost, and is not closed
            // under them: the process ends.
            return;
        }
        // What is still under way has a second to end, in the endpoints' drop.
        self.engine.flush();
        // SAFETY: leaked in `new`; the engine, whose references are the last,
        // is not used any more.
        drop(unsafe { Box::from_raw(self.parts.as_ptr()) });
    }
}

impl fmt::Debug for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Far({:?}, {:?})", self.shared().device, self.engine)
    }
}

/// Bytes of the tables of a rank of a job on several nodes: of one endpoint,
/// and of what the endpoints share. Chunks of gets, in its heap, cost memory
/// once they were used.
pub(crate) fn footprint() -> usize {
    let engine = size_of::<Executor<'_, Link>>() + size_of::<PortCounts>();
    let link = engine + size_of::<Mpsc<Work, RING_SLOTS>>() + link::footprint();
    size_of::<Parts>() + size_of::<Far>() + link + device::footprint()
}

/// Bytes that a rank keeps of each rank of another node that it has spoken to,
/// each on a node of its own, and of not more than [`HOSTS_MAX`]; beyond that
/// their hosts are not kept.
pub(crate) const PEER_BYTES: usize = tsumugi_backends::PEER_BYTES + network::HOST_BYTES;

/// Bytes that the first rank of a node keeps of each other node: its beats, and
/// whom they go to. The names of hosts come on top.
pub(crate) const BEATS_BYTES: usize = Beats::NODE_BYTES + tsumugi_backends::PEER_BYTES;

/// A get and a put are four trips of the devices', with bytes that go twice; what
/// is asked for takes four trips that wait for processors. With as many bytes more
/// both take as long.
const CARRIED_BYTES: u64 = 32 << 10;
const SHARDS: usize = 16;
const RING_SLOTS: usize = 1024;
