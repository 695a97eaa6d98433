//! Heat on a mesh that is refined where it matters, in an array with pages that move:
//! the load moves with the fire, and, depending on the way, the data follow the load.
//!
//! ```text
//!  page of a block  │ edges, even steps │ edges, odd steps │ cells │
//!                      of all four sides, as neighbours read them
//!
//!  period:   adapt each block ─► share the load ─► own ─► steps
//!                                  by weight, along the Z   │
//!  step:     root ─► fork_at(rank) ─► fork(block), stolen ──┘
//!                                     by idle ranks
//! ```
//!
//! | | work | pages | |
//! |---|---|---|---|
//! | [`Way::Stay`] | where the pages are | where they were dealt | the rank with the fire has the load |
//! | [`Way::Work`] | shared out anew | where they were dealt | the load is even, the data are elsewhere |
//! | [`Way::Own`] | shared out anew | brought to the work | the load is even, the data at hand |
//!
//! In each way, a rank without work steals tasks.
//!
//! The answer is that of one thread alone, to the last bit, because a step of a block
//! depends on the previous step and on nothing else.

mod block;
mod serial;

use crate::task::{Args, Tasks, args};
use crate::{Words, main};
use block::{Block, Side, seen};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tsumugi::array::ArrayOptions;
use tsumugi::{Error, GlobalArray, Rank, Runtime};
use tsumugi_core::sync::{AtomicU64, Ordering};

pub use block::Shape;

/// The mesh and the length of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The mesh.
    pub shape: Shape,
    /// Steps of time.
    pub steps: u64,
    /// The mesh is adapted before each step that this number divides.
    pub period: u64,
}

/// How the load is shared out: the things that move with the fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing moves.
    Stay,
    /// Only the work moves.
    Work,
    /// The work moves, and its pages, by `own`.
    Own,
}

/// The measurements of a run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The time without the check.
    pub time: Duration,
    /// Accesses to pages.
    pub accesses: u64,
    /// Accesses to pages of other ranks, which are part of `accesses`.
    pub remote: u64,
    /// Pages that have moved.
    pub moved: u64,
    /// Tasks that were stolen.
    pub stolen: u64,
    /// The cells of the rank with the most, relative to the mean, over all periods.
    pub imbalance: f64,
}

/// The context of a rank's tasks.
struct Mesh {
    plan: Plan,
    pages: GlobalArray<f64>,
    levels: GlobalArray<u32>,
    /// The distribution of the present period.
    now: Mutex<Arc<Period>>,
    accesses: AtomicU64,
    remote: AtomicU64,
}

/// The owner of each block, the rank that works on it, and its level.
#[derive(Clone, Debug)]
struct Period {
    owners: Vec<Rank>,
    workers: Vec<Rank>,
    levels: Vec<u32>,
}

/// `mesh [BLOCKS [LEVELS [STEPS]]]`
pub fn command() -> Result<(), Error> {
    main(
        |words: &mut Words| {
            let blocks = words.number("BLOCKS", 1..=256usize, 16)?;
            let level_max = words.number("LEVELS", 0..=5, 3)?;
            let steps = words.number("STEPS", 1..=1_000_000, 96)?;
            if !blocks.is_power_of_two() {
                let what = format!("BLOCKS: {blocks} must be a power of two");
                return Err(Error::program(what));
            }
            Ok(Plan { shape: Shape { blocks, cells: 8, level_max }, steps, period: 8 })
        },
        |rt, plan| {
            for way in [Way::Stay, Way::Work, Way::Own] {
                let outcome = play(rt, plan, way)?;
                if rt.rank() == Rank(0) {
                    println!("{:>4} moves: {outcome}", way.name());
                }
            }
            rt.barrier()
        },
    )
}

/// Runs the plan in one way, and checks the answer. Collective.
///
/// # Errors
///
/// An [`Error`] if a rank dies, if the arrays or the tasks cannot be made, if a task
/// fails, or if a block differs from that of a serial run.
pub fn play(rt: &Runtime, plan: Plan, way: Way) -> Result<Outcome, Error> {
    let tasks = Tasks::new(rt, Mesh::new(rt, plan)?, &[of_rank, step, adapt])?;
    let mesh = tasks.context();
    mesh.clear(rt)?;
    let (mut time, mut moved, mut imbalances) = (Duration::ZERO, 0, Vec::new());
    for first in (0..plan.steps).step_by(plan.period as usize) {
        rt.barrier()?;
        let start = Instant::now();
        tasks.run(|tasks| everywhere(tasks, ADAPT, first))?;
        moved += mesh.share_out(rt, way)?;
        tasks.run(|tasks| {
            let last = plan.steps.min(first + plan.period);
            (first..last).map(|time| everywhere(tasks, STEP, time)).sum()
        })?;
        time += start.elapsed();
        imbalances.push(mesh.imbalance(rt.size()));
    }
    if rt.rank() == Rank(0) {
        mesh.check()?;
    }
    rt.barrier()?;
    Ok(Outcome {
        time,
        accesses: rt.sum(mesh.accesses.load(Ordering::Relaxed))?,
        remote: rt.sum(mesh.remote.load(Ordering::Relaxed))?,
        moved: rt.sum(moved)?,
        stolen: tasks.all_counts()?.stolen,
        imbalance: imbalances.iter().sum::<f64>() / imbalances.len() as f64,
    })
}

/// Runs a function for all blocks, each at the rank that works on it.
fn everywhere(tasks: &Tasks<Mesh>, function: u32, time: u64) -> Result<u64, Error> {
    let ranks = tasks.rt().ranks();
    let handles = ranks.map(|rank| {
        let given = args([u64::from(rank.0), function.into(), time]);
        tasks.fork_at(rank, OF_RANK, given)
    });
    let handles = handles.collect::<Result<Vec<_>, _>>()?;
    handles.into_iter().map(|handle| tasks.join(handle)).sum()
}

/// Forks a function for the blocks of a rank; other ranks may steal these tasks.
fn of_rank(tasks: &Tasks<Mesh>, [rank, function, time, ..]: Args) -> Result<u64, Error> {
    let now = tasks.context().now();
    let own = (0..now.workers.len()).filter(|block| u64::from(now.workers[*block].0) == rank);
    let handles = own.map(|block| tasks.fork(function as u32, args([block as u64, time])));
    let handles = handles.collect::<Result<Vec<_>, _>>()?;
    handles.into_iter().rev().map(|handle| tasks.join(handle)).sum()
}

/// Does a step of a block; returns the number of its cells.
fn step(tasks: &Tasks<Mesh>, [block, time, ..]: Args) -> Result<u64, Error> {
    let (mesh, number) = (tasks.context(), block as usize);
    let (now, shape, rank) = (mesh.now(), &mesh.plan.shape, tasks.rt().rank());
    let before = Block { level: now.levels[number], values: mesh.cells(rank, &now, number)? };
    let cells = before.side(shape);
    let mut around = [const { Vec::new() }; 4];
    for (edge, side) in around.iter_mut().zip(Side::ALL) {
        *edge = match shape.neighbour(number, side) {
            Some(other) => {
                let theirs = mesh.edge(rank, &now, other, side.opposite(), time)?;
                seen(&theirs, cells)
            }
            None => vec![0.0; cells],
        };
    }
    let after = before.step(shape, number, &around, time);
    mesh.write(rank, &now, number, &after, time + 1)?;
    Ok(after.values.len() as u64)
}

/// Makes a block as fine as it should be before a step.
fn adapt(tasks: &Tasks<Mesh>, [block, time, ..]: Args) -> Result<u64, Error> {
    let (mesh, number) = (tasks.context(), block as usize);
    let (now, rank) = (mesh.now(), tasks.rt().rank());
    let before = Block { level: now.levels[number], values: mesh.cells(rank, &now, number)? };
    let after = before.adapted(&mesh.plan.shape, number, time);
    if after.level != before.level {
        mesh.levels.put(number, after.level)?;
        mesh.write(rank, &now, number, &after, time)?;
    }
    Ok(0)
}

impl Mesh {
    /// A mesh without content. Collective.
    fn new(rt: &Runtime, plan: Plan) -> Result<Self, Error> {
        let (count, page_len) = (plan.shape.count(), page_len(&plan.shape));
        let options = ArrayOptions::new().page_len(page_len);
        let pages = options.create::<f64>(rt, count * page_len)?;
        let levels = rt.array::<u32>(count)?;
        let owners = (0..count).map(|block| pages.owner(block * page_len));
        let owners = owners.collect::<Result<Vec<_>, _>>()?;
        let period = Period { workers: owners.clone(), owners, levels: vec![0; count] };
        let now = Mutex::new(Arc::new(period));
        let zero = || AtomicU64::new(0);
        Ok(Self { plan, pages, levels, now, accesses: zero(), remote: zero() })
    }

    /// Makes the blocks of this rank cold. Collective.
    fn clear(&self, rt: &Runtime) -> Result<(), Error> {
        let (now, shape) = (self.now(), &self.plan.shape);
        for number in (0..shape.count()).filter(|number| now.owners[*number] == rt.rank()) {
            self.write(rt.rank(), &now, number, &Block::cold(shape), 0)?;
            self.levels.put(number, 0)?;
        }
        rt.barrier()
    }

    fn now(&self) -> Arc<Period> {
        self.now.lock().expect("no thread panics while it holds this lock").clone()
    }

    /// Shares the load out after an adaption: each rank reads the levels, and takes
    /// its share of what moves with the load. Returns how many pages have come to
    /// this rank. Collective.
    fn share_out(&self, rt: &Runtime, way: Way) -> Result<u64, Error> {
        let mut next = Period::clone(&self.now());
        self.levels.get_slice(0, &mut next.levels)?;
        if way != Way::Stay {
            next.workers = shares(&self.plan.shape, &next.levels, rt.size());
        }
        let mut moved = 0;
        if way == Way::Own {
            next.owners.clone_from(&next.workers);
            let page_len = self.pages.page_len();
            for block in (0..next.owners.len()).filter(|block| next.owners[*block] == rt.rank()) {
                moved += self.pages.own(block * page_len..(block + 1) * page_len)? as u64;
            }
        }
        *self.now.lock().expect("no thread panics while it holds this lock") = Arc::new(next);
        // No rank begins before all pages are where tasks look for them.
        rt.barrier()?;
        Ok(moved)
    }

    /// The cells of the rank with the most, relative to the mean.
    fn imbalance(&self, ranks: u32) -> f64 {
        let now = self.now();
        let mut cells = vec![0.0; ranks as usize];
        for (worker, level) in now.workers.iter().zip(&now.levels) {
            cells[worker.0 as usize] += (self.plan.shape.side(*level).pow(2)) as f64;
        }
        let (sum, most) = (cells.iter().sum::<f64>(), cells.iter().copied().fold(0.0, f64::max));
        most * f64::from(ranks) / sum
    }

    fn cells(&self, rank: Rank, now: &Period, number: usize) -> Result<Vec<f64>, Error> {
        let side = self.plan.shape.side(now.levels[number]);
        self.read(rank, now, number, 8 * self.plan.shape.side_max(), side * side)
    }

    /// An edge as it was before step `time`.
    fn edge(
        &self,
        rank: Rank,
        now: &Period,
        number: usize,
        side: Side,
        time: u64,
    ) -> Result<Vec<f64>, Error> {
        let cells = self.plan.shape.side(now.levels[number]);
        self.read(rank, now, number, self.edge_at(side, time), cells)
    }

    fn read(
        &self,
        rank: Rank,
        now: &Period,
        number: usize,
        at: usize,
        len: usize,
    ) -> Result<Vec<f64>, Error> {
        self.count(rank, now, number);
        let mut values = vec![0.0; len];
        self.pages.get_slice(number * self.pages.page_len() + at, &mut values)?;
        Ok(values)
    }

    /// Writes a block as it is before step `time`, with the edges that its neighbours
    /// read.
    fn write(
        &self,
        rank: Rank,
        now: &Period,
        number: usize,
        block: &Block,
        time: u64,
    ) -> Result<(), Error> {
        let (shape, page) = (&self.plan.shape, number * self.pages.page_len());
        for side in Side::ALL {
            self.count(rank, now, number);
            let edge = block.edge(shape, side);
            self.pages.put_slice(page + self.edge_at(side, time), &edge)?;
        }
        self.count(rank, now, number);
        self.pages.put_slice(page + 8 * shape.side_max(), &block.values)?;
        Ok(())
    }

    fn edge_at(&self, side: Side, time: u64) -> usize {
        let index = Side::ALL.iter().position(|one| *one == side).expect("one of four");
        ((time % 2) as usize * 4 + index) * self.plan.shape.side_max()
    }

    fn count(&self, rank: Rank, now: &Period, number: usize) {
        self.accesses.fetch_add(1, Ordering::Relaxed);
        if now.owners[number] != rank {
            self.remote.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Checks that all blocks are those that one thread computes.
    fn check(&self) -> Result<(), Error> {
        let (now, expected) = (self.now(), serial::alone(&self.plan));
        for (number, expected) in expected.iter().enumerate() {
            let mut values = vec![0.0; expected.values.len()];
            let at = number * self.pages.page_len() + 8 * self.plan.shape.side_max();
            self.pages.get_slice(at, &mut values)?;
            let found = Block { level: now.levels[number], values };
            if found != *expected {
                let (x, y) = self.plan.shape.place(number);
                let what = format!("block {x}, {y} differs from that of a serial run");
                return Err(Error::program(what));
            }
        }
        Ok(())
    }
}

impl Way {
    /// The name of the way: what moves.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stay => "none",
            Self::Work => "work",
            Self::Own => "own",
        }
    }
}

impl Outcome {
    /// The share of remote accesses.
    pub fn share(&self) -> f64 {
        self.remote as f64 / self.accesses.max(1) as f64
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = self.time.as_secs_f64() * 1e3;
        let share = 100.0 * self.share();
        write!(
            f,
            "{ms:.1} ms; {} of {} accesses remote ({share:.1} %); {} pages moved, {} tasks \
             stolen; the fullest rank has {:.2} of the mean",
            self.remote, self.accesses, self.moved, self.stolen, self.imbalance
        )
    }
}

/// Each rank's share of the blocks: successive blocks along the Z curve, with equal
/// weight.
fn shares(shape: &Shape, levels: &[u32], ranks: u32) -> Vec<Rank> {
    let weight = |level: &u32| (shape.side(*level) * shape.side(*level) + EACH) as u64;
    let all: u64 = levels.iter().map(weight).sum();
    let mut before = 0;
    let owner = |level| {
        let middle = before + weight(level) / 2;
        before += weight(level);
        Rank((middle * u64::from(ranks) / all) as u32)
    };
    levels.iter().map(owner).collect()
}

/// The length of a page: two sets of edges and the cells.
fn page_len(shape: &Shape) -> usize {
    let side = shape.side_max();
    8 * side + side * side
}

const OF_RANK: u32 = 0;
const STEP: u32 = 1;
const ADAPT: u32 = 2;
/// The fixed cost of a block, in cells.
const EACH: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mesh_is_that_of_one_thread_with_each_way() {
        let shape = Shape { blocks: 4, cells: 4, level_max: 2 };
        let plan = Plan { shape, steps: 12, period: 4 };
        for (ranks, way) in [(1, Way::Own), (3, Way::Stay), (3, Way::Work), (3, Way::Own)] {
            let ended = tsumugi::run_ranks(ranks, |rt| play(rt, plan, way)).unwrap();
            assert_eq!(ended[0].moved > 0, way == Way::Own && ranks > 1, "{:?}", ended[0]);
            assert!(ranks > 1 || ended[0].remote == 0, "{:?}", ended[0]);
        }
    }

    #[test]
    fn shares_are_even() {
        let shape = Shape { blocks: 4, cells: 4, level_max: 2 };
        let levels: Vec<u32> = (0..16).map(|block| u32::from(block < 4) * 2).collect();
        let owners = shares(&shape, &levels, 4);
        assert!(owners.is_sorted());
        // Four fine blocks and twelve coarse blocks: one rank does not get all fine
        // blocks.
        assert!(owners[3] > owners[0]);
        assert_eq!(shares(&shape, &[0; 16], 4)[8], Rank(2));
    }
}
