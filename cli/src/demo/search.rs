//! Breadth-first search by the threads of all ranks, with one-sided
//! operations alone.
//!
//! A level at a time. Whoever finds a vertex first, by a compare-swap on its
//! level, keeps it in its own rank's next frontier; rows and levels are read
//! from wherever they lie. A thread whose rank has nothing left takes from
//! the frontiers of the others, by a fetch-add on their cursor.
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
//! There are two frontiers: from one vertices are taken, to the other they
//! are added. Only its own rank adds to a frontier, and only between two
//! level barriers, so one barrier a level is enough.

use super::spread::Spread;
use super::tally::{Count, Tally};
use super::world::{Outcome, Place, Shared, World};
use crate::graph::UNREACHED;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tsumugi_core::mem::Word;
use tsumugi_core::sync::{AtomicU64, Ordering};

/// Finds the level of every vertex from `from` with `ults` threads of each
/// rank; they stand in `spread` afterwards. `reached` is told after each
/// level how many vertices have been found so far. Collective.
pub fn search(
    world: &World,
    spread: &Spread,
    from: u32,
    ults: u32,
    tally: &Tally,
    reached: impl Fn(u64) + Sync,
) -> Outcome<()> {
    let search = Search {
        world,
        spread,
        ults,
        tally,
        frontiers: [Frontier::new(world, spread)?, Frontier::new(world, spread)?],
        level: Barrier::new(ults as usize),
        kept: AtomicU64::new(0),
        total: AtomicU64::new(0),
        failure: Mutex::new(Ok(())),
    };
    search.begin(from)?;
    world.ults(ults, || search.run(&reached));
    search.failure.into_inner().unwrap_or_else(PoisonError::into_inner)
}

struct Search<'a> {
    world: &'a World,
    spread: &'a Spread,
    ults: u32,
    tally: &'a Tally,
    frontiers: [Frontier; 2],
    /// All threads of this rank.
    level: Barrier,
    /// Vertices that this rank has kept in this level.
    kept: AtomicU64,
    /// What the last level came to on all ranks.
    total: AtomicU64,
    /// The first that a thread of this rank met.
    failure: Mutex<Outcome<()>>,
}

impl Search<'_> {
    /// Rank 0 keeps the first vertex.
    fn begin(&self, from: u32) -> Outcome<()> {
        if self.world.rank() == 0 {
            let mut count = Count::default();
            self.put(&mut count, self.spread.level(from), &[0])?;
            self.keep(&mut count, &self.frontiers[0], &[from])?;
            self.tally.add(count);
            // It belongs to no level that is summed.
            self.kept.store(0, Ordering::Relaxed);
        }
        self.world.barrier()
    }

    /// What each thread does.
    fn run(&self, reached: &(impl Fn(u64) + Sync)) {
        let mut so_far = 1;
        for level in 1.. {
            let mut count = Count::default();
            if let Err(failure) = self.expand_level(level, &mut count) {
                self.failed(failure);
            }
            self.tally.add(count);
            let total = self.end_level(level);
            so_far += total;
            if total == 0 || total >= FAILURE {
                return;
            }
            if self.world.rank() == 0 {
                reached(so_far);
            }
        }
    }

    /// Takes vertices of the last level, from its own rank first.
    fn expand_level(&self, level: u32, count: &mut Count) -> Outcome<()> {
        let (from, to) = self.frontiers_of(level);
        let mut found = Found { vertices: [0; FOUND_MAX], len: 0 };
        let (rank, size) = (self.world.rank(), self.world.size());
        for victim in (rank..size).chain(0..rank) {
            let filled = self.get(count, from.filled(victim))?;
            let share = filled / (u64::from(self.ults) * u64::from(size));
            let take = (share as usize).clamp(1, TAKEN_MAX);
            while self.get(count, from.cursor(victim))? < filled {
                let first = self.fetch_add(count, from.cursor(victim), take as u64)?;
                let Some(left) = filled.checked_sub(first).filter(|left| *left > 0) else { break };
                let mut taken = [0; TAKEN_MAX];
                let taken = &mut taken[..take.min(left as usize)];
                self.get_slice(count, from.vertices.at(victim, first), taken)?;
                for vertex in taken {
                    self.expand(*vertex, level, to, &mut found, count)?;
                }
                count.yielded();
                self.world.yield_now();
            }
        }
        self.keep(count, to, found.take())
    }

    /// Looks at each neighbour of `vertex`, wherever their levels lie.
    fn expand(
        &self,
        vertex: u32,
        level: u32,
        to: &Frontier,
        found: &mut Found,
        count: &mut Count,
    ) -> Outcome<()> {
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

    /// Whether we are the first to come to `vertex`.
    fn mark(&self, vertex: u32, level: u32, count: &mut Count) -> Outcome<bool> {
        let place = self.spread.level(vertex);
        if self.get(count, place)? != UNREACHED {
            return Ok(false);
        }
        count.atomic(self.world, &place);
        Ok(self.world.compare_swap(place, UNREACHED, level)? == UNREACHED)
    }

    /// Adds vertices to this rank's part of `frontier`.
    fn keep(&self, count: &mut Count, frontier: &Frontier, vertices: &[u32]) -> Outcome<()> {
        if vertices.is_empty() {
            return Ok(());
        }
        let (rank, len) = (self.world.rank(), vertices.len() as u64);
        let first = self.fetch_add(count, frontier.filled(rank), len)?;
        self.put(count, frontier.vertices.at(rank, first), vertices)?;
        self.kept.fetch_add(len, Ordering::Relaxed);
        Ok(())
    }

    /// Sleeps until every thread of every rank has come here. Returns how
    /// many vertices were kept in this level; [`FAILURE`] or more if a rank
    /// gives up.
    fn end_level(&self, level: u32) -> u64 {
        if self.sleep_at_barrier() {
            let kept = self.kept.swap(0, Ordering::Relaxed);
            let failed = u64::from(self.failure_so_far().is_err());
            let total = self.world.sum(kept + failed * FAILURE);
            let total = total.and_then(|total| {
                // Nobody takes from the old frontier any more, and nobody but
                // this rank adds to what it becomes.
                let (old, _) = self.frontiers_of(level);
                let rank = self.world.rank();
                self.world.put_slice(old.cursor(rank), &[0])?;
                self.world.put_slice(old.filled(rank), &[0])?;
                Ok(total)
            });
            let total = total.unwrap_or_else(|failure| {
                self.failed(failure);
                FAILURE
            });
            self.total.store(total, Ordering::Relaxed);
        }
        // Relaxed is enough for `total` and `kept`: the barrier orders them.
        self.sleep_at_barrier();
        self.total.load(Ordering::Relaxed)
    }

    /// Returns true to one of the threads.
    fn sleep_at_barrier(&self) -> bool {
        let begin = Instant::now();
        let is_leader = self.level.wait().is_leader();
        if !is_leader {
            self.tally.parked(begin.elapsed().as_nanos() as u64);
        }
        is_leader
    }

    fn failed(&self, failure: tsumugi_core::mem::AddrError) {
        let mut first = self.failure_so_far();
        if first.is_ok() {
            *first = Err(failure);
        }
    }

    fn failure_so_far(&self) -> MutexGuard<'_, Outcome<()>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where vertices of the level before are, and where those of `level` go.
    fn frontiers_of(&self, level: u32) -> (&Frontier, &Frontier) {
        let [even, odd] = &self.frontiers;
        if level.is_multiple_of(2) { (odd, even) } else { (even, odd) }
    }

    fn get<T: Word>(&self, count: &mut Count, from: Place<'_, T>) -> Outcome<T> {
        count.get(self.world, &from, 1);
        self.world.get(from)
    }

    fn get_slice<T: Word>(
        &self,
        count: &mut Count,
        from: Place<'_, T>,
        into: &mut [T],
    ) -> Outcome<()> {
        count.get(self.world, &from, into.len());
        self.world.get_slice(from, into)
    }

    fn put<T: Word>(&self, count: &mut Count, to: Place<'_, T>, from: &[T]) -> Outcome<()> {
        count.put(self.world, &to, from.len());
        self.world.put_slice(to, from)
    }

    fn fetch_add(&self, count: &mut Count, at: Place<'_, u64>, value: u64) -> Outcome<u64> {
        count.atomic(self.world, &at);
        self.world.fetch_add(at, value)
    }
}

/// Vertices of one level, at the ranks that found them.
struct Frontier {
    /// A rank may find every vertex: there is room for all at each.
    vertices: Shared<u32>,
    /// The cursor, and how far it is filled; on a cache line each.
    ends: Shared<u64>,
}

impl Frontier {
    fn new(world: &World, spread: &Spread) -> Outcome<Self> {
        let vertices = world.share(spread.vertices().into())?;
        Ok(Self { vertices, ends: world.share(2 * WORDS_PER_LINE)? })
    }

    fn cursor(&self, rank: u32) -> Place<'_, u64> {
        self.ends.at(rank, 0)
    }

    fn filled(&self, rank: u32) -> Place<'_, u64> {
        self.ends.at(rank, WORDS_PER_LINE)
    }
}

/// Vertices that a thread has found and not kept yet.
struct Found {
    vertices: [u32; FOUND_MAX],
    len: usize,
}

impl Found {
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

/// Above every count of vertices, with room for one from each rank.
const FAILURE: u64 = 1 << 40;
/// The stacks of the threads are small; so is what lies on them.
const FOUND_MAX: usize = 64;
const ROW_MAX: usize = 64;
const TAKEN_MAX: usize = 16;
const WORDS_PER_LINE: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Csr;
    use crate::shuffle::Shuffle;

    fn levels(csr: &Csr, from: u32, ranks: u32, ults: u32) -> Vec<u32> {
        let answers = World::run(ranks, |world| {
            let spread = Spread::new(&world, (world.rank() == 0).then_some(csr)).unwrap();
            search(&world, &spread, from, ults, &Tally::new(), |_| ()).unwrap();
            spread.gather(&world).unwrap()
        });
        assert!(answers.iter().all(|answer| *answer == answers[0]));
        answers.into_iter().next().unwrap()
    }

    fn random(vertices: u32, edges: usize, seed: u64) -> Csr {
        let mut shuffle = Shuffle::new(seed);
        let mut end = || shuffle.below(vertices.into()) as u32;
        Csr::new(vertices, (0..edges).map(|_| (end(), end())).collect())
    }

    #[test]
    fn it_agrees_with_the_serial_search_on_random_graphs() {
        for seed in 0..8 {
            let csr = random(300, 400, seed);
            for (ranks, ults) in [(1, 1), (2, 3), (4, 2), (7, 1)] {
                let found = levels(&csr, 5, ranks, ults);
                assert_eq!(found, csr.levels(5), "seed {seed}, {ranks} ranks x {ults}");
            }
        }
    }

    #[test]
    fn a_row_longer_than_a_buffer_and_a_long_path() {
        let star: Vec<_> = (1..1000).map(|leaf| (0, leaf)).collect();
        let star = Csr::new(1000, star);
        assert_eq!(levels(&star, 7, 3, 2), star.levels(7));
        let path = Csr::new(60, (0..59).map(|v| (v, v + 1)).collect());
        assert_eq!(levels(&path, 59, 3, 2), path.levels(59));
    }

    #[test]
    fn a_lonely_vertex_reaches_itself() {
        let csr = Csr::new(3, vec![(0, 1)]);
        assert_eq!(levels(&csr, 2, 4, 2), [UNREACHED, UNREACHED, 0]);
        assert_eq!(levels(&Csr::new(1, vec![]), 0, 2, 1), [0]);
    }

    #[test]
    fn what_is_told_meanwhile_ends_with_all_that_are_reached() {
        let csr = random(200, 600, 1);
        let expected = csr.levels(0).iter().filter(|level| **level != UNREACHED).count() as u64;
        let most = AtomicU64::new(0);
        World::run(2, |world| {
            let spread = Spread::new(&world, (world.rank() == 0).then_some(&csr)).unwrap();
            let tell = |so_far| {
                most.fetch_max(so_far, Ordering::Relaxed);
            };
            search(&world, &spread, 0, 2, &Tally::new(), tell).unwrap();
        });
        assert_eq!(most.load(Ordering::Relaxed), expected);
    }
}
