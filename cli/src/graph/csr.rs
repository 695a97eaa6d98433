//! A graph as two arrays of neighbours, and the serial search.
//!
//! ```text
//!  starts     0      2   3          vertices + 1
//!             │      │   │
//!  neighbours 1  2 │ 0 │ 0          each row ascending, without itself,
//!                                   without doubles
//! ```

/// The level of a vertex that the search did not reach.
pub const UNREACHED: u32 = u32::MAX;

/// An undirected graph in compressed sparse rows: each edge is in the rows of both
/// its vertices.
#[derive(Debug, PartialEq, Eq)]
pub struct Csr {
    starts: Vec<u64>,
    neighbours: Vec<u32>,
}

impl Csr {
    /// The graph of the edges `pairs` between vertices `0 .. vertices`. Directions,
    /// duplicates and loops are dropped.
    pub fn new(vertices: u32, pairs: Vec<(u32, u32)>) -> Self {
        let (starts, mut neighbours) = both_ways(vertices, &pairs);
        drop(pairs);
        let starts = without_doubles(&starts, &mut neighbours);
        Self { starts, neighbours }
    }

    /// The number of vertices.
    pub fn vertices(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    /// The number of undirected edges.
    pub fn edges(&self) -> u64 {
        self.neighbours.len() as u64 / 2
    }

    /// The neighbours of `vertex`, ascending.
    pub fn row(&self, vertex: u32) -> &[u32] {
        let vertex = vertex as usize;
        &self.neighbours[self.starts[vertex] as usize..self.starts[vertex + 1] as usize]
    }

    /// The distance of each vertex from `from`, searched by one thread: the
    /// reference for every other search.
    pub fn levels(&self, from: u32) -> Vec<u32> {
        let mut levels = vec![UNREACHED; self.vertices() as usize];
        let mut queue = Vec::with_capacity(levels.len());
        levels[from as usize] = 0;
        queue.push(from);
        let mut next = 0;
        while let Some(&vertex) = queue.get(next) {
            next += 1;
            for &neighbour in self.row(vertex) {
                if levels[neighbour as usize] == UNREACHED {
                    levels[neighbour as usize] = levels[vertex as usize] + 1;
                    queue.push(neighbour);
                }
            }
        }
        levels
    }
}

/// Rows with every pair in both directions, duplicates included.
fn both_ways(vertices: u32, pairs: &[(u32, u32)]) -> (Vec<u64>, Vec<u32>) {
    let no_loops = || pairs.iter().filter(|(a, b)| a != b);
    let mut starts = vec![0u64; vertices as usize + 1];
    for &(a, b) in no_loops() {
        starts[a as usize + 1] += 1;
        starts[b as usize + 1] += 1;
    }
    for vertex in 1..starts.len() {
        starts[vertex] += starts[vertex - 1];
    }
    let mut free = starts.clone();
    let mut neighbours = vec![0u32; starts[vertices as usize] as usize];
    let mut add = |vertex: u32, neighbour: u32| {
        let free = &mut free[vertex as usize];
        neighbours[*free as usize] = neighbour;
        *free += 1;
    };
    for &(a, b) in no_loops() {
        add(a, b);
        add(b, a);
    }
    (starts, neighbours)
}

/// Sorts each row and removes duplicates.
fn without_doubles(starts: &[u64], neighbours: &mut Vec<u32>) -> Vec<u64> {
    let mut kept = Vec::with_capacity(starts.len());
    let mut end = 0;
    kept.push(0);
    for row in starts.windows(2) {
        let (first, last) = (row[0] as usize, row[1] as usize);
        neighbours[first..last].sort_unstable();
        let begin = end;
        for from in first..last {
            if end == begin || neighbours[end - 1] != neighbours[from] {
                neighbours[end] = neighbours[from];
                end += 1;
            }
        }
        kept.push(end as u64);
    }
    neighbours.truncate(end);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_double_edges_and_directions_are_dropped() {
        let csr = Csr::new(4, vec![(2, 0), (0, 1), (1, 0), (0, 1), (3, 3)]);
        assert_eq!(csr.edges(), 2);
        let rows: Vec<&[u32]> = (0..4).map(|vertex| csr.row(vertex)).collect();
        assert_eq!(rows, [&[1, 2][..], &[0], &[0], &[]]);
    }

    #[test]
    fn a_graph_may_have_no_edge() {
        let csr = Csr::new(2, vec![(1, 1)]);
        assert_eq!((csr.edges(), csr.levels(1)), (0, vec![UNREACHED, 0]));
    }

    #[test]
    fn levels_on_a_path_and_a_ring_are_distances() {
        let path: Vec<_> = (0..9).map(|v| (v, v + 1)).collect();
        assert_eq!(Csr::new(10, path.clone()).levels(0), (0..10).collect::<Vec<u32>>());
        let ring: Vec<_> = path.into_iter().chain([(9, 0)]).collect();
        assert_eq!(Csr::new(10, ring).levels(0), [0, 1, 2, 3, 4, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn another_component_is_not_reached() {
        let csr = Csr::new(5, vec![(0, 1), (2, 3), (3, 4)]);
        assert_eq!(csr.levels(3), [UNREACHED, UNREACHED, 1, 0, 1]);
    }
}
