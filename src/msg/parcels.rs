//! The seam to whatever carries parcels to ranks of other nodes.

use crate::Rank;
use crate::far::{Far, Fetched, Parcel, ParcelError};
use tsumugi_pvas::Member;
use tsumugi_ult::SystemFutex;

/// Sends bytes that arrive once and whole or never, in any order.
pub(crate) trait Parcels: Send + Sync {
    /// Bytes of the longest parcel: at least
    /// [`PARCEL_BYTES_MIN`](tsumugi_core::msg::PARCEL_BYTES_MIN).
    fn parcel_bytes_max(&self) -> usize;

    /// Sends a parcel, whose bytes are copied. Never waits; called under a
    /// lock that the handler of parcels does not take.
    fn try_send(&self, to: Rank, bytes: &[u8]) -> Result<(), Unsent>;

    /// Who takes parcels that come; set once, before the first one. It is
    /// short and does not block.
    fn on_parcel(&self, handle: Handler);

    /// The word by which ranks of other nodes can fetch these bytes, if they
    /// can; called under that lock, too.
    fn place(&self, at: u64, bytes: u64) -> Option<u64> {
        let _ = (at, bytes);
        None
    }

    /// Begins to fetch bytes from such a place of a rank's, which has told it
    /// and is not trusted. False: nothing has begun.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of `bytes` bytes until it has ended.
    unsafe fn fetch(&self, from: Rank, place: u64, to: *mut u8, bytes: u64, id: u64) -> bool {
        let _ = (from, place, to, bytes, id);
        false
    }

    /// Who is told of each that has ended, by its id; set once, before the
    /// first one. It is short and does not block.
    fn on_fetched(&self, handle: Fetched) {
        drop(handle);
    }

    /// Takes what has come, and moves on what is under way. Whether there was
    /// anything.
    fn poll(&self) -> bool;
}

/// What takes a parcel: who sent it, and its bytes.
pub(crate) type Handler = Box<dyn Fn(Rank, &[u8]) + Send + Sync>;

/// Why a parcel was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsent {
    /// There is no room now.
    Full,
    /// The rank is gone: it will be said to be lost.
    Lost,
}

impl Parcels for Far {
    fn parcel_bytes_max(&self) -> usize {
        Self::parcel_bytes_max(self)
    }

    fn try_send(&self, to: Rank, bytes: &[u8]) -> Result<(), Unsent> {
        Self::try_send(self, to, Parcel::Message, bytes).map_err(|error| match error {
            ParcelError::Full => Unsent::Full,
            ParcelError::TooLong => unreachable!("a parcel of {} bytes", bytes.len()),
            ParcelError::Addr(_) => Unsent::Lost,
        })
    }

    fn on_parcel(&self, handle: Handler) {
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
        // SAFETY: the caller's.
        unsafe { Self::fetch(self, from, place, to, bytes, id) }
    }

    fn on_fetched(&self, handle: Fetched) {
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

/// Something has come for messages: whoever polls may be none of those who
/// look for them.
fn ring(member: &Member) {
    let control = member.control();
    control.bells().ring_helped(&SystemFutex, || control.set_neglected());
}
