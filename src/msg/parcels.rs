//! The seam to whatever carries parcels to ranks of other nodes.

use crate::Rank;

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

    /// Takes what has come, and moves on what is under way. Whether there was
    /// anything.
    fn poll(&self) -> bool;
}

/// What takes a parcel: who sent it, and its bytes.
pub(crate) type Handler = Box<dyn Fn(Rank, &[u8]) + Send + Sync>;

/// Why a parcel was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code, reason = "whatever carries parcels answers it"))]
pub(crate) enum Unsent {
    /// There is no room now.
    Full,
    /// The rank is gone: it will be said to be lost.
    Lost,
}
