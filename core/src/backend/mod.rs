//! How bytes move: the seam to devices and to shared memory.
//!
//! Three faces, and a backend shows those that it has:
//!
//! - [`Domain`] (`&self`): open, capabilities as data, register memory, make
//!   endpoints. Slow path.
//! - [`Endpoint`] (`&mut self`): one queue of a device. Post a batch, poll,
//!   arm for sleeping. One owner at a time; an executor provides the owner.
//! - [`LoadStore`] (`&self`): memory that this processor can load and store.
//!   All of the same-node path: no ring, no tag, no queue.
//!
//! One conformance suite (`tests/conformance`) holds for all of them;
//! the loopback passes it first and needs nothing. [`Fault`] and [`Trace`] wrap
//! any endpoint: with faults drawn from a seed, and with a log.

mod access;
mod bytes;
mod draw;
mod fault;
mod loopback;
mod queued;
mod trace;

pub use access::{execute, load_bytes, store_bytes};
pub use bytes::copy_bytes;
pub use draw::Draw;
pub use fault::{Fault, FaultDomain, Faults, Plan};
pub use loopback::{Delivery, Loopback, LoopbackEndpoint, LoopbackRank};
pub use queued::Queued;
pub use trace::{Log, Record, Stage, Trace};

use crate::mem::{
    Access, AddrError, LocalAddr, Need, Rank, Region, RegionKey, RegisterError, RemoteAddr,
};
use crate::op::Op;
use crate::tag::Tag;
use core::ptr::NonNull;

/// What a backend can do, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Its name, as in `tsumugi info`.
    pub name: &'static str,
    /// Whether any of its ranks' memory can be loaded and stored.
    pub load_store: bool,
    /// Whether it does atomics of 4 and of 8 bytes without the target's CPU.
    pub device_atomics: bool,
    /// Longest put that needs no registered local memory; 0 if none.
    pub inline_bytes_max: u64,
    /// Operations one endpoint holds in flight.
    pub in_flight_max: usize,
    /// Whether completions come in the order of the posts.
    pub in_order: bool,
    /// Whether a put that has completed has landed. If not, all that is known
    /// is that its source may be written again: what tells others of the put
    /// must first see it land, by a get from the same place.
    pub remote_completion: bool,
}

/// An opened device: registers memory and makes endpoints.
///
/// # A rank that is given up
///
/// A rank that is silent for too long is given up by another, and may live: it was
/// held off its processor, or cut off. What stands on a domain relies on this:
///
/// - Nothing of a rank that this one has given up is let in, whenever it was sent:
///   no packet is handled, no operation of it takes effect here, none is answered.
/// - An operation on it ends with [`AddrError::PeerLost`], and may have taken
///   effect, or may yet, there.
/// - The two do not have to agree, nor does a third: each knows what it was told.
///   A rank that is told that it was given up ends.
///
/// The simulator's `Net::give_up` is this rule; active messages, messages,
/// collectives, locks and tables of regions are run by it.
///
/// Between nodes packets are dropped as they come. A device that carries puts out
/// by itself has to refuse a single peer for that: a pair of InfiniBand is closed
/// and takes nothing more. libfabric withdraws a key from all peers or from
/// none, so what the other had posted before it was told may land there as long as
/// it lives.
pub trait Domain: Sync {
    /// Its queues.
    type Endpoint<'d>: Endpoint
    where
        Self: 'd;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// This rank.
    fn rank(&self) -> Rank;

    /// Ranks that it reaches.
    fn size(&self) -> u32;

    /// Registers memory of this rank.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    ///
    /// # Safety
    ///
    /// The contract of [`RegionTable::register`](crate::mem::RegionTable::register).
    unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError>;

    /// Ends a registration; false if it had ended before.
    fn unregister(&self, key: RegionKey) -> bool;

    /// A new queue.
    fn endpoint(&self) -> Self::Endpoint<'_>;
}

/// One queue of a device. Nothing here blocks.
pub trait Endpoint: Send {
    /// Whether [`try_now`](Self::try_now) ever answers.
    const IS_IMMEDIATE: bool = false;

    /// Carries one operation out inside the call, if the device can do that:
    /// memory of the same node, a message that goes inline. `None`: post it.
    #[inline(always)]
    fn try_now(&mut self, op: &Op) -> Option<Result<u64, AddrError>> {
        let _ = op;
        None
    }

    /// Posts operations from the front of `ops` and returns how many were
    /// taken: fewer than all when the queue is full. An operation that is
    /// refused for its address is taken, and completes with the error.
    fn post(&mut self, ops: &[Op]) -> usize;

    /// Takes up to `completions.len()` completions and returns how many.
    fn poll(&mut self, completions: &mut [Completion]) -> usize;

    /// [`post`](Self::post), and then [`poll`](Self::poll): how many were taken,
    /// and how many completions there were. For a device that can do both in
    /// one go, under one lock.
    #[inline]
    fn turn(&mut self, ops: &[Op], completions: &mut [Completion]) -> (usize, usize) {
        (self.post(ops), self.poll(completions))
    }

    /// Prepares to sleep: after true the next completion will raise the
    /// device's event. Poll once more before sleeping. False: it cannot.
    fn arm(&mut self) -> bool;
}

/// One operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag that its descriptor carried.
    pub tag: Tag,
    /// Word operations: the old value. Otherwise 0.
    pub result: Result<u64, AddrError>,
}

impl Completion {
    /// What a poll buffer is filled with before the first poll.
    pub const EMPTY: Self = Self { tag: Tag::NONE, result: Ok(0) };
}

/// Memory of ranks that this processor can load and store.
///
/// # Safety
///
/// `resolve` must return the start of `bytes` mapped bytes, which stay mapped
/// as long as `self` lives and are only ever accessed as plain bytes or
/// atomics, by any thread of any rank. `local` the same, for this rank's own
/// registrations of any access.
pub unsafe trait LoadStore: Sync {
    /// Ranks of the job.
    fn size(&self) -> u32;

    /// Where these bytes of that rank are, after all checks: rank, liveness,
    /// key, range, access. Wait-free.
    ///
    /// # Errors
    ///
    /// [`AddrError`]; [`AddrError::OtherNode`] for a rank whose memory this
    /// processor cannot reach.
    fn resolve(&self, addr: RemoteAddr, bytes: u64, need: Need) -> Result<NonNull<u8>, AddrError>;

    /// The same for the local end of a put or get.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    fn local(&self, addr: LocalAddr, bytes: u64) -> Result<NonNull<u8>, AddrError>;

    /// Wakes whoever waits for the word at `addr`, which has just changed by
    /// a sequentially consistent operation. `at` is what `resolve` answered.
    fn notify(&self, addr: RemoteAddr, at: NonNull<u8>);
}
