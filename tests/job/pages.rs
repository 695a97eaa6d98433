//! Arrays whose pages move, used by whole programs: a histogram to which all ranks add
//! while its pages move, and a search of a graph whose rows are moved to the ranks that
//! read them.
//!
//! ```text
//!  graph: a row of 8 neighbours for each vertex, a page each, distributed in blocks
//!  work:  rank hash(v) processes vertex v, and reads v's row
//!
//!  before own   1 - 1/ranks of the rows are read from another rank
//!  after        none
//! ```

use crate::roles::say;
use tsumugi::array::{ArrayError, ArrayOptions, Directory};
use tsumugi::{AddrError, Agent, Error, GlobalArray, Runtime};
use tsumugi_core::random;

/// Runs the whole test, `scale` times as large as the smallest; twice, if a device can
/// have the directory. Collective.
pub fn play(rt: &Runtime, scale: u64) -> Result<(), Error> {
    let by_device = ArrayOptions::new().directory(Directory::Device);
    for (options, needs_device) in [(ArrayOptions::new(), false), (by_device, true)] {
        let agent = options.create::<u64>(rt, 1)?.agent();
        if agent == Agent::Cpu && needs_device {
            break;
        }
        histogram(rt, options, 500 * scale)?;
        search(rt, options, 200 * scale as usize)?;
        if rt.rank().0 == 0 {
            say(&format!("pages found by {agent:?}"));
        }
    }
    Ok(())
}

/// ULTs of all ranks add to elements and move pages, until the last rank is killed with
/// the pages that it owns and is home to. Each call ends, with its effect or with an error
/// that names a rank that is gone. A page that is not lost has all additions. A page that
/// no other rank uses, at its home, is not lost.
pub fn owners(rt: &Runtime) -> Result<(), Error> {
    let options = ArrayOptions::new().page_len(PAGE_LEN).known(7);
    let array = options.create::<u64>(rt, ELEMENTS)?;
    let apart = options.create::<u64>(rt, PAGE_LEN * rt.size() as usize)?;
    let homes = (0..apart.len()).map(|at| Ok((at, apart.home(at)?)));
    let homes: Vec<_> = homes.collect::<Result<_, ArrayError>>()?;
    let (mine, _) = homes.into_iter().find(|(_, home)| *home == rt.rank()).expect("a page each");
    apart.put(mine, KEPT)?;
    rt.barrier()?;
    say(&format!("working {}", std::process::id()));
    let rank = u64::from(rt.rank().0);
    let is_lost = |error: ArrayError| match error {
        // The killed rank, or one that has ended after it.
        ArrayError::Addr(AddrError::PeerLost { .. } | AddrError::StaleKey { .. }) => {}
        error => panic!("not the loss of a rank: {error}"),
    };
    let ults: Vec<_> = (0..ULTS)
        .map(|ult| {
            let array = array.clone();
            rt.spawn(move |_| {
                let (mut done, mut deaths, mut step) = (vec![0u64; ELEMENTS], 0, 0);
                // Some calls fail, and all others still work.
                while deaths < 100 {
                    step += 1;
                    let at = random::finalize(rank << 40 | ult << 32 | step) as usize % ELEMENTS;
                    match array.fetch_add(at, 1) {
                        Ok(_) => done[at] += 1,
                        Err(error) => {
                            is_lost(error);
                            deaths += 1;
                        }
                    }
                    if step % 3 == 0
                        && let Err(error) = array.own(at..(at + 6).min(ELEMENTS))
                    {
                        is_lost(error);
                        deaths += 1;
                    }
                }
                done
            })
        })
        .collect();
    let mut done = vec![0; ELEMENTS];
    for ult in ults {
        let of = ult.join().expect("no panic");
        done.iter_mut().zip(of).for_each(|(done, of)| *done += of);
    }
    for (at, done) in done.into_iter().enumerate() {
        match array.get(at) {
            Ok(value) => {
                assert!(value >= done, "element {at}: {done} were added here, {value} are left");
            }
            Err(error) => is_lost(error),
        }
    }
    say(&format!("kept its own: {}", apart.get(mine)? == KEPT));
    Ok(())
}

/// Each key of each rank is counted once.
fn histogram(rt: &Runtime, options: ArrayOptions, keys: u64) -> Result<(), Error> {
    let bins = options.page_len(32).known(4).create::<u64>(rt, BINS)?;
    let rank = u64::from(rt.rank().0);
    let ults: Vec<_> = (0..ULTS)
        .map(|ult| {
            let bins = bins.clone();
            rt.spawn(move |_| {
                for key in 0..keys {
                    let bin = random::finalize(rank << 40 | ult << 32 | key) as usize % BINS;
                    bins.fetch_add(bin, 1)?;
                    if key % 50 == ult {
                        bins.own(bin..(bin + 40).min(BINS))?;
                    }
                }
                Ok::<(), Error>(())
            })
        })
        .collect();
    ults.into_iter().try_for_each(|ult| ult.join().expect("no panic"))?;
    rt.barrier()?;
    // Each rank moves its part of the bins to itself, and adds up the counts there.
    let size = rt.size() as usize;
    let part = BINS * rank as usize / size..BINS * (rank as usize + 1) / size;
    bins.own(part.clone())?;
    rt.barrier()?;
    let mut counts = vec![0; part.len()];
    bins.get_slice(part.start, &mut counts)?;
    let all = rt.sum(counts.iter().sum::<u64>())?;
    assert_eq!(all, keys * ULTS * u64::from(rt.size()), "keys counted");
    let middle = (part.start + part.end) / 2;
    if bins.page(part.start) != bins.page(middle) && bins.page(middle) != bins.page(part.end - 1) {
        assert_eq!(bins.owner(middle)?, rt.rank(), "bin {middle}");
    }
    rt.barrier()
}

/// The levels of a search from vertex 0 are those that one rank alone finds, before and
/// after the rows were moved to the ranks that read them.
fn search(rt: &Runtime, options: ArrayOptions, vertices: usize) -> Result<(), Error> {
    let rows = options.page_len(DEGREE).create::<u32>(rt, vertices * DEGREE)?;
    let levels = options.create::<u32>(rt, vertices)?;
    let rank = u64::from(rt.rank().0);
    let is_mine = |vertex: usize| random::finalize(vertex as u64) % u64::from(rt.size()) == rank;
    if rank == 0 {
        for vertex in 0..vertices {
            rows.put_slice(vertex * DEGREE, &neighbours(vertex, vertices))?;
        }
    }
    rt.barrier()?;
    let serial = alone(vertices);
    let mut shares = vec![];
    for is_moved in [false, true] {
        if is_moved {
            for vertex in (0..vertices).filter(|vertex| is_mine(*vertex)) {
                rows.own(vertex * DEGREE..(vertex + 1) * DEGREE)?;
            }
            rt.barrier()?;
        }
        let (remote, reads) = levels_of(rt, &rows, &levels, is_mine)?;
        let (remote, reads) = (rt.sum(remote)?, rt.sum(reads)?);
        let mut found = vec![0; vertices];
        levels.get_slice(0, &mut found)?;
        assert_eq!(found, serial, "levels");
        shares.push(remote as f64 / reads as f64);
        rt.barrier()?;
    }
    let elsewhere = 1.0 - 1.0 / f64::from(rt.size());
    assert!((shares[0] - elsewhere).abs() < 0.15, "{shares:?} of {elsewhere}");
    assert_eq!(shares[1], 0.0, "the part of the rows that is remote after `own`");
    if rank == 0 {
        say(&format!("rows from elsewhere: {:.3} before, {:.3} after", shares[0], shares[1]));
    }
    rt.barrier()
}

/// Searches level by level; returns how many rows this rank has read from another rank,
/// and how many in all.
fn levels_of(
    rt: &Runtime,
    rows: &GlobalArray<u32>,
    levels: &GlobalArray<u32>,
    is_mine: impl Fn(usize) -> bool,
) -> Result<(u64, u64), Error> {
    let vertices = levels.len();
    if rt.rank().0 == 0 {
        levels.put_slice(0, &vec![u32::MAX; vertices])?;
        levels.put(0, 0)?;
    }
    rt.barrier()?;
    let (mut remote, mut reads) = (0, 0);
    for level in 0.. {
        let mut next = 0;
        let mut known = vec![0; vertices];
        levels.get_slice(0, &mut known)?;
        for vertex in (0..vertices).filter(|vertex| is_mine(*vertex) && known[*vertex] == level) {
            let mut row = [0; DEGREE];
            rows.get_slice(vertex * DEGREE, &mut row)?;
            reads += 1;
            remote += u64::from(rows.owner(vertex * DEGREE)? != rt.rank());
            for to in row {
                let old = levels.compare_swap(to as usize, u32::MAX, level + 1)?;
                next += u64::from(old == u32::MAX);
            }
        }
        if rt.sum(next)? == 0 {
            break;
        }
    }
    Ok((remote, reads))
}

/// The levels that one rank alone finds.
fn alone(vertices: usize) -> Vec<u32> {
    let mut levels = vec![u32::MAX; vertices];
    levels[0] = 0;
    let mut front = vec![0];
    while let Some(vertex) = front.first().copied() {
        front.remove(0);
        for to in neighbours(vertex, vertices) {
            if levels[to as usize] == u32::MAX {
                levels[to as usize] = levels[vertex] + 1;
                front.push(to as usize);
            }
        }
    }
    levels
}

fn neighbours(vertex: usize, vertices: usize) -> [u32; DEGREE] {
    let to = |edge| random::finalize((vertex * DEGREE + edge) as u64 | 1 << 50) % vertices as u64;
    std::array::from_fn(|edge| to(edge) as u32)
}

const PAGE_LEN: usize = 4;
const BINS: usize = 1000;
const ELEMENTS: usize = 200;
const KEPT: u64 = 4711;
const ULTS: u64 = 4;
const DEGREE: usize = 8;
