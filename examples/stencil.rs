//! Heat in a plate with its rows distributed over all ranks, with two ways of
//! synchronizing the rows at the borders: by fences, where each rank puts its edges
//! to its neighbours; and under a lock of all targets (`lock_all`), where each rank
//! gets its neighbours' edges between two barriers.
//!
//! ```text
//!  rank r    above │ own rows 0 .. │ below       the window has each edge twice, for
//!              ▲        edge        ▲            even and for odd steps, so one fence
//!        r - 1 ┘                    └ r + 1      or one barrier in a step is enough
//! ```
//!
//! With both ways, the result is equal to that of one rank alone, to the last bit.
//!
//! `cargo run --release -- run -n 2 target/release/examples/stencil`

use std::time::Instant;
use tsumugi::{Error, Rank, Runtime, Window};

const ROWS: usize = 64;
const COLUMNS: usize = 256;
const STEPS: usize = 200;

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let expected = alone(rt.size() as usize * ROWS);
        let own = &expected[rt.rank().0 as usize * ROWS..][..ROWS];
        for (name, step) in [("fence", fence as Step), ("lock_all", lock_all)] {
            let window = rt.window::<f64>(4 * COLUMNS)?;
            let mut plate = Plate::new(rt);
            let held = (name == "lock_all").then(|| window.lock_all()).transpose()?;
            rt.barrier()?;
            let start = Instant::now();
            for number in 0..STEPS {
                step(rt, &window, &mut plate, number)?;
                plate.step();
            }
            rt.barrier()?;
            let us = start.elapsed().as_secs_f64() * 1e6 / STEPS as f64;
            drop(held);
            if plate.rows[1..=ROWS] != *own {
                return Err(Error::program(format!("{name}: not the result of one rank alone")));
            }
            if rt.rank() == Rank(0) {
                println!("{name:>8}: {us:.1} us a step, result equal to that of one rank alone");
            }
        }
        Ok(())
    })
}

/// A function that brings the rows above and below for a step.
type Step = fn(&Runtime, &Window<f64>, &mut Plate, usize) -> Result<(), Error>;

/// Puts this rank's edges to its neighbours.
fn fence(rt: &Runtime, window: &Window<f64>, plate: &mut Plate, step: usize) -> Result<(), Error> {
    let [above, below] = slots(step);
    if let Some(rank) = plate.above {
        window.put(rank, below, &plate.rows[1])?;
    }
    if let Some(rank) = plate.below {
        window.put(rank, above, &plate.rows[ROWS])?;
    }
    window.fence()?;
    if plate.above.is_some() {
        window.get_slice(rt.rank(), above, &mut plate.rows[0])?;
    }
    if plate.below.is_some() {
        window.get_slice(rt.rank(), below, &mut plate.rows[ROWS + 1])?;
    }
    Ok(())
}

/// Gets the neighbours' edges, while all targets are locked.
fn lock_all(
    rt: &Runtime,
    window: &Window<f64>,
    plate: &mut Plate,
    step: usize,
) -> Result<(), Error> {
    let [first, last] = slots(step);
    window.put(rt.rank(), first, &plate.rows[1])?;
    window.put(rt.rank(), last, &plate.rows[ROWS])?;
    window.flush_all()?;
    rt.barrier()?;
    if let Some(rank) = plate.above {
        window.get_slice(rank, last, &mut plate.rows[0])?;
    }
    if let Some(rank) = plate.below {
        window.get_slice(rank, first, &mut plate.rows[ROWS + 1])?;
    }
    Ok(())
}

/// The places of a step's two rows in the window.
fn slots(step: usize) -> [usize; 2] {
    let even = step % 2 * 2;
    [even * COLUMNS, (even + 1) * COLUMNS]
}

/// The rows of a rank, with one row above and one below.
struct Plate {
    rows: Vec<[f64; COLUMNS]>,
    above: Option<Rank>,
    below: Option<Rank>,
}

impl Plate {
    fn new(rt: &Runtime) -> Self {
        let (rank, size) = (rt.rank().0, rt.size());
        let rows = start(rank as usize * ROWS, ROWS, size as usize * ROWS);
        let above = rank.checked_sub(1).map(Rank);
        Self { rows, above, below: Some(Rank(rank + 1)).filter(|next| next.0 < size) }
    }

    /// Sets every point to the mean of its neighbours.
    fn step(&mut self) {
        let old = self.rows.clone();
        for row in 1..self.rows.len() - 1 {
            for column in 1..COLUMNS - 1 {
                let sides = old[row][column - 1] + old[row][column + 1];
                self.rows[row][column] =
                    (sides + old[row - 1][column] + old[row + 1][column]) / 4.0;
            }
        }
    }
}

/// The initial values of `rows` rows from `first` on, out of `all` rows, with one
/// row above and one below.
fn start(first: usize, rows: usize, all: usize) -> Vec<[f64; COLUMNS]> {
    let row = |row: usize| match row {
        // The upper edge is hot, the lower edge is cold.
        0 => [1.0; COLUMNS],
        _ if row > all => [0.0; COLUMNS],
        _ => std::array::from_fn(|column| (row * column % 7) as f64 / 7.0),
    };
    (first..first + rows + 2).map(row).collect()
}

/// The result for all rows, computed by one rank alone.
fn alone(all: usize) -> Vec<[f64; COLUMNS]> {
    let mut plate = Plate { rows: start(0, all, all), above: None, below: None };
    (0..STEPS).for_each(|_| plate.step());
    plate.rows[1..=all].to_vec()
}
