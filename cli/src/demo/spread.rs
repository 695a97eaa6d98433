//! A graph spread over the registered memory of all ranks.
//!
//! Vertices are dealt cyclically: vertex `v` lies at rank `v % ranks`, as the rank's
//! element `v / ranks`, so that neighbours in the file, which are often alike, do
//! not share a rank.
//!
//! ```text
//!  at each rank   starts      the place where the row of each own vertex begins
//!                 neighbours  the rows, with vertices of all ranks
//!                 levels      of each own vertex
//! ```

use crate::graph::{Csr, UNREACHED};
use tsumugi::{Error, Rank, Remote, Runtime, Shared};

/// A graph spread over the registered memory of all ranks.
#[derive(Debug)]
pub struct Spread {
    vertices: u32,
    ranks: u32,
    starts: Shared<u64>,
    neighbours: Shared<u32>,
    levels: Shared<u32>,
}

impl Spread {
    /// Spreads the graph of rank 0; the other ranks pass none. Collective.
    pub fn new(rt: &Runtime, graph: Option<&Csr>) -> Result<Self, Error> {
        let ranks = rt.size();
        let vertices = rt.sum(graph.map_or(0, Csr::vertices))?;
        let rows_max = graph.map_or(0, |graph| {
            (0..ranks).map(|rank| row_entries(graph, rank, ranks)).max().unwrap_or(0)
        });
        let rows_max = rt.sum(rows_max)?;
        let own_max = vertices.div_ceil(ranks) as usize;
        let spread = Self {
            vertices,
            ranks,
            starts: rt.share(own_max + 1)?,
            neighbours: rt.share(rows_max as usize)?,
            levels: rt.share(own_max)?,
        };
        if let Some(graph) = graph {
            for rank in 0..ranks {
                spread.deal(rt, graph, rank)?;
            }
        }
        rt.barrier()?;
        Ok(spread)
    }

    /// The number of vertices of all ranks together.
    pub fn vertices(&self) -> u32 {
        self.vertices
    }

    /// The address of the level of `vertex`.
    pub fn level(&self, vertex: u32) -> Remote<u32> {
        self.levels.at(Rank(vertex % self.ranks), (vertex / self.ranks) as usize)
    }

    /// The address of two words: the begin and the end of the row of `vertex`.
    pub fn row_ends(&self, vertex: u32) -> Remote<u64> {
        self.starts.at(Rank(vertex % self.ranks), (vertex / self.ranks) as usize)
    }

    /// The address of neighbour `index` in the rows at the rank of `vertex`.
    pub fn neighbour(&self, vertex: u32, index: u64) -> Remote<u32> {
        self.neighbours.at(Rank(vertex % self.ranks), index as usize)
    }

    /// The levels of all vertices, fetched from all ranks.
    pub fn gather(&self, rt: &Runtime) -> Result<Vec<u32>, Error> {
        let mut levels = vec![UNREACHED; self.vertices as usize];
        let mut part = Vec::new();
        for rank in 0..self.ranks {
            part.resize(own(self.vertices, rank, self.ranks) as usize, UNREACHED);
            rt.get_slice(self.levels.at(Rank(rank), 0), &mut part)?;
            for (index, level) in part.iter().enumerate() {
                levels[index * self.ranks as usize + rank as usize] = *level;
            }
        }
        Ok(levels)
    }

    fn deal(&self, rt: &Runtime, graph: &Csr, rank: u32) -> Result<(), Error> {
        let mut starts = vec![0u64];
        let mut neighbours = Vec::new();
        for vertex in vertices_of(graph, rank, self.ranks) {
            neighbours.extend_from_slice(graph.row(vertex));
            starts.push(neighbours.len() as u64);
        }
        let to = Rank(rank);
        rt.put_slice(self.starts.at(to, 0), &starts)?;
        rt.put_slice(self.neighbours.at(to, 0), &neighbours)?;
        rt.put_slice(self.levels.at(to, 0), &vec![UNREACHED; starts.len() - 1])?;
        Ok(())
    }
}

/// The number of vertices at `rank`.
fn own(vertices: u32, rank: u32, ranks: u32) -> u32 {
    vertices / ranks + u32::from(rank < vertices % ranks)
}

fn vertices_of(graph: &Csr, rank: u32, ranks: u32) -> impl Iterator<Item = u32> {
    (rank..graph.vertices()).step_by(ranks as usize)
}

fn row_entries(graph: &Csr, rank: u32, ranks: u32) -> u64 {
    vertices_of(graph, rank, ranks).map(|vertex| graph.row(vertex).len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vertex_lies_at_one_rank() {
        for (vertices, ranks) in [(10, 4), (3, 4), (8, 4), (1, 1), (5, 1)] {
            let owned: u32 = (0..ranks).map(|rank| own(vertices, rank, ranks)).sum();
            assert_eq!(owned, vertices, "{vertices} vertices at {ranks} ranks");
        }
    }

    #[test]
    fn a_spread_graph_is_read_back_whole() {
        let csr = Csr::new(11, vec![(0, 1), (1, 2), (10, 3), (5, 6), (6, 10), (0, 10)]);
        for ranks in [1, 2, 3, 16] {
            let ended = tsumugi::run_ranks(ranks, |rt: &Runtime| {
                let spread = Spread::new(rt, (rt.rank() == Rank(0)).then_some(&csr))?;
                assert_eq!(spread.vertices(), 11);
                for vertex in 0..11 {
                    let mut ends = [0; 2];
                    rt.get_slice(spread.row_ends(vertex), &mut ends)?;
                    let mut row = vec![0; (ends[1] - ends[0]) as usize];
                    rt.get_slice(spread.neighbour(vertex, ends[0]), &mut row)?;
                    assert_eq!(row, csr.row(vertex), "{vertex} at {ranks} ranks");
                }
                assert_eq!(spread.gather(rt)?, [UNREACHED; 11]);
                Ok::<_, Error>(())
            });
            ended.unwrap();
        }
    }
}
