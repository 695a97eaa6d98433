//! How the ranks of a communicator are arranged: as a grid, or as a graph.

use crate::abi;
use crate::fault::{Answer, fail};
use std::ffi::c_int;

/// How the ranks of a communicator are arranged.
#[derive(Clone, Debug)]
pub(crate) enum Topology {
    Cart(Grid),
    /// The end of each rank's neighbours in the list of all, and that list.
    Graph {
        ends: Vec<c_int>,
        neighbours: Vec<c_int>,
    },
    Adjacent(Adjacent),
}

/// The neighbours of this rank, with the weights of the edges.
#[derive(Clone, Debug)]
pub(crate) struct Adjacent {
    pub(crate) sources: Vec<c_int>,
    pub(crate) destinations: Vec<c_int>,
    /// Of the sources and of the destinations. `None`: the program gave no weights.
    pub(crate) weights: Option<[Vec<c_int>; 2]>,
}

/// A grid: its dimensions, the last one changing first.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub(crate) dims: Vec<c_int>,
    pub(crate) periods: Vec<bool>,
}

impl Grid {
    pub(crate) fn new(dims: &[c_int], periods: &[c_int]) -> Answer<Self> {
        if let Some(dim) = dims.iter().find(|dim| **dim <= 0) {
            fail!(abi::ERR_DIMS, "a dimension of {dim}");
        }
        let periods = periods.iter().map(|period| *period != 0).collect();
        Ok(Self { dims: dims.to_vec(), periods })
    }

    /// The number of places.
    pub(crate) fn size(&self) -> i64 {
        self.dims.iter().map(|dim| i64::from(*dim)).product()
    }

    /// The place of a rank.
    pub(crate) fn coords(&self, rank: u32) -> Vec<c_int> {
        let mut left = rank as c_int;
        let mut coords: Vec<c_int> = self
            .dims
            .iter()
            .rev()
            .map(|dim| {
                let at = left % dim;
                left /= dim;
                at
            })
            .collect();
        coords.reverse();
        coords
    }

    /// The rank at a place; `None`: the place is outside of the grid.
    pub(crate) fn rank(&self, coords: &[c_int]) -> Option<c_int> {
        let mut rank = 0;
        for ((&at, &dim), &is_periodic) in coords.iter().zip(&self.dims).zip(&self.periods) {
            let at = if is_periodic { at.rem_euclid(dim) } else { at };
            if !(0..dim).contains(&at) {
                return None;
            }
            rank = rank * dim + at;
        }
        Some(rank)
    }

    /// The ranks next to one in each dimension, below and above.
    pub(crate) fn neighbours(&self, rank: u32) -> Vec<Option<c_int>> {
        let beside = |at: usize, by: c_int| {
            let mut coords = self.coords(rank);
            coords[at] += by;
            self.rank(&coords)
        };
        (0..self.dims.len()).flat_map(|at| [beside(at, -1), beside(at, 1)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_knows_its_places() {
        let grid = Grid::new(&[3, 2], &[1, 0]).unwrap();
        for rank in 0..6 {
            assert_eq!(grid.rank(&grid.coords(rank)), Some(rank as c_int));
        }
        assert_eq!((grid.rank(&[-1, 0]), grid.rank(&[0, -1])), (Some(4), None));
    }
}
