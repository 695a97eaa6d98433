//! A queue pair by which a peer reaches this rank: the passive side of a connection.

use super::sys::*;
use tsumugi_core::mem::Rank;

/// A peer that reaches this rank.
pub(super) struct Guest {
    pub rank: Rank,
    pub turn: u64,
    pub qp: *mut ibv_qp,
    pub ah: *mut ibv_ah,
    pub door: u32,
}
