//! The engine on nodes of a network with all faults. A node's engine is polled when it requests
//! a poll, and at no other time.

use super::*;
use tsumugi_conformance::Seeded;
use tsumugi_core::backend::Domain;
use tsumugi_core::completion::{CompletionTable, Status, Ticket};
use tsumugi_core::engine::{Delegate, Engine, Executor, Port, PortCounts, Work};
use tsumugi_core::mem::AddrError;
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::ring::Mpsc;
use tsumugi_core::sim::{NetPartition, NodeEndpoint, SimConfig, check};
use tsumugi_core::sync::Ordering;

const NODES: u32 = 3;
const OPS: usize = 60;

/// The work of one node, and its results.
struct Load<'t> {
    engine: &'t Engine<'t, NodeEndpoint<'t>>,
    begun: usize,
    drawn: Vec<u64>,
    tickets: Vec<Ticket<'t, ()>>,
    /// Operations that ended because of a loss.
    lost: usize,
}

impl Load<'_> {
    /// Begins operations while there is room, and takes those that have ended.
    fn drive(&mut self, counter: RemoteAddr) {
        while self.begun < OPS {
            match self.engine.submit(0, Op::atomic(Kind::FetchAdd, counter, 1u64), ()) {
                Ok(Status::Pending(ticket)) => self.tickets.push(ticket),
                Ok(Status::Done(_)) => unreachable!("a node's device is never immediate"),
                Err(_) => break,
            }
            self.begun += 1;
        }
        if self.engine.needs_poll() {
            self.engine.poll();
        }
        while let Some(done) = self.tickets.iter().position(Ticket::is_done) {
            let outcome = self.tickets.swap_remove(done).try_finish().expect("it is done");
            match outcome.result {
                Ok(drawn) => self.drawn.push(drawn),
                Err(AddrError::PeerLost { rank: Rank(0) }) => self.lost += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Runs the seed; returns the number of duplicate completions that the engines have dropped.
fn every_operation_ends(seed: u64, parts: bool) -> u64 {
    let config = SimConfig::drawn(NODES, Seeded(seed).next());
    let net = Net::new(config);
    let counter = at(0, &open(&net, 0, 8), 0);
    let tables: [CompletionTable<1>; 3] = Default::default();
    let rings: [Mpsc<Work, 8>; 3] = std::array::from_fn(|_| Mpsc::new());
    let counts: [PortCounts; 3] = Default::default();
    let executors: [[Executor<'_, NodeEndpoint<'_>>; 1]; 3] = std::array::from_fn(|index| {
        let endpoint = net.node(Rank(index as u32)).endpoint();
        let port = Port::new(endpoint, tables[index].view(), &counts[index]);
        // SAFETY: no other consumer pops.
        [Executor::Delegate(unsafe { Delegate::new(port, rings[index].view()) })]
    });
    let engines: [Engine<'_, NodeEndpoint<'_>>; 3] =
        std::array::from_fn(|index| Engine::new(tables[index].view(), &executors[index]));
    let mut work: Vec<Load<'_>> = engines
        .iter()
        .map(|engine| Load { engine, begun: 0, drawn: Vec::new(), tickets: Vec::new(), lost: 0 })
        .collect();
    let parting = parts.then(|| NetPartition::drawn(NODES, seed, 20_000, Rank(0)));
    if let Some(parting) = &parting {
        parting.run_by(&net, |until| {
            while net.next_due().is_some_and(|at| at <= until) {
                work.iter_mut().for_each(|work| work.drive(counter));
                net.step();
            }
        });
    }
    let ends = |rank| parting.as_ref().is_none_or(|parting| !parting.has_ended(Rank(rank)));
    loop {
        work.iter_mut().for_each(|work| work.drive(counter));
        if net.step().is_none() && net.in_flight() == 0 {
            let left = |work: &Load<'_>| work.engine.needs_poll();
            if !(0..).zip(&work).any(|(rank, work)| ends(rank) && left(work)) {
                break;
            }
        }
    }
    let mut drawn: Vec<u64> = work.iter().flat_map(|work| work.drawn.iter().copied()).collect();
    drawn.sort_unstable();
    if parts {
        assert!(drawn.is_sorted_by(|a, b| a < b), "two operations drew the same number");
        for (rank, work) in (0..).zip(&work).filter(|(rank, _)| ends(*rank)) {
            assert_eq!((work.begun, work.drawn.len() + work.lost), (OPS, OPS), "rank {rank}");
        }
    } else {
        let all = (0..u64::from(NODES) * OPS as u64).collect::<Vec<_>>();
        assert_eq!(drawn, all, "each operation drew a number of its own");
    }
    counts.iter().map(|counts| counts.stale.load(Ordering::Relaxed)).sum()
}

#[test]
fn every_operation_ends_once_on_the_engine() {
    let mut stale = 0;
    let is_own = check(SEEDS, |seed| stale += every_operation_ends(seed, false));
    // A single seed may draw no duplicate; a thousand seeds draw some.
    assert!(stale > 0 || !is_own, "no duplicates came");
}

#[test]
fn every_operation_to_a_rank_that_is_given_up_ends_once() {
    check(SEEDS, |seed| _ = every_operation_ends(seed, true));
}

#[test]
#[cfg(debug_assertions)]
fn a_port_that_counts_duplicates_is_caught() {
    use std::panic::catch_unwind;
    let found = tsumugi_core::sync::with_mutant("port_counts_duplicates", || {
        PLANTED
            .take(200)
            .filter(|&seed| catch_unwind(|| every_operation_ends(seed, false)).is_err())
            .count()
    });
    assert!(found > 0, "the mutant was not caught");
}
