//! The memory that messages take.

use super::post::{BAG_BYTES, BAGS, POOL_CHUNKS};
use super::state;
use super::wire::shape;
use crate::peers::PEER_BYTES;
use tsumugi_core::msg::{ChunkPlace, LaneChunk, MessageShape, NetworkLane, NetworkLaneEnd};

/// Bytes that messages take: at a rank without any other; at most for one rank more
/// on its node, in tables; and for the lane of such a rank, which is touched at its
/// first use.
pub fn footprint() -> (usize, usize, usize) {
    let lane = shape(1).memory_size();
    (state::requests_bytes(), state::tables_bytes(shape(1)), lane)
}

/// Bytes of the tables of a rank in a job of `ranks`, if it has exchanged messages
/// with `peers` of them, the ranks of its node included.
pub fn tables_bytes(ranks: u32, peers: u32) -> usize {
    state::tables_bytes(MessageShape { peers, ..shape(ranks) })
}

/// Bytes that messages take for each rank of another node with which there are any,
/// with the spare room of tables; for all such ranks together; and for the contents
/// of the two lanes of one if they are full.
pub fn net_footprint(ranks: u32) -> (usize, usize, usize) {
    let entries =
        tables_bytes(ranks, 2) - tables_bytes(ranks, 1) + size_of::<NetworkLaneEnd<'static>>();
    let places = NetworkLane::places(&shape(1));
    let lane = places * size_of::<ChunkPlace<'static>>() + size_of::<NetworkLane<'static>>();
    let chunk = size_of::<LaneChunk<'static>>();
    let all = POOL_CHUNKS * chunk + BAGS * BAG_BYTES;
    (lane + entries + entries / 8 + PEER_BYTES, all, places * chunk)
}
