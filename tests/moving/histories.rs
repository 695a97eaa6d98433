//! Random accesses to an array whose pages move: is each element linearizable? Each
//! access is noted with the moments before and after it, and the checker of histories
//! gets all of them.
//!
//! ```text
//!  clock   a word at rank 0, which each look at it increments: an access that ended
//!          before another one began has smaller numbers
//!  page    counter │ register │ register │ register
//! ```

use super::api;
use api::array::{ArrayError, ArrayOptions, Directory, PageId};
use api::{Error, GlobalArray, Rank, Remote, Runtime};
use std::ops::Range;
use tsumugi_conformance::Seeded;
use tsumugi_conformance::history::{Event, What, check_counter, check_register};

/// The amount of work.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of ULTs of each rank.
    pub ults: u64,
    /// The number of steps of each ULT.
    pub steps: u64,
    /// The directory of the array.
    pub directory: Directory,
}

/// A ULT and its accesses.
struct Ult {
    array: GlobalArray<u64>,
    clock: Remote<u64>,
    draw: Seeded,
    /// The upper half of each value that this ULT writes.
    name: u64,
    writes: u64,
    /// The accesses, each with the index of its element.
    noted: Vec<(usize, Event)>,
}

/// Runs the plan; returns how many pages have moved, at all ranks together. Collective.
///
/// # Errors
///
/// Errors of the array; the same on all ranks if a history is wrong: an error that names
/// the first wrong element.
pub fn play(rt: &Runtime, plan: Plan) -> Result<u64, Error> {
    let Plan { seed, ults, steps, directory } = plan;
    let options = ArrayOptions::new().page_len(PAGE_LEN).known(3).directory(directory);
    let array = options.create::<u64>(rt, LEN)?;
    let words = rt.share::<u64>(1)?;
    let (clock, size) = (words.at(Rank(0), 0), rt.size());
    let rank = u64::from(rt.rank().0);
    let running: Vec<_> = (0..ults)
        .map(|ult| {
            let (array, name) = (array.clone(), rank * ults + ult + 1);
            let draw = Seeded(seed << 16 | name);
            rt.spawn(move |rt| {
                let mut ult = Ult { array, clock, draw, name, writes: 0, noted: vec![] };
                let mut moved = 0;
                for _ in 0..steps {
                    moved += ult.step(rt)?;
                }
                Ok::<_, Error>((ult.noted, moved))
            })
        })
        .collect();
    let (mut noted, mut moved) = (vec![], 0);
    for ult in running {
        let (of_ult, of_its) = ult.join().expect("no panic")?;
        noted.extend(of_ult);
        moved += of_its;
    }
    let moved = rt.sum(moved)?;
    // In the end, the last rank moves the whole array to itself and reads it.
    rt.barrier()?;
    if rt.rank().0 + 1 == size {
        let mut last = Ult { array, clock, draw: Seeded(0), name: 0, writes: 0, noted: vec![] };
        last.array.own(0..LEN)?;
        last.get(rt, 0..LEN)?;
        noted.extend(last.noted);
    }
    let mine = elements(rt, &noted)?.into_iter().enumerate();
    let mine = mine.filter(|(element, _)| *element as u32 % size == rt.rank().0);
    let wrong = mine.filter_map(|(element, events)| {
        let result = match element % PAGE_LEN {
            0 => check_counter(&events).and_then(|()| is_whole(&events)),
            _ => check_register(0, &events),
        };
        result.err().map(|what| format!("{plan:?}, element {element}: {what}"))
    });
    let wrong: Vec<_> = wrong.collect();
    // All ranks end with an error if one element is wrong.
    match (rt.sum(wrong.len() as u64)?, wrong.first()) {
        (0, _) => Ok(moved),
        (_, Some(first)) => Err(Error::program(first.clone())),
        (count, None) => Err(Error::program(format!("{count} elements of other ranks are wrong"))),
    }
}

impl Ult {
    /// Does one random step; returns the number of pages that it has moved.
    fn step(&mut self, rt: &Runtime) -> Result<u64, Error> {
        let first = self.draw.below(LEN as u64) as usize;
        // Some ranges reach beyond the end of the page.
        let range = first..(first + 1 + self.draw.below(6) as usize).min(LEN);
        match self.draw.below(8) {
            0 | 1 => self.get(rt, first..first + 1)?,
            2 => self.get(rt, range)?,
            3 => self.put(rt, first)?,
            4 => self.put_slice(rt, range)?,
            5 => self.add(rt, first - first % PAGE_LEN)?,
            6 if self.draw.below(3) == 0 => return self.send_away(rt, first),
            _ => return Ok(self.array.own(range)? as u64),
        }
        Ok(0)
    }

    fn tick(&self, rt: &Runtime) -> Result<u64, Error> {
        Ok(rt.fetch_add(self.clock, 1)?)
    }

    fn note(&mut self, element: usize, start: u64, end: u64, what: What) {
        self.noted.push((element, Event { start, end, what }));
    }

    fn get(&mut self, rt: &Runtime, range: Range<usize>) -> Result<(), Error> {
        let (mut values, start) = (vec![0; range.len()], self.tick(rt)?);
        match &mut values[..] {
            [value] => *value = self.array.get(range.start)?,
            values => self.array.get_slice(range.start, values)?,
        }
        let end = self.tick(rt)?;
        for (element, value) in range.zip(values) {
            self.note(element, start, end, What::Read(value));
        }
        Ok(())
    }

    fn put(&mut self, rt: &Runtime, at: usize) -> Result<(), Error> {
        // Counters are never written, only added to.
        let at = if at.is_multiple_of(PAGE_LEN) { at + 1 } else { at };
        let (value, start) = (self.value(), self.tick(rt)?);
        self.array.put(at, value)?;
        let end = self.tick(rt)?;
        self.note(at, start, end, What::Write(value));
        Ok(())
    }

    fn put_slice(&mut self, rt: &Runtime, range: Range<usize>) -> Result<(), Error> {
        let first = range.start;
        let end = range.end.min(first.next_multiple_of(PAGE_LEN));
        if first.is_multiple_of(PAGE_LEN) || first == end {
            return self.put(rt, first);
        }
        let values: Vec<u64> = (first..end).map(|_| self.value()).collect();
        let start = self.tick(rt)?;
        self.array.put_slice(first, &values)?;
        let over = self.tick(rt)?;
        for (element, value) in (first..end).zip(values) {
            self.note(element, start, over, What::Write(value));
        }
        Ok(())
    }

    fn add(&mut self, rt: &Runtime, at: usize) -> Result<(), Error> {
        let start = self.tick(rt)?;
        let old = self.array.fetch_add(at, 1)?;
        let end = self.tick(rt)?;
        self.note(at, start, end, What::Add(old));
        Ok(())
    }

    /// Moves a page to a random rank, which takes no part in that. The directory by
    /// messages, which is the paper's, can only move a page to the caller.
    fn send_away(&mut self, rt: &Runtime, at: usize) -> Result<u64, Error> {
        let to = Rank(self.draw.below(rt.size().into()) as u32);
        let page: PageId = self.array.page(at);
        match self.array.relocate(page, to) {
            Err(ArrayError::NotByMessages) => Ok(0),
            moved => Ok(u64::from(moved?)),
        }
    }

    /// A value that no other access writes.
    fn value(&mut self) -> u64 {
        self.writes += 1;
        self.name << 32 | self.writes
    }
}

/// Checks that the last read has found all additions.
fn is_whole(events: &[Event]) -> Result<(), String> {
    let adds = events.iter().filter(|event| matches!(event.what, What::Add(_))).count() as u64;
    let reads = events.iter().filter(|event| matches!(event.what, What::Read(_)));
    let last = reads.max_by_key(|event| event.start).map(|event| event.what);
    match last {
        Some(What::Read(found)) if found == adds => Ok(()),
        _ => Err(format!("{adds} additions, and {last:?} in the end")),
    }
}

/// The events of all ranks, by element, for the elements that this rank checks; the other
/// lists are empty. Collective.
fn elements(rt: &Runtime, noted: &[(usize, Event)]) -> Result<Vec<Vec<Event>>, Error> {
    let counts = rt.allgather(noted.len() as u64)?;
    let most = counts.iter().max().copied().unwrap_or(0) as usize;
    let words = rt.share::<u64>(most.max(1) * WORDS)?;
    let own: Vec<u64> = noted
        .iter()
        .flat_map(|(element, Event { start, end, what })| {
            let (kind, value) = match what {
                What::Read(value) => (0, *value),
                What::Write(value) => (1, *value),
                What::Add(value) => (2, *value),
            };
            [(*element as u64) << 2 | kind, *start, *end, value]
        })
        .collect();
    rt.put_slice(words.at(rt.rank(), 0), &own)?;
    rt.barrier()?;
    let mut elements = vec![vec![]; LEN];
    for (rank, count) in rt.ranks().zip(counts) {
        let mut theirs = vec![0; count as usize * WORDS];
        rt.get_slice(words.at(rank, 0), &mut theirs)?;
        for [element, start, end, value] in theirs.as_chunks::<WORDS>().0 {
            let what = match element & 3 {
                0 => What::Read(*value),
                1 => What::Write(*value),
                _ => What::Add(*value),
            };
            let element = (element >> 2) as usize;
            if element as u32 % rt.size() == rt.rank().0 {
                elements[element].push(Event { start: *start, end: *end, what });
            }
        }
    }
    // No rank drops its words before all ranks have read them.
    rt.barrier()?;
    Ok(elements)
}

const PAGE_LEN: usize = 4;
const LEN: usize = 8 * PAGE_LEN;
const WORDS: usize = 4;
