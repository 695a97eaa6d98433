//! An operation in flight.

use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::Op;
use tsumugi_core::tag::Tag;

/// One operation in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub op: Op,
    pub state: State,
    /// Bytes that have arrived, and bytes under way.
    pub moved: u64,
    pub piece: u64,
    /// The last directory read that had begun when it began to wait.
    pub since: u64,
    /// Whether it is one of the rail's `posted`.
    pub counted: bool,
    /// Whether what is posted tells the owner of the word by itself.
    pub rings: bool,
}

/// What a flight is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing: the slot is free.
    Free,
    /// The device.
    Posted,
    /// Being posted: its region is not known yet, or the queue was full.
    Waiting,
    /// A look at the directory: it failed, and the question is why.
    Doubtful,
    /// A packet that tells the owner of the word.
    Bell(u64),
    /// The device; its caller has been told that the peer is lost.
    Lost,
}

/// What came of an attempt to post.
pub(super) enum Step {
    Posted,
    Ended(Result<u64, AddrError>),
    Unknown,
    /// The wire is not open yet: the operation is kept.
    Kept,
    /// There is no room.
    Again,
}

impl Flight {
    pub(super) const NONE: Self = Self {
        op: Op::get_word(NOWHERE, Width::W8).tagged(Tag::NONE),
        state: State::Free,
        moved: 0,
        piece: 0,
        since: 0,
        counted: false,
        rings: false,
    };
}

const NOWHERE: RemoteAddr =
    RemoteAddr { offset: 0, rank: Rank(u32::MAX), key: RegionKey::from_bits(0) };
