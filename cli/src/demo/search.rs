//! Breadth-first search by the threads of all ranks, with one-sided operations only.
//!
//! The search proceeds level by level. The rank that finds a vertex first, by a
//! compare-swap on the vertex's level, keeps the vertex in its own part of the next
//! frontier; rows and levels are read from the rank that has them. A thread of a
//! rank with an empty frontier takes vertices from the frontiers of other ranks, by
//! a fetch-add on their cursor.
//!
//! ```text
//!  frontier of a rank    [ taken │ found, not taken │ room ]
//!                         0       cursor             filled
//!
//!  all threads:  take a few ─► get row ─► get levels ─► compare-swap ─► keep
//!                   ▲                                                    │
//!                   └──────── level barrier: the frontiers change ◄──────┘
//! ```
//!
//! There are two frontiers: vertices are taken from one and added to the other. Only
//! its own rank adds to a frontier, and only between two level barriers, so one
//! barrier for each level is enough.

use super::spread::Spread;
use super::tally::{Tally, ThreadTally};
use crate::graph::UNREACHED;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tsumugi::ult::sync::{Barrier, Mutex};
use tsumugi::ult::yield_now;
use tsumugi::{AddrError, Error, Plain, Rank, Remote, Runtime, Shared};
use tsumugi_core::sync::{AtomicU64, Ordering};

/// One search by the user-level threads of this rank, together with those of all
/// other ranks.
pub struct GraphSearch {
    rt: Runtime,
    spread: Arc<Spread>,
    ults: u32,
    tally: Tally,
    frontiers: [Frontier; 2],
    /// The barrier of all threads of this rank.
    level: Barrier,
    /// The number of threads that have reached the level barrier.
    arrived: AtomicU64,
    /// The number of vertices that this rank has kept in this level.
    kept: AtomicU64,
    /// The sum of the last level over all ranks.
    total: AtomicU64,
    made: Instant,
    /// The time at which all threads of all ranks were ready, in nanoseconds from
    /// `made`.
    begun_ns: AtomicU64,
    /// The first error of a thread of this rank.
    failure: Mutex<Option<Error>>,
}

impl GraphSearch {
    /// Prepares a search by `ults` threads of each rank. Collective.
    pub fn new(rt: &Runtime, spread: &Arc<Spread>, ults: u32) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self {
            rt: rt.clone(),
            spread: spread.clone(),
            ults,
            tally: Tally::new(),
            frontiers: [Frontier::new(rt, spread)?, Frontier::new(rt, spread)?],
            level: Barrier::new(ults as usize),
            arrived: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            total: AtomicU64::new(0),
            made: Instant::now(),
            begun_ns: AtomicU64::new(0),
            failure: Mutex::new(None),
        }))
    }

    /// Finds the level of every vertex from `from`, which rank 0 passes; afterwards
    /// the spread graph holds the levels. After each level `reached` is called with
    /// the number of vertices found so far. Returns the time that the threads took
    /// to start, and the time of the search. Collective, once.
    pub fn run(
        self: &Arc<Self>,
        from: Option<u32>,
        reached: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<(Duration, Duration), Error> {
        if let Some(from) = from {
            self.begin(from)?;
        }
        self.rt.barrier()?;
        let started = self.made.elapsed();
        let reached = Arc::new(reached);
        let ults: Vec<_> = (0..self.ults)
            .map(|_| {
                let (search, reached) = (self.clone(), reached.clone());
                self.rt.spawn(move |_| search.climb(&*reached))
            })
            .collect();
        for ult in ults {
            ult.join().unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        }
        match self.failure.lock().take() {
            Some(failure) => Err(failure),
            None => {
                let begun = Duration::from_nanos(self.begun_ns.load(Ordering::Relaxed));
                Ok((begun - started, self.made.elapsed() - begun))
            }
        }
    }

    /// The counts of the threads up to now.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Keeps the first vertex.
    fn begin(&self, from: u32) -> Result<(), AddrError> {
        let mut count = ThreadTally::default();
        self.put(&mut count, self.spread.level(from), &[0])?;
        self.keep(&mut count, &self.frontiers[0], &[from])?;
        self.tally.add(count);
        // The first vertex belongs to no level that is summed.
        self.kept.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// The work of each thread, level by level.
    fn climb(&self, reached: &impl Fn(u64)) {
        self.meet(|| self.begin_together());
        let mut count = ThreadTally::default();
        let mut so_far = 1;
        for level in 1.. {
            if let Err(failure) = self.expand_level(level, &mut count) {
                self.failed(failure.into());
            }
            let is_last = self.end_level(level);
            let total = self.total.load(Ordering::Relaxed);
            so_far += total;
            if total == 0 || total >= FAILURE {
                break;
            }
            if is_last {
                reached(so_far);
            }
        }
        self.tally.add(count);
    }

    /// Takes vertices of the last level, from the own rank first.
    fn expand_level(&self, level: u32, count: &mut ThreadTally) -> Result<(), AddrError> {
        let (from, to) = self.frontiers_of(level);
        let mut found = FoundVertices { vertices: [0; FOUND_MAX], len: 0 };
        let (rank, size) = (self.rt.rank().0, self.rt.size());
        for victim in (rank..size).chain(0..rank).map(Rank) {
            let filled = self.get(count, from.filled(victim))?;
            let share = filled / (u64::from(self.ults) * u64::from(size));
            let take = (share as usize).clamp(1, TAKEN_MAX);
            while self.get(count, from.cursor(victim))? < filled {
                let first = self.fetch_add(count, from.cursor(victim), take as u64)?;
                let Some(left) = filled.checked_sub(first).filter(|left| *left > 0) else { break };
                let mut taken = [0; TAKEN_MAX];
                let taken = &mut taken[..take.min(left as usize)];
                self.get_slice(count, from.vertices.at(victim, first as usize), taken)?;
                for vertex in taken {
                    self.expand(*vertex, level, to, &mut found, count)?;
                }
                yield_now();
            }
        }
        self.keep(count, to, found.take())
    }

    /// Visits each neighbour of `vertex`, at whichever rank its level lies.
    fn expand(
        &self,
        vertex: u32,
        level: u32,
        to: &Frontier,
        found: &mut FoundVertices,
        count: &mut ThreadTally,
    ) -> Result<(), AddrError> {
        let mut ends = [0; 2];
        self.get_slice(count, self.spread.row_ends(vertex), &mut ends)?;
        let [mut next, end] = ends;
        while next < end {
            let mut row = [0; ROW_MAX];
            let row = &mut row[..ROW_MAX.min((end - next) as usize)];
            self.get_slice(count, self.spread.neighbour(vertex, next), row)?;
            next += row.len() as u64;
            for neighbour in row {
                if self.mark(*neighbour, level, count)? {
                    if found.is_full() {
                        self.keep(count, to, found.take())?;
                    }
                    found.add(*neighbour);
                }
            }
        }
        Ok(())
    }

    /// Whether this thread is the first to reach `vertex`.
    fn mark(&self, vertex: u32, level: u32, count: &mut ThreadTally) -> Result<bool, AddrError> {
        let place = self.spread.level(vertex);
        if self.get(count, place)? != UNREACHED {
            return Ok(false);
        }
        count.atomic(&self.rt, place);
        Ok(self.rt.compare_swap(place, UNREACHED, level)? == UNREACHED)
    }

    /// Adds vertices to this rank's part of `frontier`.
    fn keep(
        &self,
        count: &mut ThreadTally,
        frontier: &Frontier,
        vertices: &[u32],
    ) -> Result<(), AddrError> {
        if vertices.is_empty() {
            return Ok(());
        }
        let (rank, len) = (self.rt.rank(), vertices.len() as u64);
        let first = self.fetch_add(count, frontier.filled(rank), len)?;
        self.put(count, frontier.vertices.at(rank, first as usize), vertices)?;
        self.kept.fetch_add(len, Ordering::Relaxed);
        Ok(())
    }

    /// Starts the clock when every thread of every rank is ready.
    fn begin_together(&self) {
        if let Err(failure) = self.rt.barrier() {
            self.failed(failure);
        }
        self.begun_ns.store(self.made.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Sleeps until every thread of every rank has reached this point. Then `total`
    /// is the number of vertices kept in this level, or at least [`FAILURE`] if a
    /// rank gives up. Returns true for the last thread of the rank.
    fn end_level(&self, level: u32) -> bool {
        let begin = Instant::now();
        let is_last = self.meet(|| {
            let total = self.sum_level(level).unwrap_or_else(|failure| {
                self.failed(failure);
                FAILURE
            });
            self.total.store(total, Ordering::Relaxed);
        });
        if !is_last {
            self.tally.slept(begin.elapsed().as_nanos() as u64);
        }
        is_last
    }

    /// Waits for all threads of this rank. The last one runs `work` for all while
    /// the others sleep.
    fn meet(&self, work: impl FnOnce()) -> bool {
        // AcqRel: the last thread sees the writes of the others.
        let is_last = self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == u64::from(self.ults);
        if is_last {
            // Relaxed, like the stores of `work`: the barrier orders them.
            self.arrived.store(0, Ordering::Relaxed);
            work();
        }
        self.level.wait();
        is_last
    }

    /// Sums the level over all ranks and empties this rank's old frontier.
    fn sum_level(&self, level: u32) -> Result<u64, Error> {
        let kept = self.kept.swap(0, Ordering::Relaxed);
        let failed = u64::from(self.failure.lock().is_some());
        let total = self.rt.sum(kept + failed * FAILURE)?;
        // No thread takes from the old frontier any more, and only this rank adds to
        // its own part when the frontier is used for the next level.
        let (old, _) = self.frontiers_of(level);
        self.rt.put(old.cursor(self.rt.rank()), 0)?;
        self.rt.put(old.filled(self.rt.rank()), 0)?;
        Ok(total)
    }

    fn failed(&self, failure: Error) {
        self.failure.lock().get_or_insert(failure);
    }

    /// The frontier with the vertices of the level before, and the frontier for
    /// those of `level`.
    fn frontiers_of(&self, level: u32) -> (&Frontier, &Frontier) {
        let [even, odd] = &self.frontiers;
        if level.is_multiple_of(2) { (odd, even) } else { (even, odd) }
    }

    fn get<T: Plain>(&self, count: &mut ThreadTally, from: Remote<T>) -> Result<T, AddrError> {
        count.get(&self.rt, from, 1);
        self.rt.get(from)
    }

    fn get_slice<T: Plain>(
        &self,
        count: &mut ThreadTally,
        from: Remote<T>,
        into: &mut [T],
    ) -> Result<(), AddrError> {
        count.get(&self.rt, from, into.len());
        self.rt.get_slice(from, into)
    }

    fn put<T: Plain>(
        &self,
        count: &mut ThreadTally,
        to: Remote<T>,
        from: &[T],
    ) -> Result<(), AddrError> {
        count.put(&self.rt, to, from.len());
        self.rt.put_slice(to, from)
    }

    fn fetch_add(
        &self,
        count: &mut ThreadTally,
        at: Remote<u64>,
        value: u64,
    ) -> Result<u64, AddrError> {
        count.atomic(&self.rt, at);
        self.rt.fetch_add(at, value)
    }
}

/// Vertices of one level, at the ranks that found them.
struct Frontier {
    /// A rank may find every vertex, so each rank has room for all of them.
    vertices: Shared<u32>,
    /// The cursor, and the filled length; each on a cache line of its own.
    ends: Shared<u64>,
}

impl Frontier {
    fn new(rt: &Runtime, spread: &Spread) -> Result<Self, Error> {
        let vertices = rt.share(spread.vertices() as usize)?;
        Ok(Self { vertices, ends: rt.share(2 * WORDS_PER_LINE)? })
    }

    fn cursor(&self, rank: Rank) -> Remote<u64> {
        self.ends.at(rank, 0)
    }

    fn filled(&self, rank: Rank) -> Remote<u64> {
        self.ends.at(rank, WORDS_PER_LINE)
    }
}

/// Vertices that a thread has found and not kept yet.
struct FoundVertices {
    vertices: [u32; FOUND_MAX],
    len: usize,
}

impl FoundVertices {
    fn is_full(&self) -> bool {
        self.len == FOUND_MAX
    }

    fn add(&mut self, vertex: u32) {
        self.vertices[self.len] = vertex;
        self.len += 1;
    }

    fn take(&mut self) -> &[u32] {
        &self.vertices[..std::mem::take(&mut self.len)]
    }
}

/// Greater than every count of vertices, with room for the sum over all ranks.
const FAILURE: u64 = 1 << 40;
/// The stacks of the threads are small, so these arrays on them are, too.
const FOUND_MAX: usize = 64;
const ROW_MAX: usize = 64;
const TAKEN_MAX: usize = 16;
const WORDS_PER_LINE: usize = 16;

#[cfg(test)]
mod tests;
