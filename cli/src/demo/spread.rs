//! A graph spread over the registered memory of all ranks.
//!
//! Vertices are dealt out like cards: vertex `v` lies at rank `v % ranks`, as
//! its element `v / ranks`, so that neighbours in the file, which are often
//! alike, do not share a rank.
//!
//! ```text
//!  at each rank   starts      where the row of each own vertex begins
//!                 neighbours  the rows, with vertices of all ranks
//!                 levels      of each own vertex
//! ```

use super::world::{Outcome, Place, Shared, World};
use crate::graph::{Csr, UNREACHED};

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
    /// Spreads the graph that rank 0 has; the others give none. Collective.
    pub fn new(world: &World, graph: Option<&Csr>) -> Outcome<Self> {
        let ranks = world.size();
        let sizes: Shared<u64> = world.share(2)?;
        if let Some(graph) = graph {
            let rows_max = (0..ranks).map(|rank| row_entries(graph, rank, ranks)).max();
            for rank in 0..ranks {
                let told = [graph.vertices().into(), rows_max.unwrap_or(0)];
                world.put_slice(sizes.at(rank, 0), &told)?;
            }
        }
        world.barrier()?;
        let mut told = [0; 2];
        world.get_slice(sizes.at(world.rank(), 0), &mut told)?;
        let [vertices, rows_max] = told;
        let own_max = vertices.div_ceil(ranks.into());
        let spread = Self {
            vertices: vertices as u32,
            ranks,
            starts: world.share(own_max + 1)?,
            neighbours: world.share(rows_max.max(1))?,
            levels: world.share(own_max)?,
        };
        if let Some(graph) = graph {
            for rank in 0..ranks {
                spread.deal(world, graph, rank)?;
            }
        }
        world.barrier()?;
        Ok(spread)
    }

    /// How many vertices there are at all ranks together.
    pub fn vertices(&self) -> u32 {
        self.vertices
    }

    /// Where the level of `vertex` is.
    pub fn level(&self, vertex: u32) -> Place<'_, u32> {
        self.levels.at(vertex % self.ranks, (vertex / self.ranks).into())
    }

    /// Where the row of `vertex` begins and ends is two words from here on.
    pub fn row_ends(&self, vertex: u32) -> Place<'_, u64> {
        self.starts.at(vertex % self.ranks, (vertex / self.ranks).into())
    }

    /// Neighbour `index` of the rows at the rank of `vertex`.
    pub fn neighbour(&self, vertex: u32, index: u64) -> Place<'_, u32> {
        self.neighbours.at(vertex % self.ranks, index)
    }

    /// The levels of all vertices, fetched from all ranks.
    pub fn gather(&self, world: &World) -> Outcome<Vec<u32>> {
        let mut levels = vec![UNREACHED; self.vertices as usize];
        let mut part = Vec::new();
        for rank in 0..self.ranks {
            part.resize(own(self.vertices, rank, self.ranks) as usize, UNREACHED);
            world.get_slice(self.levels.at(rank, 0), &mut part)?;
            for (index, level) in part.iter().enumerate() {
                levels[index * self.ranks as usize + rank as usize] = *level;
            }
        }
        Ok(levels)
    }

    fn deal(&self, world: &World, graph: &Csr, rank: u32) -> Outcome<()> {
        let mut starts = vec![0u64];
        let mut neighbours = Vec::new();
        for vertex in vertices_of(graph, rank, self.ranks) {
            neighbours.extend_from_slice(graph.row(vertex));
            starts.push(neighbours.len() as u64);
        }
        world.put_slice(self.starts.at(rank, 0), &starts)?;
        world.put_slice(self.neighbours.at(rank, 0), &neighbours)?;
        world.put_slice(self.levels.at(rank, 0), &vec![UNREACHED; starts.len() - 1])
    }
}

/// How many vertices lie at `rank`.
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
            World::run(ranks, |world| {
                let spread = Spread::new(&world, (world.rank() == 0).then_some(&csr)).unwrap();
                assert_eq!(spread.vertices(), 11);
                for vertex in 0..11 {
                    let mut ends = [0; 2];
                    world.get_slice(spread.row_ends(vertex), &mut ends).unwrap();
                    let mut row = vec![0; (ends[1] - ends[0]) as usize];
                    world.get_slice(spread.neighbour(vertex, ends[0]), &mut row).unwrap();
                    assert_eq!(row, csr.row(vertex), "{vertex} at {ranks} ranks");
                }
                assert_eq!(spread.gather(&world).unwrap(), [UNREACHED; 11]);
            });
        }
    }
}
