//! The order of the blocks at the leader of a node, in an alltoall by nodes: blocks that came
//! by sender leave by node, and blocks that came by node leave by receiver.
//!
//! ```text
//!  gathered:   sender of this node ─► receiver         n members here, of P in order
//!    pack      for each node: its blocks of each sender follow each other
//!  exchanged:  sender of any node ─► receiver of this node
//!    unpack    for each receiver: its blocks of all senders follow each other
//! ```

use super::blocks::{Blocks, CollTables};
use super::step::{BufferSpan, CollStep};

/// Copies of a leader, in one round.
#[derive(Clone, Copy, Debug)]
pub struct Interleave {
    /// The members of all nodes, and of this one.
    pub(super) size: u32,
    pub(super) neighbours: u32,
    pub(super) nodes: u32,
    /// Bytes of a block.
    pub(super) bytes: usize,
    pub(super) from: BufferSpan,
    pub(super) to: BufferSpan,
    pub(super) is_pack: bool,
}

impl Interleave {
    pub(super) const fn rounds(&self) -> u32 {
        1
    }

    pub(super) fn step(&self, tables: &CollTables<'_>, index: u32) -> Option<CollStep> {
        let Self { size, neighbours, nodes, bytes, from, to, is_pack } = *self;
        let (outer, inner) = (index / neighbours, (index % neighbours) as usize);
        if outer >= if is_pack { nodes } else { size } {
            return None;
        }
        let whole = size as usize * bytes;
        let (from_at, to_at, len) = if is_pack {
            let node = Blocks::Nodes { bytes, size }.range(tables, outer);
            let packed = node.start * neighbours as usize + inner * node.len();
            (inner * whole + node.start, packed, node.len())
        } else {
            let sender = outer as usize;
            let came = (sender * neighbours as usize + inner) * bytes;
            (came, inner * whole + sender * bytes, bytes)
        };
        let part = |of: BufferSpan, at: usize| of.part(at..at + len);
        Some(CollStep::Copy { from: part(from, from_at), to: part(to, to_at) })
    }
}
