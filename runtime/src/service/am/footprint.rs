//! The memory that calls take.

use super::lanes::{CALLS_MAX, LANDING_BYTES, LANDINGS, STAGING_CELLS, shape};
use super::outbound;
use super::state::CallEntry;
use crate::peers::PEER_BYTES;
use std::collections::VecDeque;
use tsumugi_core::am;
use tsumugi_core::wait::Waker;

/// Memory that calls take at a rank.
#[derive(Clone, Copy, Debug)]
pub struct Footprint {
    /// Bytes without any other rank.
    pub bytes: usize,
    /// Bytes without any other rank that take memory only when they are used.
    pub later_bytes: usize,
    /// Bytes for each rank with which there are calls, on any node.
    pub rank_bytes: usize,
    /// The lanes of a rank of this node.
    pub lane_bytes: usize,
    /// The lanes of a rank of another node.
    pub net_lane_bytes: usize,
}

/// Computes the memory for a job of `ranks` ranks from the types.
pub fn footprint(ranks: u32) -> Footprint {
    let lanes = |peers| shape(peers, ranks).memory_size();
    let peer = size_of::<am::AmPeer>() + size_of::<VecDeque<Waker>>() + PEER_BYTES;
    let calls = CALLS_MAX * (size_of::<am::PendingCall>() + size_of::<CallEntry>());
    let staging = STAGING_CELLS * (size_of::<am::StagingCell>() + am::CELL_BYTES);
    Footprint {
        bytes: calls + staging + LANDINGS * size_of::<am::LandingBuffer>() + outbound::footprint(),
        later_bytes: LANDINGS * LANDING_BYTES,
        rank_bytes: peer,
        lane_bytes: (lanes(65) - lanes(1)).div_ceil(64),
        net_lane_bytes: shape(1, ranks).block().memory_size().div_ceil(am::BLOCK_PEERS as usize),
    }
}
