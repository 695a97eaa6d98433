//! The connections to peers that this rank reaches: a pair for each direction, made on
//! first use.
//!
//! An error ends a pair with all requests that are under way on it. With a pair for
//! each direction these are only the initiator's: the requests after a refused one
//! have not been done and are posted again, and the peer's own requests go by
//! another pair.
//!
//! ```text
//!  Idle ─ connect request ─► Opening ─ connect reply ─► Open ─► Idle, and disconnect
//!                              │     │ least used, or asked to disconnect
//!                              │     ├─► Draining ─ empty ─► Idle, and disconnect
//!                              │     │ refused, no answer
//!                              │     └─► Failed ─ flushed ─► Idle, and disconnect
//!                              └─ timeout ─► Unanswered ─ a while ─► Idle
//! ```
//!
//! Messages may be lost. A connect request is repeated until a connect reply comes, and
//! the attempts are counted, so that late messages are recognized. A disconnect that was
//! lost leaves a passive pair until its rank sends a connect request again or is
//! requested to leave.
//!
//! Over the dynamically connected transport ([`dct`](super::dct)) a connection is
//! open at once, and closed without a message.
//!
//! A connection that has just been opened is not closed for another one before it was
//! used: the thread that needs it posts again at the next poll. Without this rule,
//! many operations that wait for few pairs would take the pairs from each other,
//! and none would make progress.

use super::address::Address;
use super::sys::*;
use crate::net::CompletionStatus;
use core::ptr::null_mut;
use std::time::{Duration, Instant};
use tsumugi_core::mem::Rank;

/// The connection to a peer.
pub(super) struct Connection {
    pub rank: Rank,
    pub address: Address,
    pub ah: *mut ibv_ah,
    pub state: ConnectionState,
    pub attempt: u64,
    pub qp: *mut ibv_qp,
    /// Whether the pair is an initiator of the dynamically connected transport.
    pub is_dci: bool,
    /// Requests that were written down and have not completed.
    pub in_flight: usize,
    /// The wire's clock when requests were last sent.
    pub used: u64,
    /// When the connection was opened, if nothing was sent since.
    pub opened_at: Option<Instant>,
    /// Requests that are written down and not sent.
    pub first: *mut ibv_send_wr,
    pub last: *mut ibv_send_wr,
}

/// The state of a connection; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionState {
    Idle,
    Opening {
        since: Instant,
        sent_at: Instant,
    },
    Open,
    Draining,
    /// The pair has failed; the value is the end of its other requests.
    Failed(CompletionStatus),
    Unanswered {
        since: Instant,
    },
    /// The rank was declared dead.
    PeerDead,
}

impl Connection {
    pub(super) fn new(rank: Rank, address: Address) -> Self {
        Self {
            rank,
            address,
            ah: null_mut(),
            state: ConnectionState::Idle,
            attempt: 0,
            qp: null_mut(),
            is_dci: false,
            in_flight: 0,
            used: 0,
            opened_at: None,
            first: null_mut(),
            last: null_mut(),
        }
    }
}

impl Connection {
    /// Whether the operation for which the connection was opened has still to be posted.
    pub(super) fn is_unused(&self, now: Instant) -> bool {
        self.opened_at.is_some_and(|since| now.duration_since(since) < UNUSED_MAX)
    }
}

/// The first sequence number of a pair, which differs from its predecessor's.
pub(super) fn psn_of(attempt: u64) -> u32 {
    (attempt.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32
}

/// The time for which a connection that was opened waits for its first request.
pub(super) const UNUSED_MAX: Duration = Duration::from_millis(20);
