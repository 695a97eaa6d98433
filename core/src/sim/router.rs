//! Routers that serve their sides in turn, and the queues behind them for a hot
//! engine.
//!
//! ```text
//!   node 3 ─► node 2 ─► node 1 ─► engine      one of the own ranks, one of the
//!     own ▲     own ▲     own ▲               side, one of the own, ...
//! ```
//!
//! If links are full, an operation that waits for an engine waits at the node that
//! it came from, and each router on the way lets one operation of each side pass in
//! turn, however many operations stand behind that side. So of three nodes in a row
//! the nearest has half of the engine, the farthest a quarter. An engine that serves
//! in the order of arrival would serve all nodes alike.
//!
//! A message travels along the first dimension, then the second, then the third.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// The routes to every engine for which an operation has ever waited.
pub(super) struct Routers {
    torus: [u32; 3],
    nodes: u32,
    engines: BTreeMap<usize, RouteTree>,
}

/// The routes to one engine: a tree over all nodes.
struct RouteTree {
    home: u32,
    is_busy: bool,
    routers: Vec<Router>,
}

struct Router {
    /// The next router on the route to the engine; for the last router, itself.
    next: u32,
    /// The routers that have this one as their next.
    sides: Vec<u32>,
    own: VecDeque<WaitingOp>,
    /// The number of operations that wait at this router and behind it.
    waiting: u32,
    /// The side that has its turn: 0 for the own node, otherwise a side plus one.
    turn: usize,
}

/// An operation that waits for an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitingOp {
    pub(super) slot: u64,
    pub(super) is_atomic: bool,
}

impl Routers {
    pub(super) fn new(torus: [u32; 3], nodes: u32) -> Self {
        let places = torus.into_iter().filter(|&size| size > 0).product();
        Self { torus, nodes: nodes.max(places), engines: BTreeMap::new() }
    }

    /// An operation of node `from` arrives. True: the engine, which belongs to node
    /// `home`, was idle and must carry the operation out now.
    pub(super) fn arrives(
        &mut self,
        engine: usize,
        home: usize,
        from: usize,
        waiting: WaitingOp,
    ) -> bool {
        let (torus, nodes, home) = (self.torus, self.nodes, home as u32);
        let ways = self.engines.entry(engine).or_insert_with(|| RouteTree::new(torus, nodes, home));
        if !core::mem::replace(&mut ways.is_busy, true) {
            return true;
        }
        ways.routers[from].own.push_back(waiting);
        let mut at = from as u32;
        loop {
            let router = &mut ways.routers[at as usize];
            router.waiting += 1;
            if at == home {
                return false;
            }
            at = router.next;
        }
    }

    /// The engine has carried an operation out; returns the operation that it must
    /// carry out next.
    pub(super) fn next(&mut self, engine: usize) -> Option<WaitingOp> {
        let ways = self.engines.get_mut(&engine)?;
        let mut at = ways.home as usize;
        if ways.routers[at].waiting == 0 {
            ways.is_busy = false;
            return None;
        }
        loop {
            ways.routers[at].waiting -= 1;
            let side = ways.turn_of(at)?;
            match side.checked_sub(1) {
                None => return ways.routers[at].own.pop_front(),
                Some(side) => at = ways.routers[at].sides[side] as usize,
            }
        }
    }
}

impl RouteTree {
    fn new(torus: [u32; 3], nodes: u32, home: u32) -> Self {
        let router = |node| Router {
            next: step(torus, node, home),
            sides: Vec::new(),
            own: VecDeque::new(),
            waiting: 0,
            turn: 0,
        };
        let mut routers: Vec<Router> = (0..nodes).map(router).collect();
        for node in (0..nodes).filter(|&node| node != home) {
            let next = routers[node as usize].next;
            routers[next as usize].sides.push(node);
        }
        Self { home, is_busy: false, routers }
    }

    /// The side from which the router at `at` takes the next operation: 0 is its own
    /// node. The side after it then has its turn. `None` if no operation waits here
    /// or behind.
    fn turn_of(&mut self, at: usize) -> Option<usize> {
        let router = &self.routers[at];
        let count = router.sides.len() + 1;
        let has_any = |side: &usize| match side.checked_sub(1) {
            None => !router.own.is_empty(),
            Some(side) => self.routers[router.sides[side] as usize].waiting > 0,
        };
        let side = (0..count).map(|past| (router.turn + past) % count).find(has_any)?;
        self.routers[at].turn = (side + 1) % count;
        Some(side)
    }
}

/// The node after `node` on the route to `home`.
fn step(torus: [u32; 3], node: u32, home: u32) -> u32 {
    let (mut from, mut to, mut unit) = (node, home, 1);
    for size in torus.into_iter().filter(|&size| size > 0) {
        let (here, there) = (from % size, to % size);
        if here != there {
            let ahead = (there + size - here) % size;
            let next = if ahead * 2 <= size { here + 1 } else { here + size - 1 } % size;
            return node - here * unit + next * unit;
        }
        (from, to, unit) = (from / size, to / size, unit * size);
    }
    home
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(torus: [u32; 3], nodes: u32, each: u64) -> Vec<u64> {
        let mut routers = Routers::new(torus, nodes);
        let waiting = |slot| WaitingOp { slot, is_atomic: true };
        assert!(routers.arrives(0, 0, 0, waiting(0)), "an idle engine");
        for _ in 0..each {
            for node in 0..nodes {
                assert!(!routers.arrives(0, 0, node as usize, waiting(node.into())));
            }
        }
        let served = core::iter::from_fn(|| routers.next(0)).map(|one| one.slot).collect();
        assert!(routers.arrives(0, 0, 0, waiting(0)), "idle again");
        served
    }

    #[test]
    fn near_nodes_get_a_larger_share_of_an_engine() {
        // Four nodes in a closed row: 1 and 3 are next to node 0, and 2 is behind 3.
        let served = served([4, 0, 0], 4, 8);
        let among = |first: usize, node| served[..first].iter().filter(|&&at| at == node).count();
        assert_eq!([0, 1, 2, 3].map(|node| among(12, node)), [4, 4, 2, 2]);
        assert_eq!([0, 1, 2, 3].map(|node| among(32, node)), [8; 4], "each node was served");
    }

    #[test]
    fn without_a_torus_all_nodes_get_an_equal_share() {
        assert_eq!(served([0; 3], 3, 2), [0, 1, 2, 0, 1, 2]);
    }
}
