//! The ledger of a large job beside table 3 of the paper on ACP's basic layer.
//!
//! What that layer had at a million ranks, what has its place here, and all
//! else that a rank has: bytes of one rank of a job on nodes of
//! [`NODE_RANKS`], without what the network's own library keeps. What one rank
//! has for all of its node counts by a part.

use super::{Ledger, NODE_RANKS, Table};
use crate::{am, far, msg};
use tsumugi_core::am::BLOCK_PEERS;

/// One line of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// What it is.
    pub name: &'static str,
    /// Bytes in the paper, at a million ranks; none: it has no such thing, or
    /// does not count it.
    pub paper_bytes: Option<u64>,
    /// Bytes here.
    pub bytes: u64,
}

impl Ledger {
    /// All that a rank of a job of `ranks` has before any traffic, with the
    /// global memory open and room for 1,024 tables of others; the last line
    /// is the sum. The nodes are alike. Its lane to itself and landing buffers
    /// are touched when they are used: they come with [the
    /// traffic](Self::in_use).
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

/// What a rank has when it speaks to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse {
    /// How it does.
    pub name: &'static str,
    /// Bytes, with those that it has before.
    pub bytes: u64,
}

impl Ledger {
    /// What a rank of a job of `ranks` has when it has spoken to so many others,
    /// each on a node of its own: by the global memory, by calls besides, long
    /// ones too, and by messages besides. Messages that wait to be sent or
    /// received have [memory of their own](Self::lanes_bytes).
    pub fn in_use(&self, ranks: u64, peers: u64) -> [InUse; 3] {
        let peers = peers.min(ranks.saturating_sub(1));
        let total = self.beside_paper(ranks).last().map_or(0, |line| line.bytes);
        let few = ranks.min(u64::from(u32::MAX)) as u32;
        let calls = am::footprint(few);
        let met = (calls.rank_bytes + calls.far_lane_bytes) as u64;
        // Lanes for calls are made for some ranks at a time.
        let blocks = peers.next_multiple_of(u64::from(BLOCK_PEERS));
        let global = total + peers * far::PEER_BYTES as u64;
        let later = |name| {
            let own = self.tables.iter().filter(|table| table.name == name);
            own.map(|table| table.shared_bytes(ranks)).sum::<u64>()
        };
        let calls = global + blocks * met + later(super::LANDINGS);
        let (peer, all, _) = msg::far_footprint(few);
        let messages = calls + peers * peer as u64 + all as u64 + later(super::OWN_LANE);
        let one = |name, bytes| InUse { name, bytes };
        [
            one("in use by the global memory", global),
            one("in use, also by calls", calls),
            one("in use, also by messages", messages),
        ]
    }
}

impl Ledger {
    /// What waits in the lanes between a rank and one of another node if those
    /// are full, both ways: the memory for it is there for as long as it waits,
    /// and then for others.
    pub fn lanes_bytes(&self) -> u64 {
        msg::far_footprint(u32::MAX).2 as u64
    }

    /// The most that a rank of a large job may have before any traffic, and
    /// with 1,024 others in use: what this project has set itself.
    pub const BARS: [u64; 2] = [8_000_000, 16_000_000];
}

/// Each line: what it is in the paper, and the tables here, or whole parts.
const LINES: &[(&str, Option<u64>, &[&str])] = &[
    (
        "commands, operations and their order",
        Some(480_000),
        &[
            "commands",
            "ends of commands",
            "order of operations",
            "conditions of order",
            "operations, own and guests'",
            "commands to others",
            "operations in flight",
            "callers and their operations",
            "the machine",
        ],
    ),
    ("commands of others", Some(480_000), &["notes", "cells", "landings"]),
    ("own table of regions", Some(10_000), &["own tables", "own names"]),
    (
        "tables of others, 1,024",
        Some(10_000_000),
        &["tables of others", "slots of the tables of others", "tables on their way"],
    ),
    (
        "who has whose table",
        Some(4_000_000),
        &["holders, drops, acks", "hints", "who is to answer", "whose table may be here"],
    ),
    ("where the starter memories are", Some(12_000_000), &[]),
    ("queue pairs; here the library's", Some(160_000_000), &[]),
    ("completion queue, memory regions", Some(12_128), &[]),
    ("which rank is where", None, &[super::NODES]),
    ("beats, a part of 32 of a node's", None, &[super::BEATS]),
    ("calls: tables", None, &[super::CALL_TABLES, super::CALLS]),
    ("messages: tables", None, &[super::MESSAGE_TABLES, super::MESSAGES]),
    ("network: regions, operations, packets", None, &[super::REGIONS]),
    ("control page, starter memory", None, &["control page", "partition"]),
    (
        "scheduler, runtime, environment",
        None,
        &["scheduler", "runtime", super::FILES, super::SEATS],
    ),
];

const _: () = assert!(NODE_RANKS == 32);
