//! An operation in flight.

use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::Op;
use tsumugi_core::tag::Tag;

/// One operation in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlightOp {
    pub op: Op,
    pub state: InFlightState,
    /// The bytes that have arrived, and the bytes under way.
    pub moved: u64,
    pub piece: u64,
    /// The serial number of the last directory read that had begun when the
    /// operation began to wait.
    pub since: u64,
    /// Whether the operation is counted in the NIC endpoint's `posted`.
    pub counted: bool,
    /// Whether the posted request itself notifies the owner of the word.
    pub rings: bool,
}

/// The event that a flight waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InFlightState {
    /// None: the slot is free.
    Free,
    /// A completion of the device.
    Posted,
    /// A post: the operation's region is not known yet, or the queue was full.
    Waiting,
    /// A read of the directory, because the operation failed and the reason is not
    /// known.
    Verifying,
    /// Room for a packet that notifies the owner of the word.
    Notifying(u64),
    /// A completion of the device; the caller already has the result that the peer
    /// is lost.
    Lost,
}

/// The result of an attempt to post.
pub(super) enum PostOutcome {
    Posted,
    Ended(Result<u64, AddrError>),
    Unknown,
    /// The connection is not open yet: the operation is kept.
    Kept,
    /// There is no room.
    Again,
}

impl InFlightOp {
    pub(super) const NONE: Self = Self {
        op: Op::get_word(NOWHERE, Width::W8).tagged(Tag::NONE),
        state: InFlightState::Free,
        moved: 0,
        piece: 0,
        since: 0,
        counted: false,
        rings: false,
    };
}

const NOWHERE: RemoteAddr =
    RemoteAddr { offset: 0, rank: Rank(u32::MAX), key: RegionKey::from_bits(0) };
