//! Breadth-first search of a graph; its rows lie in an array with pages that move.
//!
//! ```text
//!  rows    dealt in blocks by the number of their vertex; a row begins a page
//!  work    rank hash(v) expands vertex v, and for that reads v's row
//!
//!  before own   1 - 1/ranks of the reads are of other ranks' pages
//!  after        none: the rows are where the work is
//! ```
//!
//! The search goes level by level. The threads of each rank take the rank's vertices
//! of the last level, read their rows and mark the neighbours by a compare-and-swap
//! on the neighbour's level in another array.

use crate::{Words, main};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tsumugi::array::ArrayOptions;
use tsumugi::{Error, GlobalArray, Rank, Runtime};
use tsumugi_core::random;

/// The level of a vertex that was not reached.
pub const UNREACHED: u32 = u32::MAX;

/// A graph in the memory of all ranks.
#[derive(Clone, Debug)]
pub struct Search {
    rt: Runtime,
    rows: GlobalArray<u32>,
    levels: GlobalArray<u32>,
    /// The place of each row; every rank has a copy.
    index: Arc<Vec<Row>>,
    ults: usize,
}

/// The measurements of one search.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The time of a search that does not count.
    pub time: Duration,
    /// Pages of rows that were read.
    pub reads: u64,
    /// Reads of other ranks' pages, which are part of `reads`.
    pub remote: u64,
}

/// The first page of a row, and the number of its neighbours.
#[derive(Clone, Copy, Debug)]
struct Row {
    page: u32,
    len: u32,
}

/// `search [VERTICES [DEGREE [ULTS]]]`
pub fn command() -> Result<(), Error> {
    main(
        |words: &mut Words| {
            let vertices = words.number("VERTICES", 1..=1 << 24, 50_000u32)?;
            let degree = words.number("DEGREE", 1..=1000u32, 9)?;
            Ok((vertices, degree, words.number("ULTS", 1..=4096usize, 16)?))
        },
        |rt, (vertices, degree, ults)| {
            let graph = (rt.rank() == Rank(0)).then(|| random(vertices, degree));
            let [before, moved, after] = play(rt, graph.as_deref(), 0, ults)?;
            if rt.rank() == Rank(0) {
                println!("rows as dealt:  {before}");
                println!("own:            {moved}");
                println!("rows with work: {after}");
            }
            rt.barrier()
        },
    )
}

/// The report of [`play`], one line each.
pub type Lines = [String; 3];

/// Searches `graph`, which rank 0 has, before and after the rows are brought to the
/// work; compares both results with a search by one thread. Collective.
///
/// # Errors
///
/// An [`Error`] if a rank dies, if the arrays cannot be made, or if a level differs
/// from that of a serial search.
pub fn play(
    rt: &Runtime,
    graph: Option<&[Vec<u32>]>,
    from: u32,
    ults: usize,
) -> Result<Lines, Error> {
    let rows = |graph: &'_ [Vec<u32>]| graph.len();
    let vertices = rt.sum(graph.map_or(0, rows) as u64)? as u32;
    let search =
        Search::new(rt, vertices, ults, graph.map(|graph| |v: u32| &graph[v as usize][..]))?;
    let serial = graph.map(|graph| alone(graph, from));
    let check = |search: &Search| -> Result<(), Error> {
        let Some(serial) = &serial else { return Ok(()) };
        search.check(serial)
    };
    let before = search.run(from)?;
    check(&search)?;
    let (moved, time) = search.own()?;
    let after = search.run(from)?;
    check(&search)?;
    rt.barrier()?;
    let ms = time.as_secs_f64() * 1e3;
    Ok([before.to_string(), format!("{moved} pages in {ms:.2} ms"), after.to_string()])
}

impl Search {
    /// A graph of so many vertices; rank 0 gives the rows. Collective.
    ///
    /// # Errors
    ///
    /// An [`Error`] if a rank dies, or if an array cannot be made: there is no memory
    /// for it, or its shape is not possible.
    pub fn new<'a>(
        rt: &Runtime,
        vertices: u32,
        ults: usize,
        row: Option<impl Fn(u32) -> &'a [u32]>,
    ) -> Result<Self, Error> {
        let index = rt.array::<u64>(vertices as usize)?;
        let mut pages = 0u32;
        if let Some(row) = &row {
            let of = |vertex| {
                let len = row(vertex).len();
                let first = pages;
                pages += len.div_ceil(PAGE_LEN) as u32;
                u64::from(first) << 32 | len as u64
            };
            index.put_slice(0, &(0..vertices).map(of).collect::<Vec<_>>())?;
        }
        let pages = rt.sum(u64::from(pages))? as usize;
        // A rank caches the places of all pages; a missing place costs one read.
        let known = (pages.max(1)) as u32;
        let options = ArrayOptions::new().page_len(PAGE_LEN).known(known);
        let rows = options.create::<u32>(rt, pages.max(1) * PAGE_LEN)?;
        let levels = rt.array::<u32>(vertices as usize)?;
        let mut words = vec![0u64; vertices as usize];
        index.get_slice(0, &mut words)?;
        let of = |word: u64| Row { page: (word >> 32) as u32, len: word as u32 };
        let index: Arc<Vec<Row>> = Arc::new(words.into_iter().map(of).collect());
        if let Some(row) = row {
            for (vertex, at) in (0..).zip(index.iter()) {
                rows.put_slice(at.page as usize * PAGE_LEN, row(vertex))?;
            }
        }
        rt.barrier()?;
        Ok(Self { rt: rt.clone(), rows, levels, index, ults })
    }

    /// Finds all levels from one vertex, twice: the first search counts. Collective.
    ///
    /// # Errors
    ///
    /// An [`Error`] if a rank dies.
    pub fn run(&self, from: u32) -> Result<Outcome, Error> {
        let mut counts = [0; 2];
        let mut time = Duration::ZERO;
        // The first search also fills the caches of places; the time is that of the
        // second.
        for counting in [true, false] {
            self.clear(from)?;
            let start = Instant::now();
            let found = self.climb(counting)?;
            time = start.elapsed();
            counts = if counting { found } else { counts };
        }
        Ok(Outcome { time, reads: self.rt.sum(counts[0])?, remote: self.rt.sum(counts[1])? })
    }

    /// Brings the rows of each rank's vertices to the rank. Returns how many pages
    /// have moved, all ranks together, and the time. Collective.
    ///
    /// # Errors
    ///
    /// An [`Error`] if a rank dies, or if this rank has no room for another page.
    pub fn own(&self) -> Result<(u64, Duration), Error> {
        self.rt.barrier()?;
        let start = Instant::now();
        let mut moved = 0;
        for (vertex, row) in (0..).zip(self.index.iter()) {
            if self.is_mine(vertex) {
                moved += self.rows.own(row.range())? as u64;
            }
        }
        self.rt.barrier()?;
        let time = start.elapsed();
        Ok((self.rt.sum(moved)?, time))
    }

    /// The levels that were found.
    ///
    /// # Errors
    ///
    /// An [`Error`] if a rank dies.
    pub fn levels(&self) -> Result<Vec<u32>, Error> {
        let mut levels = vec![0; self.index.len()];
        self.levels.get_slice(0, &mut levels)?;
        Ok(levels)
    }

    /// Checks the levels.
    ///
    /// # Errors
    ///
    /// An [`Error`] if a rank dies, or if a vertex has another level; it names the
    /// first such vertex.
    pub fn check(&self, expected: &[u32]) -> Result<(), Error> {
        let found = self.levels()?;
        match found.iter().zip(expected).position(|(found, expected)| found != expected) {
            None => Ok(()),
            Some(vertex) => Err(Error::program(format!(
                "vertex {vertex} has level {}, a serial search gives {}",
                found[vertex], expected[vertex]
            ))),
        }
    }

    fn clear(&self, from: u32) -> Result<(), Error> {
        self.rt.barrier()?;
        if self.rt.rank() == Rank(0) {
            self.levels.put_slice(0, &vec![UNREACHED; self.index.len()])?;
            self.levels.put(from as usize, 0)?;
        }
        self.rt.barrier()
    }

    /// Searches level by level; returns how many pages were read, and how many of
    /// other ranks.
    fn climb(&self, counting: bool) -> Result<[u64; 2], Error> {
        let mut counts = [0; 2];
        for level in 0.. {
            let levels = self.levels()?;
            let own = |vertex: &u32| levels[*vertex as usize] == level && self.is_mine(*vertex);
            let front: Vec<u32> = (0..levels.len() as u32).filter(own).collect();
            let each = front.len().div_ceil(self.ults).max(1);
            let ults: Vec<_> = front
                .chunks(each)
                .map(|some| {
                    let (search, some) = (self.clone(), some.to_vec());
                    self.rt.spawn(move |_| search.expand(&some, level + 1, counting))
                })
                .collect();
            let mut found = 0;
            for ult in ults {
                let [marked, reads, remote] = ult.join().expect("no search panics")?;
                found += marked;
                counts = [counts[0] + reads, counts[1] + remote];
            }
            if self.rt.sum(found)? == 0 {
                break;
            }
        }
        Ok(counts)
    }

    /// Marks the neighbours of vertices; returns how many, the pages read, and those
    /// of other ranks.
    fn expand(&self, vertices: &[u32], level: u32, counting: bool) -> Result<[u64; 3], Error> {
        let (mut counts, mut neighbours) = ([0; 3], Vec::new());
        for vertex in vertices {
            let row = self.index[*vertex as usize];
            neighbours.resize(row.len as usize, 0);
            self.rows.get_slice(row.range().start, &mut neighbours)?;
            if counting {
                for page in row.range().step_by(PAGE_LEN) {
                    counts[1] += 1;
                    counts[2] += u64::from(self.rows.owner(page)? != self.rt.rank());
                }
            }
            for neighbour in &neighbours {
                let at = *neighbour as usize;
                if self.levels.get(at)? == UNREACHED
                    && self.levels.compare_swap(at, UNREACHED, level)? == UNREACHED
                {
                    counts[0] += 1;
                }
            }
        }
        Ok(counts)
    }

    fn is_mine(&self, vertex: u32) -> bool {
        random::first(vertex.into()) % u64::from(self.rt.size()) == u64::from(self.rt.rank().0)
    }
}

impl Row {
    /// The range of the row's elements.
    fn range(self) -> std::ops::Range<usize> {
        let first = self.page as usize * PAGE_LEN;
        first..first + self.len as usize
    }
}

impl Outcome {
    /// The share of reads of other ranks' pages.
    pub fn share(&self) -> f64 {
        self.remote as f64 / self.reads.max(1) as f64
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = self.time.as_secs_f64() * 1e3;
        write!(f, "{ms:.2} ms; {:.3} of {} reads of rows remote", self.share(), self.reads)
    }
}

/// A graph of random edges; each edge is in the rows of both ends.
fn random(vertices: u32, degree: u32) -> Vec<Vec<u32>> {
    let mut rows = vec![Vec::new(); vertices as usize];
    for edge in 0..u64::from(vertices) * u64::from(degree) / 2 {
        let end = |side: u64| (random::first(2 * edge + side) % u64::from(vertices)) as u32;
        let (one, two) = (end(0), end(1));
        rows[one as usize].push(two);
        rows[two as usize].push(one);
    }
    rows
}

/// The levels, computed by one thread.
fn alone(graph: &[Vec<u32>], from: u32) -> Vec<u32> {
    let mut levels = vec![UNREACHED; graph.len()];
    levels[from as usize] = 0;
    let (mut queue, mut next) = (vec![from], 0);
    while let Some(vertex) = queue.get(next).copied() {
        next += 1;
        for neighbour in &graph[vertex as usize] {
            if levels[*neighbour as usize] == UNREACHED {
                levels[*neighbour as usize] = levels[vertex as usize] + 1;
                queue.push(*neighbour);
            }
        }
    }
    levels
}

/// Neighbours per page: the mean row of the package graph has nine.
const PAGE_LEN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_one_thread_and_rows_are_local_after_own() {
        let graph = random(600, 7);
        for ranks in [1, 4] {
            let ended = tsumugi::run_ranks(ranks, |rt| {
                play(rt, (rt.rank() == Rank(0)).then_some(&graph[..]), 3, 3)
            });
            let said = ended.unwrap().swap_remove(0);
            assert!(said[2].contains("0.000 of"), "{said:?}");
            assert_eq!(said[0].contains("0.000 of"), ranks == 1, "{said:?}");
        }
    }

    #[test]
    fn a_graph_without_edges_is_searched_at_once() {
        let graph = vec![Vec::new(); 3];
        let ended = tsumugi::run_ranks(2, |rt| {
            play(rt, (rt.rank() == Rank(0)).then_some(&graph[..]), 1, 1)
        });
        ended.unwrap();
    }
}
