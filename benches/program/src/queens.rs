//! The number of ways in which so many queens stand on a board without attacking each
//! other. Each queen placed in the first rows is a task.

use crate::task::{Args, Counts, Tasks, args};
use crate::{Words, main};
use std::time::{Duration, Instant};
use tsumugi::{Error, Rank, Runtime};

/// The board, and the size of a task.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of queens, which is also that of rows and of columns.
    pub queens: u32,
    /// One task fills the last so many rows.
    pub grain: u32,
}

/// The measurements of a run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The number of ways.
    pub ways: u64,
    /// The time of the count.
    pub time: Duration,
    /// The counts of tasks of all ranks.
    pub counts: Counts,
}

/// A board with queens on the first rows, one in each.
#[derive(Clone, Copy)]
struct Board {
    queens: u32,
    row: u32,
    columns: u32,
    left: u32,
    right: u32,
}

/// `queens [QUEENS [GRAIN]]`
pub fn command() -> Result<(), Error> {
    main(
        |words: &mut Words| {
            let queens = words.number("QUEENS", 1..=QUEENS_MAX, 12)?;
            Ok(Plan { queens, grain: words.number("GRAIN", 0..=QUEENS_MAX, GRAIN)? })
        },
        |rt, plan| {
            let Outcome { ways, time, counts } = play(rt, plan)?;
            if rt.rank() == Rank(0) {
                let (queens, ms) = (plan.queens, time.as_millis());
                let Counts { forked, stolen, .. } = counts;
                println!(
                    "{queens} queens stand in {ways} ways: {ms} ms; {forked} tasks, {stolen} stolen"
                );
            }
            rt.barrier()
        },
    )
}

/// Counts the ways, and checks their number. Collective.
///
/// # Errors
///
/// An [`Error`] if a rank dies, if the tasks cannot be made, if a task fails, or if the
/// number of ways is not the known one.
pub fn play(rt: &Runtime, plan: Plan) -> Result<Outcome, Error> {
    let tasks = Tasks::new(rt, plan.grain, &[place])?;
    let empty = Board { queens: plan.queens, row: 0, columns: 0, left: 0, right: 0 };
    let start = Instant::now();
    let ways = tasks.run(|tasks| place(tasks, empty.to_args()))?;
    let time = start.elapsed();
    let known = KNOWN[plan.queens as usize];
    if ways != known {
        let queens = plan.queens;
        let what = format!("{queens} queens: {ways} ways were found, and there are {known}");
        return Err(Error::program(what));
    }
    Ok(Outcome { ways, time, counts: tasks.all_counts()? })
}

/// Counts all ways to complete a board.
fn place(tasks: &Tasks<u32>, args: Args) -> Result<u64, Error> {
    let board = Board::from_args(args);
    if board.queens - board.row <= *tasks.context() {
        return Ok(board.ways());
    }
    let placed = board.next().map(|next| tasks.fork(0, next.to_args()));
    let placed = placed.collect::<Result<Vec<_>, _>>()?;
    placed.into_iter().rev().map(|task| tasks.join(task)).sum()
}

impl Board {
    fn ways(self) -> u64 {
        if self.row == self.queens { 1 } else { self.next().map(Self::ways).sum() }
    }

    /// All boards with one queen more, in the next row.
    fn next(self) -> impl Iterator<Item = Self> {
        let all = (1u64 << self.queens) as u32 - 1;
        let mut free = all & !(self.columns | self.left | self.right);
        std::iter::from_fn(move || {
            let bit = free & free.wrapping_neg();
            free &= !bit;
            (bit != 0).then(|| Self {
                row: self.row + 1,
                columns: self.columns | bit,
                left: (self.left | bit) << 1,
                right: (self.right | bit) >> 1,
                ..self
            })
        })
    }

    fn to_args(self) -> Args {
        args([self.queens, self.row, self.columns, self.left, self.right].map(u64::from))
    }

    fn from_args(args: Args) -> Self {
        let [queens, row, columns, left, right, _] = args.map(|word| word as u32);
        Self { queens, row, columns, left, right }
    }
}

/// The number of ways by the number of queens: OEIS A000170.
const KNOWN: [u64; 17] =
    [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14_200, 73_712, 365_596, 2_279_184, 14_772_512];
const QUEENS_MAX: u32 = KNOWN.len() as u32 - 1;
const GRAIN: u32 = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queens_have_the_known_numbers_of_solutions() {
        for (ranks, queens, grain) in [(1, 1, 0), (1, 8, 0), (2, 7, 16), (3, 8, 4)] {
            let found = tsumugi::run_ranks(ranks, |rt| play(rt, Plan { queens, grain }));
            assert!(found.unwrap().iter().all(|found| found.ways == KNOWN[queens as usize]));
        }
    }
}
