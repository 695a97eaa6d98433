//! One block of the mesh, apart from its place in the array: its cells, one step of
//! it, and when it must become finer.
//!
//! ```text
//!          north                a block of level l has (cells << l)² cells;
//!        ┌───────┐              neighbours see its edges at their own levels:
//!   west │       │ east         the edge of a finer block is averaged, that of
//!        └───────┘              a coarser block is repeated
//!          south
//! ```

/// The square that is cut into blocks, and the finest level of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks on a side, a power of two.
    pub blocks: usize,
    /// Cells on a side of a block of level 0.
    pub cells: usize,
    /// The finest level.
    pub level_max: u32,
}

/// A side of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    North,
    South,
    West,
    East,
}

/// The cells of a block, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub level: u32,
    pub values: Vec<f64>,
}

impl Side {
    pub const ALL: [Self; 4] = [Self::North, Self::South, Self::West, Self::East];

    /// The side of the neighbour that touches this side.
    pub fn opposite(self) -> Self {
        match self {
            Self::North => Self::South,
            Self::South => Self::North,
            Self::West => Self::East,
            Self::East => Self::West,
        }
    }
}

impl Shape {
    /// Cells on a side of a block of this level.
    pub fn side(&self, level: u32) -> usize {
        self.cells << level
    }

    /// Cells on a side of a block of the finest level.
    pub fn side_max(&self) -> usize {
        self.side(self.level_max)
    }

    /// The number of blocks.
    pub fn count(&self) -> usize {
        self.blocks * self.blocks
    }

    /// The number of the block at this place. Blocks are numbered along a Z curve, so
    /// that neighbours have near numbers.
    pub fn number(&self, x: usize, y: usize) -> usize {
        (0..usize::BITS / 2).fold(0, |number, bit| {
            number | (x >> bit & 1) << (2 * bit) | (y >> bit & 1) << (2 * bit + 1)
        })
    }

    /// The place of a block with this [`number`](Self::number).
    pub fn place(&self, number: usize) -> (usize, usize) {
        (0..usize::BITS / 2).fold((0, 0), |(x, y), bit| {
            (x | (number >> (2 * bit) & 1) << bit, y | (number >> (2 * bit + 1) & 1) << bit)
        })
    }

    /// The neighbour of a block on a side; `None` at the rim.
    pub fn neighbour(&self, number: usize, side: Side) -> Option<usize> {
        let (x, y) = self.place(number);
        let (x, y) = match side {
            Side::North => (Some(x), y.checked_sub(1)),
            Side::South => (Some(x), Some(y + 1)),
            Side::West => (x.checked_sub(1), Some(y)),
            Side::East => (Some(x + 1), Some(y)),
        };
        let inside = |at: Option<usize>| at.filter(|at| *at < self.blocks);
        Some(self.number(inside(x)?, inside(y)?))
    }
}

impl Block {
    /// A cold block.
    pub fn cold(shape: &Shape) -> Self {
        Self { level: 0, values: vec![0.0; shape.cells * shape.cells] }
    }

    /// Cells on a side of this block.
    pub fn side(&self, shape: &Shape) -> usize {
        shape.side(self.level)
    }

    /// The cells that the neighbour on that side reads.
    pub fn edge(&self, shape: &Shape, side: Side) -> Vec<f64> {
        let n = self.side(shape);
        let at = |index: usize| match side {
            Side::North => index,
            Side::South => (n - 1) * n + index,
            Side::West => index * n,
            Side::East => index * n + n - 1,
        };
        (0..n).map(|index| self.values[at(index)]).collect()
    }

    /// One step of time. `around` has the neighbours' edges, in the order of
    /// [`Side::ALL`] and as fine as this block. Then the fire is put in, if it burns
    /// here.
    pub fn step(&self, shape: &Shape, number: usize, around: &[Vec<f64>; 4], time: u64) -> Self {
        let (n, old) = (self.side(shape), &self.values);
        // The finest cells allow this part in a step. A coarser cell is larger in
        // area by the factor by which such cells are fewer.
        let part = 0.2 / f64::from(1u32 << (2 * (shape.level_max - self.level)));
        let mut values = Vec::with_capacity(n * n);
        for y in 0..n {
            for x in 0..n {
                let at = y * n + x;
                let north = if y > 0 { old[at - n] } else { around[0][x] };
                let south = if y + 1 < n { old[at + n] } else { around[1][x] };
                let west = if x > 0 { old[at - 1] } else { around[2][y] };
                let east = if x + 1 < n { old[at + 1] } else { around[3][y] };
                values.push(old[at] + part * (north + south + west + east - 4.0 * old[at]));
            }
        }
        let mut next = Self { level: self.level, values };
        next.burn(shape, number, time);
        next
    }

    /// Makes the cells within the fire hot.
    fn burn(&mut self, shape: &Shape, number: usize, time: u64) {
        let (n, width) = (self.side(shape), shape.blocks as f64);
        let (x, y) = shape.place(number);
        let (fire_x, fire_y) = fire(time);
        let (dx, dy) = (fire_x * width - x as f64, fire_y * width - y as f64);
        if !(-REACH..1.0 + REACH).contains(&dx) || !(-REACH..1.0 + REACH).contains(&dy) {
            return;
        }
        for (at, value) in self.values.iter_mut().enumerate() {
            let cell = |index: usize| (index as f64 + 0.5) / n as f64;
            let (far_x, far_y) = (cell(at % n) - dx, cell(at / n) - dy);
            if far_x * far_x + far_y * far_y < REACH * REACH {
                *value = 1.0;
            }
        }
    }

    /// The block as fine as it should be: one level finer or coarser, or unchanged.
    pub fn adapted(&self, shape: &Shape, number: usize, time: u64) -> Self {
        let n = self.side(shape);
        let slope = |at: usize, to: usize| (self.values[at] - self.values[to]).abs();
        let right = (0..n * n).filter(|at| at % n + 1 < n).map(|at| slope(at, at + 1));
        let down = (0..n * n - n).map(|at| slope(at, at + n));
        let steepest = right.chain(down).fold(0.0, f64::max);
        let (x, y) = shape.place(number);
        let (fire_x, fire_y) = fire(time);
        let width = shape.blocks as f64;
        let (dx, dy) = (fire_x * width - x as f64 - 0.5, fire_y * width - y as f64 - 0.5);
        let burns = dx.abs().max(dy.abs()) < 0.5 + REACH;
        let wants_more = steepest > STEEP || burns;
        match self.level {
            level if wants_more && level < shape.level_max => self.finer(n),
            level if !wants_more && steepest < FLAT && level > 0 => self.coarser(n),
            _ => self.clone(),
        }
    }

    fn finer(&self, n: usize) -> Self {
        let at = |index: usize| self.values[index / (2 * n) / 2 * n + index % (2 * n) / 2];
        Self { level: self.level + 1, values: (0..4 * n * n).map(at).collect() }
    }

    fn coarser(&self, n: usize) -> Self {
        let half = n / 2;
        let mean = |index: usize| {
            let at = 2 * (index / half) * n + 2 * (index % half);
            let of = &self.values;
            (of[at] + of[at + 1] + of[at + n] + of[at + n + 1]) / 4.0
        };
        Self { level: self.level - 1, values: (0..half * half).map(mean).collect() }
    }
}

/// An edge as a neighbour of so many cells sees it.
pub fn seen(edge: &[f64], cells: usize) -> Vec<f64> {
    if edge.len() <= cells {
        let times = cells / edge.len();
        return (0..cells).map(|cell| edge[cell / times]).collect();
    }
    let each = edge.len() / cells;
    edge.chunks(each).map(|some| some.iter().sum::<f64>() / each as f64).collect()
}

/// The place of the fire, from 0 to 1 in each direction: it moves in a circle.
fn fire(time: u64) -> (f64, f64) {
    let angle = time as f64 * 0.02;
    (0.5 + 0.3 * angle.cos(), 0.5 + 0.3 * angle.sin())
}

/// The radius of the fire, in blocks.
const REACH: f64 = 0.4;
/// A block with such a slope is made finer.
const STEEP: f64 = 0.05;
/// A block without such a slope is made coarser.
const FLAT: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { blocks: 8, cells: 4, level_max: 2 };

    #[test]
    fn every_block_has_one_number() {
        for number in 0..SHAPE.count() {
            let (x, y) = SHAPE.place(number);
            assert!(x < 8 && y < 8);
            assert_eq!(SHAPE.number(x, y), number);
        }
    }

    #[test]
    fn neighbouring_blocks_are_mutual() {
        for number in 0..SHAPE.count() {
            for side in Side::ALL {
                if let Some(other) = SHAPE.neighbour(number, side) {
                    assert_eq!(SHAPE.neighbour(other, side.opposite()), Some(number));
                }
            }
        }
        assert_eq!(SHAPE.neighbour(0, Side::North), None);
        assert_eq!(SHAPE.neighbour(63, Side::East), None);
    }

    #[test]
    fn a_block_refined_and_coarsened_is_unchanged() {
        let values = (0..16).map(f64::from).collect();
        let block = Block { level: 0, values };
        assert_eq!(block.finer(4).coarser(8), block);
        assert_eq!(block.finer(4).edge(&SHAPE, Side::West)[..4], [0.0, 0.0, 4.0, 4.0]);
    }

    #[test]
    fn edges_are_seen_with_the_cells_of_the_reader() {
        assert_eq!(seen(&[1.0, 3.0], 4), [1.0, 1.0, 3.0, 3.0]);
        assert_eq!(seen(&[1.0, 3.0, 5.0, 5.0], 2), [2.0, 5.0]);
    }

    #[test]
    fn the_mesh_is_fine_at_the_fire_and_coarse_elsewhere() {
        let mut blocks = vec![Block::cold(&SHAPE); SHAPE.count()];
        for time in 0..3 {
            for (number, block) in blocks.iter_mut().enumerate() {
                *block = block.adapted(&SHAPE, number, time);
            }
        }
        let fine = blocks.iter().filter(|block| block.level == 2).count();
        assert!((1..16).contains(&fine), "{fine}");
    }
}
