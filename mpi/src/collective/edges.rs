//! Exchanges of blocks along edges: to the other group of an intercommunicator, and to neighbours
//! in a topology.

use crate::collective::prepared::Prepared;
use crate::collective::spread::Spread;
use crate::object::exchange::{Edges, Exchange};

/// Sends a block along each edge of `to`, or a single one along all, and receives one along each
/// edge of `of`.
pub(super) fn exchange<'a>(
    (to, mut from): (Edges, Spread),
    (of, mut into): (Edges, Spread),
) -> Prepared<'a> {
    let mut exchange = Exchange::default();
    for (place, edge) in of.iter().enumerate() {
        if edge.is_none() {
            into.clear(place);
        }
    }
    for ((edge, at), len) in of.into_iter().zip(into.received()).zip(&into.lens) {
        edge.into_iter().for_each(|edge| exchange.receive(edge, at, *len));
    }
    let blocks = from.sent();
    for (place, edge) in to.into_iter().enumerate() {
        let block = if blocks.len() == 1 { 0 } else { place };
        edge.into_iter().for_each(|edge| exchange.send(edge, blocks[block], from.lens[block]));
    }
    Prepared::exchange(exchange, move || {
        drop(from);
        into.arrived();
    })
}

/// Sends alone.
pub(super) fn send<'a>(to: Edges, from: Spread) -> Prepared<'a> {
    exchange((to, from), (Edges::new(), Spread::none()))
}

/// Receives alone.
pub(super) fn receive<'a>(of: Edges, into: Spread) -> Prepared<'a> {
    exchange((Edges::new(), Spread::none()), (of, into))
}
