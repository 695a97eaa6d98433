//! Seats: small numbers for the ranks with which a rank communicates. A table has an
//! entry for each seat, and none for the other ranks of the job.
//!
//! The ranks of the node have the first seats, in their order; in a job of one node
//! a seat is the rank. A rank of another node gets the next seat at the first
//! communication in either direction, and keeps it. Seats are local: two ranks may
//! have different seats for the same rank.

use crate::Rank;
use crate::neighbours::Neighbours;
use std::collections::HashMap;

/// The mapping between ranks and seats.
#[derive(Debug)]
pub(crate) struct Seats {
    neighbours: Neighbours,
    /// The seats of ranks of other nodes; and those ranks, from the first such seat
    /// on.
    far: HashMap<u32, u32>,
    ranks: Vec<Rank>,
}

impl Seats {
    /// Makes seats for the neighbours alone.
    pub(crate) fn new(neighbours: Neighbours) -> Self {
        Self { neighbours, far: HashMap::new(), ranks: Vec::new() }
    }

    /// How many seats are taken.
    pub(crate) fn count(&self) -> u32 {
        self.neighbours.count() + self.ranks.len() as u32
    }

    /// Whether the rank of a seat is a neighbour.
    #[inline(always)]
    pub(crate) fn is_near(&self, seat: Rank) -> bool {
        seat.0 < self.neighbours.count()
    }

    /// The seat of a rank, if it has one.
    pub(crate) fn find(&self, rank: Rank) -> Option<Rank> {
        let near = self.neighbours.local(rank);
        near.or_else(|| self.far.get(&rank.0).copied().map(Rank))
    }

    /// The seat of a rank, which may get one now.
    pub(crate) fn take(&mut self, rank: Rank) -> Rank {
        if let Some(near) = self.neighbours.local(rank) {
            return near;
        }
        let next = self.count();
        let seat = *self.far.entry(rank.0).or_insert(next);
        if seat == next {
            self.ranks.push(rank);
        }
        Rank(seat)
    }

    /// The rank of a seat that is taken.
    pub(crate) fn rank(&self, seat: Rank) -> Rank {
        let near = self.neighbours.count();
        match seat.0.checked_sub(near) {
            None => self.neighbours.rank(seat),
            Some(far) => self.ranks[far as usize],
        }
    }
}

/// Bytes for each rank of another node that has a seat, with the empty part of a
/// hash table.
pub(crate) const SEAT_BYTES: usize = size_of::<Rank>() + 2 * (2 * size_of::<u32>() + 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_have_the_first_seats_and_others_follow_in_order() {
        let near = [4, 5, 9].map(Rank);
        let mut seats = Seats::new(Neighbours::new(Rank(5), near));
        assert_eq!(seats.find(Rank(7)), None);
        let taken = [9, 7, 4, 1_000_000, 7, 0].map(|rank| seats.take(Rank(rank)).0);
        assert_eq!(taken, [2, 3, 0, 4, 3, 5]);
        assert_eq!(seats.count(), 6);
        for (seat, rank) in [4, 5, 9, 7, 1_000_000, 0].into_iter().enumerate() {
            let seat = Rank(seat as u32);
            assert_eq!((seats.rank(seat), seats.find(Rank(rank))), (Rank(rank), Some(seat)));
            assert_eq!(seats.is_near(seat), near.contains(&Rank(rank)));
        }
    }
}
