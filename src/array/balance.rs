//! Moving pages to the ranks that use them: counters for a balancer, and simple
//! balancers.
//!
//! ```
//! use tsumugi::Error;
//!
//! tsumugi::run_ranks(2, |rt| {
//!     let array = rt.array::<u64>(4096)?;
//!     let uses = array.uses()?;
//!     // The upper half is rank 1's by the block rule, and rank 0 uses it.
//!     let used = if rt.rank().0 == 0 { 2048..4096 } else { 0..512 };
//!     for index in used {
//!         array.fetch_add(index, 1)?;
//!         uses.note(index, 1);
//!     }
//!     uses.to_most_used_by()?;
//!     assert_eq!(array.owner(4000)?.0, 0);
//!     assert_eq!(array.owner(100)?.0, 1);
//!     // No rank has used these.
//!     assert_eq!(array.owner(1500)?.0, 0);
//!     rt.barrier()?;
//!     array.return_home()?;
//!     assert_eq!(array.owner(4000)?.0, 1);
//!     rt.barrier()
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! | | |
//! |---|---|
//! | [`Uses::note`] | counts, at this rank alone |
//! | [`Uses::to_most_used_by`] | moves each page to the rank that has used it most |
//! | [`Uses::balance`] | moves each page as a function of the program decides |
//! | [`GlobalArray::return_home`] | moves each page back to the rank that had it at first |
//! | [`GlobalArray::checkout`] | keeps a copy, for reading |
//!
//! Accesses are not counted automatically, so an array that is not balanced has no
//! cost for counters.

use super::{ArrayError, GlobalArray, PageId};
use crate::{Error, Plain, Rank, Shared};
use std::fmt;
use tsumugi_core::sync::{AtomicU32, Ordering};

/// Counters of how often each rank has used each page of an array.
pub struct Uses<T: Plain> {
    array: GlobalArray<T>,
    /// The uses by this rank since the last balancing, by page.
    own: Box<[AtomicU32]>,
    /// At each page's home: the highest count of uses, and the rank that has it.
    most: Shared<u64>,
}

/// The use counts of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Use {
    /// The page.
    pub page: PageId,
    /// The rank that has used the page most; if several ranks have the same count,
    /// the highest of them.
    pub by: Rank,
    /// The number of uses by that rank.
    pub count: u32,
    /// The number of uses by this rank.
    pub own: u32,
}

impl<T: Plain> GlobalArray<T> {
    /// Begins to count uses: takes 4 bytes for each page of the array at each rank,
    /// and 8 bytes for each page at its home. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`share`](crate::Runtime::share) and of a
    /// [`barrier`](crate::Runtime::barrier).
    pub fn uses(&self) -> Result<Uses<T>, Error> {
        let runtime = self.engine.runtime();
        let own = (0..self.pages()).map(|_| AtomicU32::new(0)).collect();
        let most = runtime.share(self.pages().div_ceil(runtime.size() as usize).max(1))?;
        runtime.barrier()?;
        Ok(Uses { array: self.clone(), own, most })
    }

    /// Brings every page that this rank had at first back to it, and returns how
    /// many pages have moved; returns when all ranks have done so. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] with [`ArrayError::Full`] if this rank has no room for
    /// its pages, because pages of other ranks have not left yet; [`Error::Addr`]
    /// if the owner or the home of a page has died; those of a
    /// [`barrier`](crate::Runtime::barrier).
    pub fn return_home(&self) -> Result<usize, Error> {
        let moved = self.engine.own(self.engine.first_pages(self.first))?;
        self.engine.runtime().barrier()?;
        Ok(moved)
    }

    fn pages(&self) -> usize {
        self.len.div_ceil(self.page_len)
    }
}

impl<T: Plain> Uses<T> {
    /// Counts `times` uses of an element by this rank. Wait-free.
    ///
    /// # Panics
    ///
    /// If the array has no such element.
    #[inline]
    pub fn note(&self, index: usize, times: u32) {
        // Relaxed: a counter, which is read after a barrier.
        self.own[self.array.page(index).0 as usize].fetch_add(times, Ordering::Relaxed);
    }

    /// Brings each page that this rank has used most to this rank; pages that no
    /// rank has used stay. Then all counts restart from 0. Returns how many pages
    /// have come to this rank, when all ranks are done. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] with [`ArrayError::Full`] if this rank has no room for
    /// the pages; [`Error::Addr`] if the owner or the home of a page has died;
    /// those of a [`barrier`](crate::Runtime::barrier).
    pub fn to_most_used_by(&self) -> Result<usize, Error> {
        let rank = self.array.engine.runtime().rank();
        self.balance(|of| of.by == rank)
    }

    /// Brings those pages to this rank that this rank has used and for which
    /// `wants` returns true; otherwise as
    /// [`to_most_used_by`](Self::to_most_used_by). If two ranks want the same page,
    /// the rank that moves it last has it.
    ///
    /// # Errors
    ///
    /// Those of [`to_most_used_by`](Self::to_most_used_by).
    pub fn balance(&self, mut wants: impl FnMut(Use) -> bool) -> Result<usize, Error> {
        let runtime = self.array.engine.runtime();
        let own: Vec<(PageId, u32)> = (0..)
            .map(PageId)
            .zip(self.own.iter().map(|own| own.swap(0, Ordering::Relaxed)))
            .filter(|(_, own)| *own > 0)
            .collect();
        for (page, own) in &own {
            self.claim(*page, u64::from(*own) << 32 | u64::from(runtime.rank().0))?;
        }
        runtime.barrier()?;
        let mut wanted = Vec::new();
        for (page, own) in own {
            let most = runtime.get(self.at(page)).map_err(ArrayError::from)?;
            let (by, count) = (Rank(most as u32), (most >> 32) as u32);
            if wants(Use { page, by, count, own }) {
                wanted.push(page);
            }
        }
        let moved = self.array.engine.own(wanted)?;
        // By this barrier all ranks have read the counts; then each rank resets the
        // counts of the pages of which it is the home.
        runtime.barrier()?;
        for index in 0..self.most.len() {
            let forgotten = runtime.put(self.most.at(runtime.rank(), index), 0);
            forgotten.map_err(ArrayError::from)?;
        }
        runtime.barrier()?;
        Ok(moved)
    }

    /// Raises the word at the page's home to at least `own`.
    fn claim(&self, page: PageId, own: u64) -> Result<(), ArrayError> {
        let (runtime, at) = (self.array.engine.runtime(), self.at(page));
        let mut seen = runtime.get(at)?;
        while seen < own {
            match runtime.compare_swap(at, seen, own)? {
                old if old == seen => break,
                old => seen = old,
            }
        }
        Ok(())
    }

    fn at(&self, page: PageId) -> crate::Remote<u64> {
        let ranks = u64::from(self.array.engine.runtime().size());
        self.most.at(Rank((page.0 % ranks) as u32), (page.0 / ranks) as usize)
    }
}

impl<T: Plain> fmt::Debug for Uses<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uses({} pages)", self.own.len())
    }
}
