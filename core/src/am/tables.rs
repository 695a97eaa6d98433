//! The machine's own tables: its peers, the calls under way and the operations in
//! flight. The caller provides the memory.

use super::fifo::Fifo;
use super::lanes::AmLane;
use crate::mem::{PeerIndex, RemoteAddr};
use crate::time::Instant;

/// Memory for the machine's tables; any content.
#[derive(Debug)]
pub struct AmTables<'m> {
    /// One for each peer.
    pub peers: &'m mut [AmPeer],
    /// One for each call that can be under way.
    pub calls: &'m mut [PendingCall],
    /// One for each staging cell.
    pub slots: &'m mut [StagingCell],
    /// One for each landing buffer; none: no long payloads.
    pub landings: &'m mut [LandingBuffer],
}

/// The state of a peer. Counts wrap.
#[derive(Clone, Copy, Debug)]
pub struct AmPeer {
    /// Where the memory with this rank's lanes starts at the peer, once it is
    /// known, and which of the lanes there are this rank's.
    pub(super) at: Option<RemoteAddr>,
    pub(super) own: u32,
    pub(super) lost: bool,
    /// Requests sent to the peer, and the number that it has taken.
    pub(super) sent: u32,
    pub(super) acked: u32,
    /// Calls to the peer for which no reply was taken yet.
    pub(super) unanswered: u32,
    /// Replies sent to the peer.
    pub(super) replied: u32,
    /// Requests and replies taken from the peer; the count of requests that was
    /// last reported to it.
    pub(super) requests_taken: u32,
    pub(super) replies_taken: u32,
    pub(super) reported: u32,
    /// Cells that were announced by a bell and not taken.
    pub(super) due: u32,
    /// A long payload is being fetched: requests sent after it wait.
    pub(super) fetching: bool,
    pub(super) notice: Notice,
    pub(super) notices: u32,
    pub(super) listed: bool,
    pub(super) link: u32,
    pub(super) notice_link: u32,
}

/// State of the notice that returns credits to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Idle,
    CountDue,
    Counting,
    BellDue,
    Ringing,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub struct PendingCall {
    pub(super) generation: u32,
    pub(super) state: CallState,
    pub(super) to: PeerIndex,
    pub(super) handler: u32,
    pub(super) deadline: Option<Instant>,
    pub(super) long: bool,
    pub(super) link: u32,
}

/// State of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallState {
    Free,
    Waiting,
    /// The deadline has passed (`Late`) or the rank has died (`Lost`), and the
    /// caller has not got the end yet. `payload_back`: the payload is no longer
    /// in use.
    Late {
        payload_back: bool,
    },
    Lost,
    /// The caller has got the end, but the payload may still be read.
    Abandoned,
    /// The payload is no longer in use, and the caller has not got that yet.
    PayloadBack,
}

/// A staging cell that is being sent.
#[derive(Clone, Copy, Debug)]
pub struct StagingCell {
    pub(super) generation: u32,
    pub(super) to: PeerIndex,
    pub(super) lane: AmLane,
    pub(super) number: u32,
    pub(super) bytes: u64,
    pub(super) step: StagingStep,
    pub(super) put_done: bool,
    pub(super) bell_done: bool,
    pub(super) link: u32,
}

/// The next operation for a staging cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StagingStep {
    Put,
    AwaitPut,
    Bell,
    AwaitBell,
}

/// A landing buffer: the target of the get of a long payload.
#[derive(Clone, Copy, Debug)]
pub struct LandingBuffer {
    pub(super) generation: u32,
    pub(super) from: PeerIndex,
    pub(super) handler: u32,
    pub(super) token: u64,
    pub(super) remote: Option<RemoteAddr>,
    pub(super) bytes: u64,
    pub(super) has_failed: bool,
    pub(super) link: u32,
}

impl AmPeer {
    /// A peer of which nothing is known.
    pub const EMPTY: Self = Self {
        at: None,
        own: 0,
        lost: false,
        sent: 0,
        acked: 0,
        unanswered: 0,
        replied: 0,
        requests_taken: 0,
        replies_taken: 0,
        reported: 0,
        due: 0,
        fetching: false,
        notice: Notice::Idle,
        notices: 0,
        listed: false,
        link: 0,
        notice_link: 0,
    };

    pub(super) fn queue() -> Fifo<Self> {
        Fifo::new(|peer| &mut peer.link)
    }

    pub(super) fn notice_queue() -> Fifo<Self> {
        Fifo::new(|peer| &mut peer.notice_link)
    }
}

impl PendingCall {
    /// No call.
    pub const EMPTY: Self = Self {
        generation: 0,
        state: CallState::Free,
        to: PeerIndex(0),
        handler: 0,
        deadline: None,
        long: false,
        link: 0,
    };

    pub(super) fn queue() -> Fifo<Self> {
        Fifo::new(|call| &mut call.link)
    }

    pub(super) fn all(calls: &mut [Self]) -> Fifo<Self> {
        calls.fill(Self::EMPTY);
        Fifo::of_all(calls, |call| &mut call.link)
    }
}

impl StagingCell {
    /// No cell.
    pub const EMPTY: Self = Self {
        generation: 0,
        to: PeerIndex(0),
        lane: AmLane::Request,
        number: 0,
        bytes: 0,
        step: StagingStep::Put,
        put_done: false,
        bell_done: false,
        link: 0,
    };

    pub(super) fn queue() -> Fifo<Self> {
        Fifo::new(|slot| &mut slot.link)
    }

    pub(super) fn all(slots: &mut [Self]) -> Fifo<Self> {
        slots.fill(Self::EMPTY);
        Fifo::of_all(slots, |slot| &mut slot.link)
    }
}

impl LandingBuffer {
    /// No payload.
    pub const EMPTY: Self = Self {
        generation: 0,
        from: PeerIndex(0),
        handler: 0,
        token: 0,
        remote: None,
        bytes: 0,
        has_failed: false,
        link: 0,
    };

    pub(super) fn queue() -> Fifo<Self> {
        Fifo::new(|landing| &mut landing.link)
    }

    pub(super) fn all(landings: &mut [Self]) -> Fifo<Self> {
        landings.fill(Self::EMPTY);
        Fifo::of_all(landings, |landing| &mut landing.link)
    }
}
