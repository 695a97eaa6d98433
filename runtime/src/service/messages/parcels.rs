//! The interface to the carrier of parcels between nodes.

use crate::net::{FetchHandler, NetLayer, Parcel, ParcelError};
use tsumugi_core::mem::Rank;
use tsumugi_pvas::Member;
use tsumugi_ult::SystemFutex;

/// Sends parcels, which arrive once and whole, or never, in any order.
pub trait Parcels: Send + Sync {
    /// Bytes of the longest parcel: at least
    /// [`PARCEL_BYTES_MIN`](tsumugi_core::msg::PARCEL_BYTES_MIN).
    fn parcel_bytes_max(&self) -> usize;

    /// Sends a parcel; the bytes are copied. Never waits; called under a lock that
    /// the handler of parcels does not take.
    fn try_send(&self, to: Rank, bytes: &[u8]) -> Result<(), Unsent>;

    /// Sets the handler of parcels that come; once, before the first one. The
    /// handler is short and does not block.
    fn on_parcel(&self, handle: ParcelHandler);

    /// The word by which ranks of other nodes can fetch these bytes, if they can;
    /// called under the same lock.
    fn place(&self, at: u64, bytes: u64) -> Option<u64> {
        let _ = (at, bytes);
        None
    }

    /// Begins to fetch bytes from such a place, which the rank has sent and which is
    /// not trusted. False: nothing has begun.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of `bytes` bytes until the fetch has ended.
    unsafe fn fetch(&self, from: Rank, place: u64, to: *mut u8, bytes: u64, id: u64) -> bool {
        let _ = (from, place, to, bytes, id);
        false
    }

    /// Sets the handler of fetches that have ended, which gets their ids; once,
    /// before the first one. The handler is short and does not block.
    fn on_fetched(&self, handle: FetchHandler) {
        drop(handle);
    }

    /// Takes parcels that have come, and moves fetches on. Returns whether there was
    /// anything.
    fn poll(&self) -> bool;
}

/// A handler of parcels: it gets the sender and the bytes.
pub type ParcelHandler = Box<dyn Fn(Rank, &[u8]) + Send + Sync>;

/// Why a parcel was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// There is no room now.
    Full,
    /// The rank is gone: its loss will be declared.
    Lost,
}

impl Parcels for NetLayer {
    fn parcel_bytes_max(&self) -> usize {
        Self::parcel_bytes_max(self)
    }

    fn try_send(&self, to: Rank, bytes: &[u8]) -> Result<(), Unsent> {
        Self::try_send(self, to, Parcel::Message, bytes).map_err(|error| match error {
            ParcelError::Full => Unsent::Full,
            ParcelError::TooLong => unreachable!("a parcel of {} bytes is too long", bytes.len()),
            ParcelError::Addr(_) => Unsent::Lost,
        })
    }

    fn on_parcel(&self, handle: ParcelHandler) {
        let member = self.member().clone();
        let handle = Box::new(move |from, bytes: &[u8]| {
            handle(from, bytes);
            ring(&member);
        });
        Self::on_parcel(self, Parcel::Message, handle);
    }

    fn place(&self, at: u64, bytes: u64) -> Option<u64> {
        Self::place(self, at as usize, bytes as usize)
    }

    unsafe fn fetch(&self, from: Rank, place: u64, to: *mut u8, bytes: u64, id: u64) -> bool {
        // SAFETY: the caller's promise.
        unsafe { Self::fetch(self, from, place, to, bytes, id) }
    }

    fn on_fetched(&self, handle: FetchHandler) {
        let member = self.member().clone();
        let handle = Box::new(move |id, from, result| {
            handle(id, from, result);
            ring(&member);
        });
        Self::on_fetched(self, handle);
    }

    fn poll(&self) -> bool {
        Self::poll(self)
    }
}

/// Wakes a thread that looks for messages: the thread that polls the network may be
/// another one.
fn ring(member: &Member) {
    let control = member.control();
    control.bells().ring_helped(&SystemFutex, || control.set_neglected());
}
