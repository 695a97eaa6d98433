//! The engine on nodes of a network that does its worst. A node's engine is
//! polled when it says that it should be, and at no other time.

use super::*;
use tsumugi_conformance::Seeded;
use tsumugi_core::backend::Domain;
use tsumugi_core::completion::{CompletionTable, Status, Ticket};
use tsumugi_core::engine::{Delegate, Engine, Executor, Port, PortCounts, Work};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::ring::Mpsc;
use tsumugi_core::sim::{Config, NodeEndpoint, check};
use tsumugi_core::sync::Ordering;

const NODES: u32 = 3;
const OPS: usize = 60;

/// What one node has to do, and what has come of it.
struct Load<'t> {
    engine: &'t Engine<'t, NodeEndpoint<'t>>,
    begun: usize,
    drawn: Vec<u64>,
    tickets: Vec<Ticket<'t, ()>>,
}

impl Load<'_> {
    /// Begins what there is room for and takes what has ended.
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
            self.drawn.push(outcome.result.expect("nobody dies"));
        }
    }
}

fn every_operation_ends(seed: u64) {
    let config = Config::drawn(NODES, Seeded(seed).next());
    let net = Net::new(config);
    let counter = at(0, &open(&net, 0, 8), 0);
    let tables: [CompletionTable<1>; 3] = Default::default();
    let rings: [Mpsc<Work, 8>; 3] = std::array::from_fn(|_| Mpsc::new());
    let counts: [PortCounts; 3] = Default::default();
    let executors: [[Executor<'_, NodeEndpoint<'_>>; 1]; 3] = std::array::from_fn(|index| {
        let endpoint = net.node(Rank(index as u32)).endpoint();
        let port = Port::new(endpoint, tables[index].view(), &counts[index]);
        // SAFETY: nobody else pops.
        [Executor::Delegate(unsafe { Delegate::new(port, rings[index].view()) })]
    });
    let engines: [Engine<'_, NodeEndpoint<'_>>; 3] =
        std::array::from_fn(|index| Engine::new(tables[index].view(), &executors[index]));
    let mut work: Vec<Load<'_>> = engines
        .iter()
        .map(|engine| Load { engine, begun: 0, drawn: Vec::new(), tickets: Vec::new() })
        .collect();
    loop {
        work.iter_mut().for_each(|work| work.drive(counter));
        if net.step().is_none() && net.in_flight() == 0 {
            let left = |work: &Load<'_>| work.engine.needs_poll();
            if !work.iter().any(left) {
                break;
            }
        }
    }
    let mut drawn: Vec<u64> = work.iter().flat_map(|work| work.drawn.iter().copied()).collect();
    drawn.sort_unstable();
    let all = (0..u64::from(NODES) * OPS as u64).collect::<Vec<_>>();
    assert_eq!(drawn, all, "each operation drew a number of its own");
    let stale: u64 = counts.iter().map(|counts| counts.stale.load(Ordering::Relaxed)).sum();
    assert!(stale > 0 || config.duplicate < 50, "duplicates came");
}

#[test]
fn every_operation_ends_once_on_the_engine() {
    check(SEEDS, every_operation_ends);
}

#[test]
#[cfg(debug_assertions)]
fn a_port_that_counts_duplicates_is_caught() {
    use std::panic::catch_unwind;
    let found = tsumugi_core::sync::with_mutant("port_counts_duplicates", || {
        SEEDS.take(200).filter(|&seed| catch_unwind(|| every_operation_ends(seed)).is_err()).count()
    });
    assert!(found > 0, "the mutant was not caught");
}
