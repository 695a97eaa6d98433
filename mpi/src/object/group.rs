//! Groups of MPI: lists of ranks, without communication.

use crate::abi;
use crate::fault::{Answer, fail, need};
use std::collections::HashMap;
use std::ffi::c_int;

/// Ranks of the job, in an order.
#[derive(Debug, Default)]
pub(crate) struct RankGroup {
    pub(crate) ranks: Vec<u32>,
}

impl RankGroup {
    /// The place of a rank.
    pub(crate) fn me(&self, own: u32) -> c_int {
        let at = self.ranks.iter().position(|rank| *rank == own);
        at.map_or(abi::UNDEFINED, |at| at as c_int)
    }

    /// The ranks with their places.
    pub(crate) fn places(&self) -> HashMap<u32, usize> {
        self.ranks.iter().enumerate().map(|(at, rank)| (*rank, at)).collect()
    }

    /// MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL.
    pub(crate) fn compare(&self, other: &Self) -> c_int {
        if self.ranks == other.ranks {
            return abi::IDENT;
        }
        let sorted = |group: &Self| {
            let mut ranks = group.ranks.clone();
            ranks.sort_unstable();
            ranks
        };
        if sorted(self) == sorted(other) { abi::SIMILAR } else { abi::UNEQUAL }
    }

    /// The ranks at these places, which must be distinct.
    pub(crate) fn chosen(&self, places: &[c_int]) -> Answer<Vec<usize>> {
        let (mut seen, size) = (vec![false; self.ranks.len()], self.ranks.len());
        places
            .iter()
            .map(|&place| {
                let at = usize::try_from(place).ok().filter(|at| *at < size);
                let Some(at) = at else {
                    fail!(abi::ERR_RANK, "rank {place} is not one of the {size} of the group")
                };
                need!(!seen[at], abi::ERR_RANK, "rank {place} is there twice");
                seen[at] = true;
                Ok(at)
            })
            .collect()
    }

    /// The places of ranges: first, last, stride.
    pub(crate) fn ranged(ranges: &[[c_int; 3]]) -> Answer<Vec<c_int>> {
        let mut places = Vec::new();
        for &[first, last, stride] in ranges {
            need!(stride != 0, abi::ERR_ARG, "the stride of the range {first} to {last} is 0");
            let (mut at, end, stride) = (i64::from(first), i64::from(last), i64::from(stride));
            while if stride > 0 { at <= end } else { at >= end } {
                places.push(at as c_int);
                at += stride;
            }
        }
        Ok(places)
    }

    pub(crate) fn without(&self, places: &[usize]) -> Self {
        let mut out = vec![false; self.ranks.len()];
        places.iter().for_each(|at| out[*at] = true);
        let kept = self.ranks.iter().zip(out).filter(|(_, is_out)| !is_out);
        Self { ranks: kept.map(|(rank, _)| *rank).collect() }
    }
}
