//! A queue pair by which a peer reaches this rank: the passive side of a connection.

use super::sys::*;
use tsumugi_core::mem::Rank;

/// A peer that reaches this rank.
pub(super) struct PassiveQp {
    pub rank: Rank,
    pub attempt: u64,
    pub qp: *mut ibv_qp,
    pub ah: *mut ibv_ah,
    pub cm_qp: u32,
}
