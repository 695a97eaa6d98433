//! Barriers, sums and messages on many nodes: a thousand, and ten thousand in release builds.
//! Messages go between the ranks of one machine, since their memory grows with the number of
//! ranks that communicate.

use super::coll::{Member, members};
use super::messages::rank::{Actors, Rooms, Sizes};
use super::*;
use std::cell::Cell;
use tsumugi_core::am::DoorbellOrder;
use tsumugi_core::sim::SimConfig;
use tsumugi_core::time::Clock;

#[test]
fn barriers_and_sums_reach_all_ranks() {
    for &nodes in SIZES {
        let net = Net::new(SimConfig::drawn(nodes as u32, nodes));
        let begun = Cell::new(0);
        let mut members = members(&net, &begun);
        let events = net.run(&mut members);
        assert!(members.iter().all(Member::is_done), "{nodes} ranks ended every round");
        println!("{nodes} nodes: {events} events, {} ns", net.now().as_ns());
    }
}

#[test]
fn messages_reach_all_ranks() {
    for &nodes in SIZES {
        let net = Net::new(SimConfig::drawn(nodes as u32, nodes));
        let sizes = Sizes {
            ranks: 20,
            apart: 0,
            cells: 1,
            calls: 4,
            staging: 4,
            landings: 1,
            fan: 20,
            messages: 8,
            time_limits: true,
            looks_again: false,
            bell: DoorbellOrder::AfterCell,
            layered: false,
        };
        let mut rooms = Rooms::new(sizes, nodes as u32);
        let mut actors = Actors::new(&net, sizes, &mut rooms, nodes);
        let events = net.run(&mut actors.ranks);
        actors.check_end(&net);
        println!("{nodes} nodes: {events} events, {} ns", net.now().as_ns());
    }
}

/// The numbers of nodes; each is also the seed.
const SIZES: &[u64] = if cfg!(debug_assertions) { &[1_000] } else { &[1_000, 10_000] };
