//! The tables of one rank, and the memory for each object that a program makes.

use crate::lock;
use crate::memory::PEER_KEY_BYTES;
use crate::{Chosen, Runtime};
use tsumugi_gas::lock::NODE_BYTES;
use tsumugi_gas::page;
use tsumugi_pvas::partition::{ControlBlock, GROUP_ROWS, PartitionShape};
use tsumugi_pvas::space::windows_bytes;
use tsumugi_pvas::{Direct, Nodes};
use tsumugi_runtime::guest::GUESTS;
use tsumugi_runtime::host_operations::HOST_BYTES;
use tsumugi_runtime::net;
use tsumugi_runtime::node::RankNode;
use tsumugi_runtime::service::am;
use tsumugi_runtime::service::global_memory;
use tsumugi_runtime::service::messages;
use tsumugi_ult::footprint;

/// The tables of one rank.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ledger {
    /// The tables that a rank has from the start, and those of the global memory,
    /// which exist once it is open.
    pub tables: Vec<Table>,
    /// Memory for each thread or array that a program makes.
    pub units: Vec<Unit>,
}

/// Memory that a rank has from the start, or once the global memory is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The component to which the table belongs.
    pub part: &'static str,
    /// The name of the table.
    pub name: &'static str,
    fixed_bytes: u64,
    growth: Growth,
}

/// How a table grows with the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    None,
    /// The table has a number for each rank of the node, in text.
    Numbers,
    /// The table is the part of the global memory with this index.
    Global(usize),
    /// The table has this many bytes for each node, but only at the first rank of a
    /// node.
    First(u64),
    /// The table has this many bytes for each rank of the node.
    NodeRanks(u64),
    /// The table is the messages' state for the ranks of the node.
    Messages,
}

/// Memory for one object that a program makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The object.
    pub name: &'static str,
    fixed_bytes: u64,
    rank_bytes: u64,
}

impl Ledger {
    /// The number of ranks on a node of a large job.
    pub const NODE_RANKS: u64 = NODE_RANKS;

    /// The tables of a rank with this configuration and partition.
    pub fn new(chosen: &Chosen, shape: &PartitionShape) -> Self {
        let threads = footprint();
        let am::Footprint {
            bytes: calls_bytes,
            later_bytes: calls_later_bytes,
            rank_bytes: calls_rank_bytes,
            lane_bytes: calls_lane_bytes,
            net_lane_bytes: calls_net_lane_bytes,
        } = am::footprint(u32::MAX);
        let (messages_bytes, messages_peer_bytes, messages_lane_bytes) = messages::footprint();
        let node_peer_bytes =
            calls_rank_bytes + calls_lane_bytes + messages_peer_bytes + messages_lane_bytes;
        let table = |part, name, bytes: usize| Table {
            part,
            name,
            fixed_bytes: bytes as u64,
            growth: Growth::None,
        };
        let unit = |name, bytes: usize, rank_bytes: usize| Unit {
            name,
            fixed_bytes: bytes as u64,
            rank_bytes: rank_bytes as u64,
        };
        let mut tables: Vec<Table> = ControlBlock::parts()
            .into_iter()
            .map(|(name, bytes)| {
                let part = if name == GROUP_ROWS { "collectives" } else { "control page" };
                table(part, name, bytes)
            })
            .collect();
        tables.extend([
            table("partition", "starter memory", shape.starter_bytes),
            table("scheduler", "shared by the workers", threads.shared_bytes),
            table("scheduler", "workers", chosen.workers.saturating_mul(threads.worker_bytes)),
            table("runtime", "node, team and waiters", RankNode::BYTES),
            table("runtime", "handle", size_of::<Runtime>()),
            table("operations", HOST_OPERATIONS, HOST_BYTES),
            table("calls", CALL_TABLES, calls_bytes),
            table("calls", LANDINGS, calls_later_bytes + calls_lane_bytes),
            Table {
                part: "calls",
                name: CALLS,
                fixed_bytes: 0,
                growth: Growth::NodeRanks(calls_rank_bytes as u64),
            },
            table("messages", MESSAGE_TABLES, messages_bytes),
            table("messages", OWN_LANE, messages_lane_bytes),
            Table { part: "messages", name: MESSAGES, fixed_bytes: 0, growth: Growth::Messages },
            table(NETWORK, REGIONS, net::footprint()),
            // The last node may have fewer ranks than the others.
            table(NETWORK, NODES, size_of::<Nodes>() + 2 * Nodes::STRETCH_BYTES),
            Table {
                part: NETWORK,
                name: HEARTBEATS,
                fixed_bytes: (net::HOSTS_MAX * (net::PEER_BYTES - tsumugi_backends::PEER_BYTES))
                    as u64,
                growth: Growth::First(net::HEARTBEAT_BYTES as u64),
            },
            Table { part: "environment", name: FILES, fixed_bytes: 0, growth: Growth::Numbers },
        ]);
        let seats = chosen.workers.saturating_add(GUESTS);
        tables.push(table(GLOBAL, SEATS, seats.saturating_mul(global_memory::SEAT_BYTES)));
        let lookaside = seats.saturating_mul(global_memory::LOOKASIDE_BYTES);
        tables.push(table(GLOBAL, LOOKASIDE, lookaside));
        let global = global_memory::footprint(1).enumerate();
        tables.extend(global.map(|(index, (name, _))| Table {
            part: GLOBAL,
            name,
            fixed_bytes: 0,
            growth: Growth::Global(index),
        }));
        let units = vec![
            unit("a ULT's descriptor", threads.ult_bytes, 0),
            unit("a ULT's stack (virtual; touched pages take memory)", chosen.stack_bytes, 0),
            unit("a stack's guard (virtual)", threads.guard_bytes, 0),
            unit(NODE_RANK, node_peer_bytes, 0),
            unit("a node with other ranks than the node before it", Nodes::STRETCH_BYTES, 0),
            unit("a rank of another node, from the first operation on", net::PEER_BYTES, 0),
            unit(MET, calls_rank_bytes + calls_net_lane_bytes, 0),
            unit(WRITTEN, messages::net_footprint(u32::MAX).0, 0),
            unit(FULL, messages::net_footprint(u32::MAX).2, 0),
            unit("a handle of a rank's memory", size_of::<Direct>(), 0),
            unit(
                "a peer's windows, populated (TSUMUGI_POPULATE=peers)",
                windows_bytes(shape.bytes()),
                0,
            ),
            unit("a shared array with equal keys on all ranks", 0, 0),
            unit("a shared array with different keys", 0, PEER_KEY_BYTES),
            unit("the global memory, with different keys", 0, PEER_KEY_BYTES),
            unit("a page of an array, at its home", page::HOME_BYTES as usize, 0),
            unit("a page of an array, in a location cache", page::SLOT_BYTES as usize, 0),
            unit("a page of an array, its header", page::HEADER_BYTES as usize, 0),
            unit(ARRAY, lock::NODES as usize * NODE_BYTES as usize + ARRAY_BYTES, 0),
            unit("gather and share, while they run", 0, size_of::<u64>() + PEER_KEY_BYTES),
        ];
        Self { tables, units }
    }

    /// The size of all tables together, in a job of `ranks` ranks.
    pub fn bytes(&self, ranks: u64) -> u64 {
        self.tables.iter().map(|table| table.bytes(ranks)).sum()
    }

    /// The bytes that each rank of a node has for each other rank of it.
    pub fn node_rank_bytes(&self) -> u64 {
        self.units.iter().find(|unit| unit.name == NODE_RANK).map_or(0, |unit| unit.fixed_bytes)
    }
}

impl Table {
    /// The size in a job of `ranks` ranks, at the rank where it is largest.
    pub fn bytes(&self, ranks: u64) -> u64 {
        let few = ranks.min(u64::from(u32::MAX)) as u32;
        match self.growth {
            Growth::None => self.fixed_bytes,
            Growth::Numbers => numbers_bytes(ranks.min(NODE_RANKS)),
            // Each host has a name, which is kept for up to a maximum number of
            // hosts.
            Growth::First(bytes) => {
                let others = ranks.saturating_sub(NODE_RANKS);
                let named = others.min(net::HOSTS_MAX as u64 * NODE_RANKS);
                let name = self.fixed_bytes / net::HOSTS_MAX as u64;
                (bytes * others + name * named) / NODE_RANKS
            }
            Growth::NodeRanks(bytes) => bytes * ranks.min(NODE_RANKS),
            Growth::Messages => messages::tables_bytes(few, few.min(NODE_RANKS as u32)) as u64,
            Growth::Global(index) => {
                global_memory::footprint(few).nth(index).map_or(0, |(_, bytes)| bytes)
            }
        }
    }

    /// The size, divided among the ranks of a node if one rank has the table for
    /// all.
    pub fn shared_bytes(&self, ranks: u64) -> u64 {
        match self.growth {
            Growth::First(_) => self.bytes(ranks) / ranks.clamp(1, NODE_RANKS),
            _ => self.bytes(ranks),
        }
    }

    /// The bytes that one more rank costs, in a job of about `ranks` ranks.
    pub fn slope(&self, ranks: u64) -> u64 {
        self.bytes(ranks + 1) - self.bytes(ranks)
    }
}

impl Unit {
    /// The size in a job of `ranks` ranks.
    pub fn bytes(&self, ranks: u64) -> u64 {
        self.fixed_bytes + self.slope() * ranks
    }

    /// The bytes that one more rank costs.
    pub fn slope(&self) -> u64 {
        self.rank_bytes
    }
}

/// The length of the text with the numbers of `ranks` descriptors, from the first
/// free one on, each with a comma.
fn numbers_bytes(ranks: u64) -> u64 {
    let end = FIRST_FD + ranks;
    let mut bytes = ranks;
    let mut from = 1;
    // Every number has a digit, the numbers from 10 on have one more, and so on.
    while from < end {
        bytes += end - from.max(FIRST_FD);
        from *= 10;
    }
    bytes
}

pub(super) const NETWORK: &str = "network (several nodes)";
pub(super) const REGIONS: &str = "regions, operations, packets";
/// For nodes with equal numbers of ranks, because only the number of ranks is
/// known.
pub(super) const NODES: &str = "the node of each rank";
pub(super) const FILES: &str = "descriptor numbers of the memory files";
pub(super) const SEATS: &str = "hazard pointers of threads";
/// Exists only at a node's first rank.
pub(super) const HEARTBEATS: &str = "heartbeats, host names (only at a node's first rank)";
pub(super) const CALL_TABLES: &str = "calls, staging cells, operations";
pub(super) const LOOKASIDE: &str = "lookaside buffers of threads (from their first use on)";
pub(super) const OWN_LANE: &str = "lane to itself (from its first use on)";
/// Takes memory from the first such operation on.
pub(super) const HOST_OPERATIONS: &str =
    "waits and operations of several steps (from their first use on)";
/// Takes memory from the first such call on.
pub(super) const LANDINGS: &str = "lane to itself, landing buffers (from their first use on)";
pub(super) const CALLS: &str = "state of each rank of the node, waiting callers";
pub(super) const MESSAGE_TABLES: &str = "sends and receives";
pub(super) const MESSAGES: &str = "state of each rank of the node, waiting messages";
/// The memory for the first contact with a rank of another node.
pub(super) const MET: &str = "a rank of another node, from the first call on";
pub(super) const WRITTEN: &str = "a rank of another node, from the first message on";
pub(super) const FULL: &str = "waiting messages between ranks of two nodes, maximum of a pair";
pub(super) const ARRAY: &str = "an array of pages that move, without its pages";
/// The word that counts the array's readers, and a cache line of bits for frames.
const ARRAY_BYTES: usize = 128;
/// The number of ranks on a node of a large job.
pub(super) const NODE_RANKS: u64 = 32;
/// A rank has none of this before the ranks open the global memory.
pub(super) const GLOBAL: &str = "global memory (once opened)";
/// The memory for messages and calls with each other rank of the same node.
pub(super) const NODE_RANK: &str = "one more rank on this node, for calls and messages";

/// Descriptors 0 to 2 are the standard streams.
const FIRST_FD: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use tsumugi_pvas::partition::{CONTROL_BYTES, Limits};

    fn ledger(ranks: u32) -> Ledger {
        let config = Config::default().workers(2);
        let shape = PartitionShape::fit(ranks, &config.space, Limits::default()).unwrap();
        Ledger::new(&config.choose(ranks), &shape)
    }

    #[test]
    fn only_the_listed_tables_grow_with_the_job() {
        let ledger = ledger(4);
        let growing = ledger.tables.iter().filter(|table| table.slope(1_000_000) > 0);
        let growing: Vec<(&str, u64)> =
            growing.map(|table| (table.name, table.slope(1_000_000))).collect();
        // The other tables of the global memory grow by a cache line for each 512
        // ranks; the table of nodes grows by half a byte for each rank.
        let bits = [("ranks that must answer", 8), ("ranks with a table here", 8)];
        let heartbeats = (HEARTBEATS, net::HEARTBEAT_BYTES as u64 / NODE_RANKS);
        assert_eq!(growing, [&[heartbeats][..], &bits].concat());
        let growing = ledger.units.iter().filter(|unit| unit.slope() > 0);
        let growing: Vec<(&str, u64)> = growing.map(|unit| (unit.name, unit.slope())).collect();
        let expected = [
            ("a shared array with different keys", 4),
            ("the global memory, with different keys", 4),
            ("gather and share, while they run", 12),
        ];
        assert_eq!(growing, expected);
    }

    /// Checks the memory before any traffic, with room for the tables of 1,024
    /// other ranks, and with as many in use.
    #[test]
    fn a_million_ranks_fit() {
        let ledger = ledger(4);
        for ranks in [2, 1_000, 1_000_000] {
            let lines = ledger.beside_paper(ranks);
            let total = lines.iter().find(|line| line.name == "total").unwrap().bytes;
            assert!(total <= Ledger::BARS[0], "{total} bytes at {ranks} ranks");
            let all: u64 = ledger.tables.iter().map(|table| table.shared_bytes(ranks)).sum();
            let all_of = |names: &[&str]| -> u64 {
                let tables = ledger.tables.iter().filter(|table| names.contains(&table.name));
                tables.map(|table| table.shared_bytes(ranks)).sum()
            };
            let later = all_of(&[LANDINGS, OWN_LANE, HOST_OPERATIONS, LOOKASIDE, GROUP_ROWS]);
            assert_eq!(total, all - later, "nothing is left out, and nothing counted twice");
            let used = ledger.in_use(ranks, 1024);
            let traffic = ledger.in_use(ranks, 0)[2].bytes;
            assert!(traffic >= total + later, "{traffic}: the tables for traffic are in use");
            let global = total + all_of(&[LOOKASIDE]);
            assert_eq!(used[0].bytes, global + 1024.min(ranks - 1) * net::PEER_BYTES as u64);
            for used in &used {
                assert!(used.bytes <= Ledger::BARS[1], "{used:?} at {ranks} ranks");
            }
        }
        // From a thousand ranks to a million, each additional rank costs less than
        // two bytes.
        let total = |ranks| ledger.beside_paper(ranks).last().unwrap().bytes;
        let slope = (total(1_000_000) - total(1_000)) * 1000 / 999_000;
        assert!(slope < 2000, "{slope} thousandths of a byte for each rank");
    }

    #[test]
    fn the_parts_of_the_control_page_fill_it() {
        let is_part = |table: &Table| table.part == "control page" || table.name == GROUP_ROWS;
        let parts = ledger(4).tables.into_iter().filter(is_part);
        assert_eq!(parts.map(|table| table.bytes(4)).sum::<u64>(), CONTROL_BYTES as u64);
    }

    #[test]
    fn the_length_of_written_numbers_is_right() {
        for ranks in [1, 6, 7, 8, 97, 98, 1000, 12_345] {
            let text: String = (FIRST_FD..FIRST_FD + ranks).map(|fd| format!("{fd},")).collect();
            assert_eq!(numbers_bytes(ranks), text.len() as u64, "{ranks} ranks");
        }
    }
}
