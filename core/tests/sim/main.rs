//! The simulated network does what it says, and its nodes keep what every
//! endpoint promises, with a thousand seeds.
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
use tsumugi_core::backend::{Completion, Record};
use tsumugi_core::mem::{Access, Rank, Region, RemoteAddr};
use tsumugi_core::sim::{Event, Net, Node, Seeds};

/// What every commit tries anew.
const SEEDS: Seeds = Seeds::new(1000);
/// Those by one of which each planted defect is caught: always the same.
#[cfg(debug_assertions)]
const PLANTED: std::ops::Range<u64> = 0..1000;

/// A region of `rank`'s, open to all.
fn open(net: &Net, rank: u32, bytes: u64) -> Region {
    net.node(Rank(rank)).allocate(bytes, Access::ReadWrite).unwrap()
}

fn at(rank: u32, region: &Region, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: Rank(rank), key: region.key, offset }
}

/// Runs until nothing is under way, and returns what nodes were told, when.
fn drain(net: &Net) -> Vec<(u64, u32, Event)> {
    let told = RefCell::new(Vec::new());
    let note = |node: &Node<'_>, event| {
        if event != Event::Start {
            told.borrow_mut().push((node.now().as_ns(), node.rank().0, event));
        }
    };
    net.run(&mut vec![note; net.config().nodes as usize]);
    told.into_inner()
}

fn completions(told: &[(u64, u32, Event)]) -> Vec<Completion> {
    told.iter()
        .filter_map(|(_, _, event)| match event {
            Event::Completed(completion) => Some(*completion),
            _ => None,
        })
        .collect()
}

fn records(net: &Net) -> Vec<Record> {
    net.with_log(|log| log.iter().copied().collect()).expect("a log is kept")
}
