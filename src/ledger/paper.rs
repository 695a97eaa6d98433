//! The ledger of a large job, compared with table 3 of the paper on ACP's basic
//! layer.
//!
//! The lines are the parts that this layer had at a million ranks, the
//! corresponding tables here, and all other tables of a rank: bytes of one rank of
//! a job on nodes of [`NODE_RANKS`] ranks, without the memory of the network's own
//! library. A table that one rank has for all ranks of its node is divided by their
//! number.

use super::tables::{self, Ledger, NODE_RANKS, Table};
use tsumugi_core::am::BLOCK_PEERS;
use tsumugi_pvas::partition::GROUP_ROWS;
use tsumugi_runtime::net;
use tsumugi_runtime::service::{am, messages};

/// One line of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Beside {
    /// The name of the part.
    pub name: &'static str,
    /// The bytes in the paper, at a million ranks; `None` if the paper has no such
    /// part, or does not count it.
    pub paper_bytes: Option<u64>,
    /// The bytes in this project.
    pub bytes: u64,
}

impl Ledger {
    /// All memory that a rank of a job of `ranks` ranks has before any traffic,
    /// with the global memory open and room for 1,024 tables of other ranks; the
    /// last line is the sum. All nodes have the same number of ranks. The lane of a
    /// rank to itself, the landing buffers, the lookaside buffers, the rows of groups, and
    /// the operations that no engine carries out are touched on first use: they are counted
    /// with [the traffic](Self::in_use).
    pub fn beside_paper(&self, ranks: u64) -> Vec<Beside> {
        let of = |names: &[&str]| {
            let is_it = |table: &&Table| names.contains(&table.name) || names.contains(&table.part);
            self.tables.iter().filter(is_it).map(|table| table.shared_bytes(ranks)).sum()
        };
        let mut lines: Vec<Beside> = LINES
            .iter()
            .map(|&(name, paper_bytes, names)| Beside { name, paper_bytes, bytes: of(names) })
            .collect();
        let paper_bytes = Some(lines.iter().filter_map(|line| line.paper_bytes).sum());
        let bytes = lines.iter().map(|line| line.bytes).sum();
        lines.push(Beside { name: "total", paper_bytes, bytes });
        lines
    }
}

/// The memory that a rank has when it communicates with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InUse {
    /// The way in which it communicates.
    pub name: &'static str,
    /// The bytes in total, with the memory that it had before.
    pub bytes: u64,
}

impl Ledger {
    /// The memory of a rank of a job of `ranks` ranks that has communicated with
    /// `peers` others, each on a node of its own: by the global memory; in addition
    /// by calls, also long ones; and in addition by messages. Messages that wait to
    /// be sent or received take [additional memory](Self::lanes_bytes).
    pub fn in_use(&self, ranks: u64, peers: u64) -> [InUse; 3] {
        let peers = peers.min(ranks.saturating_sub(1));
        let total = self.beside_paper(ranks).last().map_or(0, |line| line.bytes);
        let few = ranks.min(u64::from(u32::MAX)) as u32;
        let calls = am::footprint(few);
        let met = (calls.rank_bytes + calls.net_lane_bytes) as u64;
        // Lanes for calls are allocated in blocks of several ranks.
        let blocks = peers.next_multiple_of(u64::from(BLOCK_PEERS));
        let later = |name| {
            let own = self.tables.iter().filter(|table| table.name == name);
            own.map(|table| table.shared_bytes(ranks)).sum::<u64>()
        };
        let global = total + peers * net::PEER_BYTES as u64 + later(tables::LOOKASIDE);
        let calls = global + blocks * met + later(tables::LANDINGS);
        let (peer, all, _) = messages::net_footprint(few);
        let messages = calls + peers * peer as u64 + all as u64 + later(tables::OWN_LANE);
        let messages = messages + later(tables::HOST_OPERATIONS) + later(GROUP_ROWS);
        let one = |name, bytes| InUse { name, bytes };
        [
            one("in use by the global memory", global),
            one("in use by the global memory and calls", calls),
            one("in use by the global memory, calls and messages", messages),
        ]
    }
}

impl Ledger {
    /// The bytes that wait in the lanes between a rank and a rank of another node,
    /// in both directions, if the lanes are full. The memory is in use as long as
    /// the messages wait, and is then used for other lanes.
    pub fn lanes_bytes(&self) -> u64 {
        messages::net_footprint(u32::MAX).2 as u64
    }

    /// The limits that this project has set itself for the memory of a rank of a
    /// large job: before any traffic, and with 1,024 other ranks in use.
    pub const BARS: [u64; 2] = [8_000_000, 16_000_000];
}

/// For each line: its name, its bytes in the paper, and the tables here, or whole
/// components.
const LINES: &[(&str, Option<u64>, &[&str])] = &[
    (
        "commands, operations and their order",
        Some(480_000),
        &[
            "commands",
            "ends of commands",
            "order of operations",
            "conditions of order",
            "operations, own and of other ranks",
            "commands to others",
            "operations in flight",
            "callers and their operations",
            "the machine",
        ],
    ),
    ("commands of other ranks", Some(480_000), &["notes", "cells", "landings"]),
    ("own table of regions", Some(10_000), &["own tables", "own names"]),
    (
        "region tables of 1,024 other ranks",
        Some(10_000_000),
        &["tables of others", "slots of the tables of others", "tables on their way"],
    ),
    (
        "which rank has which table",
        Some(4_000_000),
        &["holders, drops, acks", "hints", "ranks that must answer", "ranks with a table here"],
    ),
    ("addresses of the starter memories", Some(12_000_000), &[]),
    ("queue pairs (here in the network's library)", Some(160_000_000), &[]),
    ("completion queue, memory regions", Some(12_128), &[]),
    ("node of each rank", None, &[tables::NODES]),
    ("heartbeats, 1/32 of those of a node", None, &[tables::HEARTBEATS]),
    ("calls: tables", None, &[tables::CALL_TABLES, tables::CALLS]),
    ("messages: tables", None, &[tables::MESSAGE_TABLES, tables::MESSAGES]),
    ("network: regions, operations, packets", None, &[tables::REGIONS]),
    ("control page, starter memory", None, &["control page", "partition"]),
    (
        "scheduler, runtime, environment",
        None,
        &["scheduler", "runtime", tables::FILES, tables::SEATS],
    ),
];

const _: () = assert!(NODE_RANKS == 32);
