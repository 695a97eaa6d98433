//! An opened device and its queues.

use crate::mem::{Access, AddrError, Rank, Region, RegionKey, RegisterError};
use crate::op::Op;
use crate::tag::Tag;
use core::ptr::NonNull;

/// The abilities of a backend, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The backend's name, as in `tsumugi info`.
    pub name: &'static str,
    /// Whether this processor can load and store the memory of any of the ranks.
    pub load_store: bool,
    /// Whether the device does atomics of 4 and of 8 bytes without the target's CPU.
    pub device_atomics: bool,
    /// The longest put that needs no registered local memory; 0 if there is none.
    pub inline_bytes_max: u64,
    /// The number of operations that one endpoint holds in flight.
    pub in_flight_max: usize,
    /// Whether completions come in the order of the posts.
    pub in_order: bool,
    /// Whether a put that has completed has landed in remote memory. If not, its
    /// completion only means that its source may be written again: before the origin
    /// tells other ranks of the put, it must see the put land, by a get from the
    /// same place.
    pub remote_completion: bool,
}

/// An opened device: registers memory and makes endpoints.
///
/// # A rank that is given up
///
/// A rank that was silent for too long can be given up by another rank although it
/// is alive: it may have been kept off its processor, or the network may have been
/// cut. The layers above a domain rely on these rules:
///
/// - No operation or packet of a rank that this rank has given up is accepted,
///   whenever it was sent: no packet is handled, no operation takes effect here,
///   none is answered.
/// - An operation on a rank that was given up ends with [`AddrError::PeerLost`]; it
///   may have taken effect there, or may still do so.
/// - The two ranks need not agree about each other, and a third rank need not agree
///   with either: each rank acts on the notices that it has received. A rank that is
///   notified that it was given up ends.
///
/// The simulator's `Net::give_up` implements these rules; active messages, messages,
/// collectives, locks and region tables are tested under it.
///
/// Between nodes, packets from such a rank are dropped on arrival. A device that
/// carries out puts by itself must be able to refuse a single peer: an InfiniBand
/// queue pair is closed and accepts nothing more. libfabric withdraws a key from all
/// peers or from none, so a put that the other rank posted before it was notified
/// may land as long as that rank lives.
pub trait Domain: Sync {
    /// The backend's queues.
    type Endpoint<'d>: Endpoint
    where
        Self: 'd;

    /// The abilities of the backend.
    fn capabilities(&self) -> Capabilities;

    /// This rank.
    fn rank(&self) -> Rank;

    /// The number of ranks that the domain reaches.
    fn size(&self) -> u32;

    /// Registers memory of this rank.
    ///
    /// # Errors
    ///
    /// - [`RegisterError::TableFull`]: all region slots are in use or worn out.
    /// - [`RegisterError::OutOfReach`]: the backend cannot make this memory accessible to
    ///   peers.
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

    /// Ends a registration; returns false if it had ended before.
    fn unregister(&self, key: RegionKey) -> bool;

    /// Makes a new queue.
    fn endpoint(&self) -> Self::Endpoint<'_>;
}

/// One queue of a device. Nothing here blocks.
pub trait Endpoint: Send {
    /// Whether [`try_now`](Self::try_now) ever returns `Some`.
    const IS_IMMEDIATE: bool = false;

    /// Carries one operation out inside the call, if the device can do so: on memory
    /// of the same node, or by a message with inline data. `None`: the caller must
    /// post it.
    #[inline(always)]
    fn try_now(&mut self, op: &Op) -> Option<Result<u64, AddrError>> {
        let _ = op;
        None
    }

    /// Posts operations from the front of `ops` and returns how many were taken:
    /// fewer than all when the queue is full. An operation with an address that is
    /// refused counts as taken, and completes with the error.
    fn post(&mut self, ops: &[Op]) -> usize;

    /// Takes up to `completions.len()` completions and returns their number.
    fn poll(&mut self, completions: &mut [Completion]) -> usize;

    /// [`post`](Self::post) and then [`poll`](Self::poll); returns the number of
    /// operations taken and the number of completions. A device that can do both at
    /// once, under one lock, overrides it.
    #[inline]
    fn turn(&mut self, ops: &[Op], completions: &mut [Completion]) -> (usize, usize) {
        (self.post(ops), self.poll(completions))
    }

    /// Prepares the device for a sleep. True: the next completion raises the
    /// device's event, and the caller must poll once more before it sleeps. False:
    /// the device cannot raise an event.
    fn arm(&mut self) -> bool;
}

/// The end of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag that its descriptor carried.
    pub tag: Tag,
    /// The old value for a word operation, otherwise 0.
    pub result: Result<u64, AddrError>,
}

impl Completion {
    /// The value with which a poll buffer is filled before the first poll.
    pub const EMPTY: Self = Self { tag: Tag::NONE, result: Ok(0) };
}
