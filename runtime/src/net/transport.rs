//! The transport: all that the services of a rank use of the network.
//!
//! ```text
//!  Am ──────────┐                       ┌─ one-sided operations ─► engine, links
//!  Messages ────┼─► Arc<dyn Transport> ─┼─ packets of a service ─► links
//!  GlobalDriver ┤                       ├─ fetches of messages ──► engine
//!  TreeService ─┘                       └─ facts about the device
//! ```
//!
//! [`NetLayer`] implements the trait for the networks of a job; the tests of the services
//! have networks of threads in its place. Each method that a transport may lack has a
//! default: no operation finds room, no packet is short enough, and nothing is fetched.
//! So a network for a test implements the part that its service uses.
//!
//! The services get no other access to the network. The rank (`node`, `start`) sets the
//! handlers of doorbells and of arrivals, and the route of an operation of the program is
//! chosen by `route`: those two use [`NetLayer`] itself.

use super::fetch::FetchHandler;
use super::layer::NetLayer;
use super::parcel::{Parcel, ParcelError, ParcelHandler};
use tsumugi_core::completion::{Busy, Callback, Why};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::mem::{LocalAddr, Region, RegisterError};
use tsumugi_core::op::Op;

/// Carries one-sided operations and packets to the ranks of other nodes. No method waits.
pub trait Transport: Send + Sync {
    /// Whether `rank` is of this node: operations on it are carried out at once, and
    /// its doorbell is in the node's memory.
    fn is_near(&self, rank: Rank) -> bool;

    /// Whether a rank of another node lives, as far as this node knows. When this
    /// changes, the death is declared in the parking lots of this node.
    fn is_alive(&self, rank: Rank) -> bool;

    /// Registers a region of this rank with the device, for the other nodes.
    ///
    /// # Errors
    ///
    /// [`RegisterError`]: the device has no room for it.
    fn register(&self, region: &Region) -> Result<(), RegisterError> {
        let _ = region;
        Ok(())
    }

    /// Begins an operation on a rank of another node. `done` is called exactly once,
    /// on any thread, possibly before this returns. A put that has succeeded has
    /// landed in the target's memory. After an operation that notifies,
    /// [`rang`](crate::service::Service::rang) is called at the target.
    ///
    /// # Errors
    ///
    /// [`Busy`]: there is no room now, and nothing has happened.
    fn post(&self, op: &Op, done: Callback) -> Result<(), Busy<()>> {
        let _ = done;
        Err(no_room(op))
    }

    /// Begins a put of at most `JOINED_BYTES` bytes and a second operation, on the same
    /// rank, which is carried out after the put, as one operation: its result is that
    /// of the second.
    ///
    /// # Errors
    ///
    /// [`Busy`]: there is no room now for both as one, and nothing has happened.
    fn post_joined(&self, put: &Op, then: &Op, done: Callback) -> Result<(), Busy<()>> {
        let _ = (then, done);
        Err(no_room(put))
    }

    /// Whether a completed put is in the target's memory (remote completion).
    fn remote_completion(&self) -> bool {
        true
    }

    /// Whether an operation of the target's processor arrives after the puts, of at most
    /// `bytes` bytes each, that the same caller posted before it, and is carried out
    /// when they have landed.
    fn keeps_order(&self, bytes: u64) -> bool {
        let _ = bytes;
        false
    }

    /// Length in bytes of the longest copy between ranks of two other nodes that is
    /// faster as a get and a put of this rank's device than as a request to the
    /// processor of one of them; 0: no copy is.
    fn carried_bytes_max(&self) -> u64 {
        0
    }

    /// Lends a buffer of this rank for such a copy, if one is free now. It has as many
    /// bytes as are copied at most.
    fn lend(&self) -> Option<LocalAddr> {
        None
    }

    /// Whether no buffer will ever be free again: all are lost with lost peers.
    fn has_lent_all(&self) -> bool {
        true
    }

    /// Gives a buffer back, when the last operation on it has ended with `result`.
    fn give_back(&self, chunk: LocalAddr, result: Result<u64, AddrError>) {
        let _ = (chunk, result);
    }

    /// Bytes of the longest parcel (packet payload) of a service. Of messages at least
    /// [`PARCEL_BYTES_MIN`](tsumugi_core::msg::PARCEL_BYTES_MIN).
    fn parcel_bytes_max(&self) -> usize {
        0
    }

    /// Sends a parcel; the bytes are copied. It arrives once and whole, or never if the
    /// peer is lost. Parcels keep no order. May be called under a lock that no handler
    /// of parcels takes.
    ///
    /// # Errors
    ///
    /// [`ParcelError`]; nothing was sent.
    fn try_send(&self, to: Rank, kind: Parcel, bytes: &[u8]) -> Result<(), ParcelError> {
        let _ = (to, kind, bytes);
        Err(ParcelError::TooLong)
    }

    /// Sets the handler of a kind of parcel. The thread that polls calls it for each
    /// parcel; it must be short and must not block. Once for each kind, before the
    /// first parcel.
    fn on_parcel(&self, kind: Parcel, handle: ParcelHandler) {
        let _ = (kind, handle);
    }

    /// The word by which ranks of other nodes can [fetch](Self::fetch) these bytes of
    /// this rank, if they can. May be called under the same lock as
    /// [`try_send`](Self::try_send).
    fn place(&self, at: usize, bytes: usize) -> Option<u64> {
        let _ = (at, bytes);
        None
    }

    /// Begins to fetch bytes from the place that a rank has sent; the place is not
    /// trusted. The [handler](Self::on_fetched) is called with `id` when the fetch has
    /// ended. False: nothing has begun.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of `bytes` bytes until then.
    unsafe fn fetch(&self, from: Rank, place: u64, to: *mut u8, bytes: u64, id: u64) -> bool {
        let _ = (from, place, to, bytes, id);
        false
    }

    /// Sets the handler of fetches that have ended. The thread that polls calls it; it
    /// must be short and must not block. Once, before the first fetch.
    fn on_fetched(&self, handle: FetchHandler) {
        drop(handle);
    }

    /// Posts what has gathered, takes parcels that have come, and moves fetches on.
    /// Returns whether there was anything.
    fn poll(&self) -> bool {
        false
    }
}

fn no_room(op: &Op) -> Busy<()> {
    Busy { op: *op, buf: (), why: Why::RingFull }
}

impl Transport for NetLayer {
    fn is_near(&self, rank: Rank) -> bool {
        !self.leads_to(rank)
    }

    fn is_alive(&self, rank: Rank) -> bool {
        self.member().is_alive(rank)
    }

    fn register(&self, region: &Region) -> Result<(), RegisterError> {
        Self::register(self, region)
    }

    fn post(&self, op: &Op, done: Callback) -> Result<(), Busy<()>> {
        Self::post(self, op, done)
    }

    fn post_joined(&self, put: &Op, then: &Op, done: Callback) -> Result<(), Busy<()>> {
        Self::post_joined(self, put, then, done)
    }

    fn remote_completion(&self) -> bool {
        Self::remote_completion(self)
    }

    fn keeps_order(&self, bytes: u64) -> bool {
        Self::keeps_order(self, bytes)
    }

    fn carried_bytes_max(&self) -> u64 {
        Self::carried_bytes_max(self)
    }

    fn lend(&self) -> Option<LocalAddr> {
        Self::lend(self)
    }

    fn has_lent_all(&self) -> bool {
        Self::has_lent_all(self)
    }

    fn give_back(&self, chunk: LocalAddr, result: Result<u64, AddrError>) {
        Self::give_back(self, chunk, result);
    }

    fn parcel_bytes_max(&self) -> usize {
        Self::parcel_bytes_max(self)
    }

    fn try_send(&self, to: Rank, kind: Parcel, bytes: &[u8]) -> Result<(), ParcelError> {
        Self::try_send(self, to, kind, bytes)
    }

    fn on_parcel(&self, kind: Parcel, handle: ParcelHandler) {
        Self::on_parcel(self, kind, handle);
    }

    fn place(&self, at: usize, bytes: usize) -> Option<u64> {
        Self::place(self, at, bytes)
    }

    unsafe fn fetch(&self, from: Rank, place: u64, to: *mut u8, bytes: u64, id: u64) -> bool {
        // SAFETY: the caller's promise.
        unsafe { Self::fetch(self, from, place, to, bytes, id) }
    }

    fn on_fetched(&self, handle: FetchHandler) {
        Self::on_fetched(self, handle);
    }

    fn poll(&self) -> bool {
        Self::poll(self)
    }
}
