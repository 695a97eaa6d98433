//! The cache of a checkout: copies of elements that a rank works on, until the
//! program declares them out of date.
//!
//! ```text
//!  checkout ─► gaps: fetched ─► lent ─► checkin ─► valid, or dirty
//!                                                     │        │ release, or
//!                          acquire, or room is needed │        │ room is needed
//!                                                     ▼        ▼
//!                                                   gone    written back, valid
//! ```
//!
//! Each element has a fixed address in a [`MappedArea`], so any range is one slice.
//! Memory is allocated and freed by blocks, and the number of blocks is bounded.
//! The lock protects only the books and is never held while bytes are transferred:
//! elements in transfer are `busy`, and a caller that needs them waits.
//!
//! Invariants: lent elements are valid; elements that are lent for writing have no
//! other loan; dirty elements are valid; busy elements are not lent for writing. So
//! no code writes to an element that a slice shows.

use super::ArrayError;
use super::area::MappedArea;
use super::ranges::Ranges;
use std::collections::HashMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::OnceLock;
use tsumugi_core::mutate;
use tsumugi_ult::sync::{Condvar, Mutex};

#[cfg(test)]
mod tests;

/// The copies that a rank has of an array's elements.
pub(super) struct Cache {
    len: usize,
    element_bytes: usize,
    /// The unit of a fetch: if an element is needed, its page is fetched as a
    /// whole.
    page_len: usize,
    block_len: usize,
    blocks_max: usize,
    area: OnceLock<MappedArea>,
    books: Mutex<Books>,
    /// Signalled when elements are no longer busy, or no longer lent.
    changed: Condvar,
}

#[derive(Default)]
struct Books {
    valid: Ranges,
    dirty: Ranges,
    busy: Ranges,
    /// The number of write-backs in progress.
    returning: usize,
    blocks: HashMap<usize, Block>,
    /// How often the program has declared the copies out of date, by `acquire`.
    age: u64,
    clock: u64,
}

#[derive(Default)]
struct Block {
    lent: Vec<Lease>,
    used: u64,
}

/// A range that is lent; it is stored in each block that it touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) range: Range<usize>,
    writes: bool,
    /// The age of the oldest copy that the range shows.
    age: u64,
}

impl Lease {
    /// The lease of an empty range.
    pub(super) fn none(at: usize) -> Self {
        Self { range: at..at, writes: false, age: 0 }
    }
}

/// How bytes are transferred between the array and a local address.
pub(super) trait Travel {
    /// Reads elements of the array to `to`.
    fn fetch(&self, range: Range<usize>, to: NonNull<u8>) -> Result<(), ArrayError>;

    /// Writes elements of the array from `from`.
    fn write(&self, range: Range<usize>, from: NonNull<u8>) -> Result<(), ArrayError>;
}

impl Cache {
    pub(super) fn new(len: usize, page_len: usize, element_bytes: usize, bytes: usize) -> Self {
        let pages = BLOCK_BYTES.div_ceil(page_len * element_bytes);
        let block_len = page_len * pages;
        Self {
            len,
            element_bytes,
            page_len,
            block_len,
            blocks_max: (bytes / (block_len * element_bytes)).max(2),
            area: OnceLock::new(),
            books: Mutex::new(Books::default()),
            changed: Condvar::new(),
        }
    }

    /// The address of an element's copy; maps the area first if there is none.
    fn at(&self, index: usize) -> Result<NonNull<u8>, ArrayError> {
        let area = match self.area.get() {
            Some(area) => area,
            None => {
                let new = MappedArea::new(self.len * self.element_bytes)?;
                self.area.get_or_init(|| new)
            }
        };
        // SAFETY: the area has room for all elements.
        Ok(unsafe { area.start().add(index * self.element_bytes) })
    }

    /// Lends elements. The range is not empty and lies within the array.
    pub(super) fn lend(
        &self,
        range: Range<usize>,
        (reads, writes): (bool, bool),
        travel: &impl Travel,
    ) -> Result<(Lease, NonNull<u8>), ArrayError> {
        let start = self.at(range.start)?;
        let mut books = self.books.lock();
        loop {
            let excludes =
                |lease: &Lease| writes || mutate!("cache_two_writers": lease.writes => false);
            if self.lent_in(&books, &range).any(excludes) {
                return Err(ArrayError::Lent { index: range.start, count: range.len() });
            }
            if books.busy.overlaps(self.pages_of(&range)) {
                self.changed.wait(&mut books);
                continue;
            }
            if self.has_room(&books, &range) {
                break;
            }
            books = self.make_room(books, &range, travel)?;
        }
        books.clock += 1;
        // Elements that are lent already are shown as they are, so the new lease is
        // as old as theirs.
        let oldest = self.lent_in(&books, &range).map(|lease| lease.age).min();
        let age = mutate!("cache_lent_anew": oldest.unwrap_or(books.age) => books.age);
        let lease = Lease { range: range.clone(), writes, age };
        let clock = books.clock;
        for block in self.blocks_of(&range) {
            let block = books.blocks.entry(block).or_default();
            block.used = clock;
            block.lent.push(lease.clone());
        }
        if !reads {
            books.valid.insert(range);
            return Ok((lease, start));
        }
        let gaps = match books.valid.gaps(range.clone()).is_empty() {
            true => vec![],
            false => books.valid.gaps(self.pages_of(&range)),
        };
        if gaps.is_empty() {
            return Ok((lease, start));
        }
        gaps.iter().for_each(|gap| books.busy.insert(gap.clone()));
        drop(books);
        let fetched =
            gaps.iter().try_for_each(|gap| travel.fetch(gap.clone(), self.at(gap.start)?));
        let mut books = self.books.lock();
        for gap in gaps {
            books.busy.remove(gap.clone());
            let is_late = mutate!("cache_late_fetch_kept": books.age != lease.age => false);
            // The requested elements are shown; the rest of their pages may be
            // older than an `acquire` that the program has called meanwhile.
            let known = if is_late { cut(&gap, &range) } else { gap };
            if mutate!("cache_failed_valid": fetched.is_ok() => true) {
                books.valid.insert(known);
            }
        }
        self.changed.notify_all();
        match fetched {
            Ok(()) => Ok((lease, start)),
            Err(error) => {
                self.end(&mut books, &lease);
                // An `acquire` during the fetch has kept the elements that this
                // lease showed already.
                self.forget_old(&mut books, &lease);
                Err(error)
            }
        }
    }

    /// Ends a lease.
    pub(super) fn take_back(&self, lease: &Lease) {
        let mut books = self.books.lock();
        self.end(&mut books, lease);
        if lease.writes {
            books.dirty.insert(lease.range.clone());
        } else {
            self.forget_old(&mut books, lease);
        }
        self.changed.notify_all();
    }

    /// Discards copies that were kept only because this lease showed them. They are
    /// out of date, except where another lease shows them or this rank has written
    /// to them.
    fn forget_old(&self, books: &mut Books, lease: &Lease) {
        if mutate!("cache_old_kept": lease.age == books.age => true) {
            return;
        }
        let mut old = Ranges::default();
        old.insert(lease.range.clone());
        let kept = books.dirty.within(lease.range.clone());
        let lent = self.lent_in(books, &lease.range).map(|other| other.range.clone());
        kept.into_iter().chain(lent).for_each(|kept| old.remove(kept));
        old.iter().for_each(|old| books.valid.remove(old));
    }

    /// Writes back the elements that were written and checked in.
    pub(super) fn release(&self, travel: &impl Travel) -> Result<(), ArrayError> {
        let books = self.books.lock();
        // Elements that are lent for writing now are left to the next release after
        // their checkin.
        let mut due = books.dirty.clone();
        let lent = books.blocks.values().flat_map(|block| &block.lent);
        let changing =
            lent.filter(|lease| mutate!("cache_released_while_lent": lease.writes => false));
        changing.for_each(|lease| due.remove(lease.range.clone()));
        let whole = |part| mutate!("cache_pages_written_back": part => self.pages_of(&part));
        let due = due.iter().map(whole).collect();
        let (mut books, written) = self.write_back(books, due, travel);
        // Other threads may have begun to write back elements before this call;
        // wait for them.
        while books.returning > 0 {
            self.changed.wait(&mut books);
        }
        written
    }

    /// Discards all copies that are neither dirty nor lent.
    pub(super) fn acquire(&self) {
        let mut books = self.books.lock();
        books.age += 1;
        let mut kept = mutate!("cache_dirty_forgotten": books.dirty.clone() => Ranges::default());
        for lease in books.blocks.values().flat_map(|block| &block.lent) {
            for valid in books.valid.within(lease.range.clone()) {
                mutate!("cache_lent_forgotten": kept.insert(valid) => ());
            }
        }
        books.valid = kept;
    }

    /// An upper bound for the bytes that copies take now.
    pub(super) fn bytes(&self) -> usize {
        self.books.lock().blocks.len() * self.block_len * self.element_bytes
    }

    fn end(&self, books: &mut Books, lease: &Lease) {
        for block in self.blocks_of(&lease.range) {
            let block = books.blocks.get_mut(&block).expect("a block that is lent stays");
            let place = block.lent.iter().position(|lent| lent == lease);
            block.lent.swap_remove(place.expect("the block was lent"));
        }
    }

    fn write_back<'b>(
        &'b self,
        mut books: Guard<'b>,
        due: Vec<Range<usize>>,
        travel: &impl Travel,
    ) -> (Guard<'b>, Result<(), ArrayError>) {
        for range in &due {
            books.busy.insert(range.clone());
            books.dirty.remove(range.clone());
        }
        books.returning += 1;
        drop(books);
        // All ranges are tried; a range that cannot be written is lost with the
        // rank that owned it.
        let write = |range: &Range<usize>| travel.write(range.clone(), self.at(range.start)?);
        let written = due.iter().map(write).fold(Ok(()), Result::and);
        let mut books = self.books.lock();
        due.into_iter().for_each(|range| books.busy.remove(range));
        books.returning -= 1;
        self.changed.notify_all();
        (books, written)
    }

    fn has_room(&self, books: &Books, range: &Range<usize>) -> bool {
        let new = self.blocks_of(range).filter(|block| !books.blocks.contains_key(block)).count();
        new == 0 || books.blocks.len() + new <= self.blocks_max
    }

    /// Frees one block that is not in use, or waits until there is one.
    fn make_room<'b>(
        &'b self,
        mut books: Guard<'b>,
        wanted: &Range<usize>,
        travel: &impl Travel,
    ) -> Result<Guard<'b>, ArrayError> {
        let wanted = self.blocks_of(wanted);
        let is_lent = |block: &Block| !block.lent.is_empty();
        let oldest = books
            .blocks
            .iter()
            .filter(|(number, block)| !is_lent(block) && !wanted.contains(number))
            .filter(|(number, _)| !books.busy.overlaps(self.elements_of(**number)))
            .min_by_key(|(_, block)| block.used)
            .map(|(number, _)| *number);
        let Some(oldest) = oldest else {
            if books.busy.iter().next().is_some() {
                self.changed.wait(&mut books);
                return Ok(books);
            }
            let bytes = self.blocks_max * self.block_len * self.element_bytes;
            return Err(ArrayError::NoCopies { bytes });
        };
        let elements = self.elements_of(oldest);
        let dirty = books.dirty.within(elements.clone());
        if mutate!("cache_dirty_given_up": !dirty.is_empty() => false) {
            let (books, written) = self.write_back(books, dirty, travel);
            return written.map(|()| books);
        }
        books.valid.remove(elements.clone());
        books.blocks.remove(&oldest);
        if let Some(area) = self.area.get() {
            let (before, after) = (oldest.wrapping_sub(1), oldest + 1);
            let first = self.edge(&books, before, elements.start, false);
            let last = self.edge(&books, after, elements.end, true);
            // SAFETY: no element of the range is lent, dirty, valid or busy, and
            // the parts of the first and the last system page that belong to the
            // neighbouring blocks are not in use either.
            unsafe { area.forget(first..last) };
        }
        Ok(books)
    }

    /// The byte at the edge of a block, extended to the boundary of the system's
    /// page if the neighbouring block is not in use.
    fn edge(&self, books: &Books, neighbour: usize, index: usize, is_end: bool) -> usize {
        let byte = index * self.element_bytes;
        match (books.blocks.contains_key(&neighbour), is_end) {
            (true, _) => byte,
            (false, true) => byte.next_multiple_of(SYSTEM_PAGE),
            (false, false) => byte - byte % SYSTEM_PAGE,
        }
    }

    fn lent_in<'b>(
        &'b self,
        books: &'b Books,
        range: &'b Range<usize>,
    ) -> impl Iterator<Item = &'b Lease> + 'b {
        let blocks = self.blocks_of(range).filter_map(|block| books.blocks.get(&block));
        let lent = blocks.flat_map(|block| &block.lent);
        lent.filter(|lease| lease.range.start < range.end && range.start < lease.range.end)
    }

    fn blocks_of(&self, range: &Range<usize>) -> Range<usize> {
        range.start / self.block_len..(range.end - 1) / self.block_len + 1
    }

    fn elements_of(&self, block: usize) -> Range<usize> {
        block * self.block_len..((block + 1) * self.block_len).min(self.len)
    }

    /// All elements of the pages that the range touches.
    fn pages_of(&self, range: &Range<usize>) -> Range<usize> {
        let start = range.start - range.start % self.page_len;
        start..range.end.next_multiple_of(self.page_len).min(self.len)
    }
}

type Guard<'b> = tsumugi_ult::sync::MutexGuard<'b, Books>;

fn cut(range: &Range<usize>, to: &Range<usize>) -> Range<usize> {
    let start = range.start.max(to.start);
    start..range.end.min(to.end).max(start)
}

/// The unit in which memory is allocated and freed, or a page if that is larger.
const BLOCK_BYTES: usize = 1 << 14;
const SYSTEM_PAGE: usize = 4096;
