//! The links to peers that this rank reaches: a pair for each direction, made on
//! first use.
//!
//! An error ends a pair with all requests that are under way on it. With a pair for
//! each direction these are only the initiator's: the requests after a refused one
//! have not been done and are posted again, and the peer's own requests go by
//! another pair.
//!
//! ```text
//!  link   Idle ─ hello ─► Opening ─ welcome ─► Open ─► Idle, and bye
//!                            │                  │ least used, asked to leave
//!                            │                  ├─► Draining ─ empty ─► Idle, and bye
//!                            │                  │ refused, no answer
//!                            │                  └─► Broken ─ flushed ─► Idle, and bye
//!                            └─ patience ends ─► Silent ─ a while ─► Idle
//! ```
//!
//! Calls may be lost. A hello is repeated until a welcome comes, and a turn counts
//! attempts, so that late calls are recognized. A bye that was lost leaves a guest
//! until its rank sends a hello again or is requested to leave.
//!
//! Over the dynamically connected transport ([`dynamic`](super::dynamic)) a link is
//! open at once, and closed without a call.
//!
//! A link that has just been opened is not closed for another one before it was
//! used: the thread that needs it posts again at the next poll. Without this rule,
//! many operations that wait for few pairs would take the pairs from each other,
//! and none would make progress.

use super::address::Address;
use super::sys::*;
use crate::net::End;
use core::ptr::null_mut;
use std::time::{Duration, Instant};
use tsumugi_core::mem::Rank;

/// The connection to a peer.
pub(super) struct Link {
    pub rank: Rank,
    pub address: Address,
    pub ah: *mut ibv_ah,
    pub state: State,
    pub turn: u64,
    pub qp: *mut ibv_qp,
    /// Whether the pair is an asker of the dynamically connected transport.
    pub lent: bool,
    /// Requests that were written down and have not completed.
    pub in_flight: usize,
    /// The line's clock when requests were last sent.
    pub used: u64,
    /// When the link was opened, if nothing was sent since.
    pub fresh: Option<Instant>,
    /// Requests that are written down and not sent.
    pub first: *mut ibv_send_wr,
    pub last: *mut ibv_send_wr,
}

/// The state of a link; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Opening {
        since: Instant,
        asked: Instant,
    },
    Open,
    Draining,
    /// The pair has failed; the value is the end of its other requests.
    Broken(End),
    Silent {
        since: Instant,
    },
    /// The rank was declared dead.
    Struck,
}

impl Link {
    pub(super) fn new(rank: Rank, address: Address) -> Self {
        Self {
            rank,
            address,
            ah: null_mut(),
            state: State::Idle,
            turn: 0,
            qp: null_mut(),
            lent: false,
            in_flight: 0,
            used: 0,
            fresh: None,
            first: null_mut(),
            last: null_mut(),
        }
    }
}

impl Link {
    /// Whether the operation for which the link was opened has still to be posted.
    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        self.fresh.is_some_and(|since| now.duration_since(since) < FRESH)
    }
}

/// The first sequence number of a pair, which differs from its predecessor's.
pub(super) fn psn_of(turn: u64) -> u32 {
    (turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32
}

/// The time for which a link that was opened waits for its first request.
pub(super) const FRESH: Duration = Duration::from_millis(20);
