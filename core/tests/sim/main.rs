//! The properties of the simulated network, and the promises of every endpoint on its nodes,
//! with a thousand seeds.
#![cfg(not(tsumugi_loom))]

mod coll;
mod conformance;
mod engine;
mod flag;
mod message;
mod messages;
mod net;
mod replay;
mod scale;
mod suspicion;

use std::cell::RefCell;
use tsumugi_core::backend::{Completion, TraceRecord};
use tsumugi_core::mem::{Access, Rank, Region, RemoteAddr};
use tsumugi_core::sim::{Net, Seeds, SimEvent, SimNode};

/// The seeds that every commit tries anew.
const SEEDS: Seeds = Seeds::new(1000);
/// The seeds that catch each planted defect: always the same.
#[cfg(debug_assertions)]
const PLANTED: std::ops::Range<u64> = 0..1000;

/// A region of `rank` that all ranks may access.
fn open(net: &Net, rank: u32, bytes: u64) -> Region {
    net.node(Rank(rank)).allocate(bytes, Access::ReadWrite).unwrap()
}

fn at(rank: u32, region: &Region, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: Rank(rank), key: region.key, offset }
}

/// Runs until nothing is under way, and returns the events of all nodes with their times.
fn drain(net: &Net) -> Vec<(u64, u32, SimEvent)> {
    let told = RefCell::new(Vec::new());
    let note = |node: &SimNode<'_>, event| {
        if event != SimEvent::Start {
            told.borrow_mut().push((node.now().as_ns(), node.rank().0, event));
        }
    };
    net.run(&mut vec![note; net.config().nodes as usize]);
    told.into_inner()
}

fn completions(told: &[(u64, u32, SimEvent)]) -> Vec<Completion> {
    told.iter()
        .filter_map(|(_, _, event)| match event {
            SimEvent::Completed(completion) => Some(*completion),
            _ => None,
        })
        .collect()
}

fn records(net: &Net) -> Vec<TraceRecord> {
    net.with_log(|log| log.iter().copied().collect()).expect("a log is kept")
}
