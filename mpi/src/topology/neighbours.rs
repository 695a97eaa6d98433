//! The ranks next to this one, in a topology of any kind.

use crate::abi;
use crate::fault::{Answer, fail};
use crate::object::communicator::CommRef;
use crate::object::exchange::{Edge, Edges};
use crate::object::topology::Topology;
use crate::topology::graph::neighbours_of;
use std::ffi::c_int;

/// The neighbours from which messages come, and those to which they go. `None` is a place
/// outside of a grid.
pub(crate) fn neighbours(comm: &CommRef) -> Answer<(Edges, Edges)> {
    let edges = |ranks: &[c_int]| -> Answer<Edges> {
        ranks.iter().map(|to| Ok(Some(Edge { rank: comm.rank_of(*to)?, slot: 0 }))).collect()
    };
    match &comm.topology {
        Some(Topology::Cart(grid)) => {
            let (mut of, mut to) = (Vec::new(), Vec::new());
            for (at, next) in grid.neighbours(comm.rank()).into_iter().enumerate() {
                let rank = next.map(|next| comm.rank_of(next)).transpose()?;
                let edge = |slot: usize| rank.map(|rank| Edge { rank, slot: slot as u16 });
                of.push(edge(at));
                // What goes down a dimension comes from above.
                to.push(edge(at ^ 1));
            }
            Ok((of, to))
        }
        Some(Topology::Graph { .. }) => {
            let all = edges(neighbours_of(comm, comm.rank() as c_int)?)?;
            Ok((all.clone(), all))
        }
        Some(Topology::Adjacent(all)) => Ok((edges(&all.sources)?, edges(&all.destinations)?)),
        None => fail!(abi::ERR_TOPOLOGY, "{} has no topology", &**comm),
    }
}
