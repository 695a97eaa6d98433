//! Operations that all ranks of a job do at once, as the paper measures them: each
//! rank runs round after round, and the slowest rank's time counts.

use super::rows::{made, params};
use crate::bench::row::Row;
use crate::failure::Failure;
use std::time::{Duration, Instant};
use tsumugi::window::{Design, WindowOptions};
use tsumugi::{Error, Rank, Runtime, Shared, Window};

/// The ranks of a job and their measurements.
pub struct Together<'r> {
    rt: &'r Runtime,
    /// At rank 0, the time that each rank has taken.
    took: Shared<u64>,
    limit: Duration,
}

impl<'r> Together<'r> {
    /// Collective.
    pub fn new(rt: &'r Runtime, is_quick: bool) -> Result<Self, Error> {
        let took = rt.share(rt.size() as usize)?;
        let limit = Duration::from_millis(if is_quick { 100 } else { 1_000 });
        Ok(Self { rt, took, limit })
    }

    /// The rows of those `names` that belong to this module; empty except at rank 0.
    /// Collective.
    pub fn rows(&self, names: &[&str]) -> Result<Vec<Row>, Failure> {
        let rt = self.rt;
        let mut rows = Vec::new();
        let mut row = |name: &str, algorithm: &str, round: RankRound<'_>| {
            if names.contains(&name) {
                rows.extend(self.row(name, algorithm, round)?);
            }
            Ok::<_, Failure>(())
        };
        row("barrier", "counters", &mut || rt.barrier())?;
        let next = Rank((rt.rank().0 + 1) % rt.size());
        for (design, algorithm) in DESIGNS {
            let window = WindowOptions::new().design(design).create::<u64>(rt, 1)?;
            row("lock_all", algorithm, &mut || Ok(window.lock_all()?.release()?))?;
            row("exclusive", algorithm, &mut || Ok(window.exclusive(next)?.release()?))?;
        }
        let window = rt.window::<u64>(1)?;
        let all = window.lock_all().map_err(Error::from)?;
        row("fetch_and_op", "default", &mut || {
            rt.fetch_add(window.at(Rank(0), 0), 1)?;
            Ok(window.flush(Rank(0))?)
        })?;
        all.release()?;
        let mut plate = Plate::new(rt)?;
        row("stencil_fence", "default", &mut || plate.fence())?;
        let window = plate.window.clone();
        let all = window.lock_all().map_err(Error::from)?;
        row("stencil_lock_all", "default", &mut || plate.lock_all())?;
        all.release()?;
        Ok(rows)
    }

    /// A row of the nanoseconds of a round.
    fn row(
        &self,
        name: &str,
        algorithm: &str,
        round: RankRound<'_>,
    ) -> Result<Option<Row>, Failure> {
        let begin = Instant::now();
        let mut samples = Vec::new();
        let mut rounds = ROUNDS_FIRST;
        while rounds > 0 {
            self.rt.barrier()?;
            let start = Instant::now();
            (0..rounds).try_for_each(|_| round())?;
            let slowest = self.slowest(start.elapsed())?;
            samples.push(slowest as f64 / rounds as f64);
            // A sample takes ten milliseconds; rank 0 decides when there are enough.
            let most = SAMPLE_NS * rounds / slowest.max(1);
            let goes_on = self.rt.rank() == Rank(0) && begin.elapsed() < self.limit;
            rounds = self.rt.sum(if goes_on { most.clamp(1, ROUNDS_MAX) } else { 0 })?;
        }
        if self.rt.rank() != Rank(0) {
            return Ok(None);
        }
        Ok(made("tsumugi", name, &params(self.rt.size(), algorithm), &mut samples, [None; 2]))
    }

    /// The time of the slowest rank, in nanoseconds; only the result of rank 0 is
    /// valid.
    fn slowest(&self, own: Duration) -> Result<u64, Error> {
        let rank = self.rt.rank();
        self.rt.put(self.took.at(Rank(0), rank.0 as usize), own.as_nanos() as u64)?;
        self.rt.barrier()?;
        if rank != Rank(0) {
            return Ok(0);
        }
        let mut took = self.rt.ranks().map(|of| self.rt.get(self.took.at(rank, of.0 as usize)));
        took.try_fold(0, |most, one| Ok(most.max(one?)))
    }
}

/// The paper's two stencils, without their computation: a rank puts its own edges to
/// its neighbours between two fences; or it gets the neighbours' edges after a
/// barrier, while it holds the lock of all.
struct Plate<'r> {
    rt: &'r Runtime,
    /// Rows of each rank: the own first and last edge, then the edges of the
    /// neighbours.
    window: Window<f64>,
    edges: [[f64; ROW]; 2],
    neighbours: [Option<Rank>; 2],
}

impl<'r> Plate<'r> {
    fn new(rt: &'r Runtime) -> Result<Self, Error> {
        let (rank, size) = (rt.rank().0, rt.size());
        let above = rank.checked_sub(1).map(Rank);
        let below = Some(Rank(rank + 1)).filter(|next| next.0 < size);
        let window = rt.window(4 * ROW)?;
        Ok(Self { rt, window, edges: [[1.0; ROW]; 2], neighbours: [above, below] })
    }

    fn fence(&mut self) -> Result<(), Error> {
        self.window.fence()?;
        // This rank's first edge lies below the neighbour above.
        for ((edge, neighbour), row) in self.edges.iter().zip(self.neighbours).zip([3, 2]) {
            if let Some(rank) = neighbour {
                self.window.put(rank, row * ROW, edge)?;
            }
        }
        self.window.fence()
    }

    fn lock_all(&mut self) -> Result<(), Error> {
        self.rt.barrier()?;
        for ((edge, neighbour), row) in self.edges.iter_mut().zip(self.neighbours).zip([1, 0]) {
            if let Some(rank) = neighbour {
                self.window.get_slice(rank, row * ROW, edge)?;
            }
        }
        Ok(self.window.flush_all()?)
    }
}

/// One round of a rank.
type RankRound<'a> = &'a mut dyn FnMut() -> Result<(), Error>;

/// The rows of this module.
pub const TOGETHER: [&str; 6] =
    ["barrier", "lock_all", "exclusive", "fetch_and_op", "stencil_fence", "stencil_lock_all"];
const DESIGNS: [(Design, &str); 4] = [
    (Design::Each, "each"),
    (Design::Tree, "tree"),
    (Design::Global, "global"),
    (Design::TwoLevel, "two_level"),
];
/// The number of values of an edge.
const ROW: usize = 256;
const ROUNDS_FIRST: u64 = 4;
const ROUNDS_MAX: u64 = 1_000;
const SAMPLE_NS: u64 = 10_000_000;
