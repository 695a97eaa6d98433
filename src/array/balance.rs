//! Moving pages to where they are used: what a balancer needs, and the simple
//! ones.
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
//!     // Nobody has used these.
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
//! | [`Uses::to_most_used_by`] | each page goes to the rank that has used it most |
//! | [`Uses::balance`] | each page goes where a function of the program's says |
//! | [`GlobalArray::return_home`] | each page goes back to who had it at first |
//! | [`GlobalArray::checkout`] | keeps a copy, for reading |
//!
//! Accesses count nothing by themselves, so that those that nobody wants to
//! balance cost nothing.

use super::{ArrayError, GlobalArray, PageId};
use crate::{Error, Plain, Rank, Shared};
use std::fmt;
use tsumugi_core::sync::{AtomicU32, Ordering};

/// How often each rank has used each page of an array.
pub struct Uses<T: Plain> {
    array: GlobalArray<T>,
    /// Of this rank, since they were looked at last.
    own: Box<[AtomicU32]>,
    /// At each page's home: uses, and the rank that has most.
    most: Shared<u64>,
}

/// What is known of the uses of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Which.
    pub page: PageId,
    /// Who has used it most; of several the highest.
    pub by: Rank,
    /// How often.
    pub count: u32,
    /// How often this rank has.
    pub own: u32,
}

impl<T: Plain> GlobalArray<T> {
    /// Begins to count uses: 4 bytes for each page of the array at each rank,
    /// and 8 at its home. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`share`](crate::Runtime::share).
    pub fn uses(&self) -> Result<Uses<T>, Error> {
        let runtime = self.way.runtime();
        let own = (0..self.pages()).map(|_| AtomicU32::new(0)).collect();
        let most = runtime.share(self.pages().div_ceil(runtime.size() as usize).max(1))?;
        runtime.barrier()?;
        Ok(Uses { array: self.clone(), own, most })
    }

    /// Brings every page that this rank had at first back here, and returns how
    /// many have moved; over when all ranks have. Collective.
    ///
    /// # Errors
    ///
    /// [`ArrayError`], and those of a barrier.
    pub fn return_home(&self) -> Result<usize, Error> {
        let moved = self.way.own(self.way.first_pages(self.first))?;
        self.way.runtime().barrier()?;
        Ok(moved)
    }

    fn pages(&self) -> usize {
        self.len.div_ceil(self.page_len)
    }
}

impl<T: Plain> Uses<T> {
    /// This rank has used an element so many times. Wait-free.
    ///
    /// # Panics
    ///
    /// If there is no such element.
    #[inline]
    pub fn note(&self, index: usize, times: u32) {
        // Relaxed: a number, which is read where all have come to a barrier.
        self.own[self.array.page(index).0 as usize].fetch_add(times, Ordering::Relaxed);
    }

    /// Brings each page that this rank has used most here; those that nobody
    /// has used stay. Then counts from 0. Returns how many have come here; over
    /// when all have come. Collective.
    ///
    /// # Errors
    ///
    /// [`ArrayError`], and those of a barrier.
    pub fn to_most_used_by(&self) -> Result<usize, Error> {
        let rank = self.array.way.runtime().rank();
        self.balance(|of| of.by == rank)
    }

    /// The same, for those of the pages that this rank has used of which
    /// `wants` says so. Where two ranks want one, the later has it.
    ///
    /// # Errors
    ///
    /// [`ArrayError`], and those of a barrier.
    pub fn balance(&self, mut wants: impl FnMut(Use) -> bool) -> Result<usize, Error> {
        let runtime = self.array.way.runtime();
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
        let moved = self.array.way.own(wanted)?;
        // All have looked by then, and each forgets what it is home to.
        runtime.barrier()?;
        for index in 0..self.most.len() {
            let forgotten = runtime.put(self.most.at(runtime.rank(), index), 0);
            forgotten.map_err(ArrayError::from)?;
        }
        runtime.barrier()?;
        Ok(moved)
    }

    /// Makes the word at least this.
    fn claim(&self, page: PageId, own: u64) -> Result<(), ArrayError> {
        let (runtime, at) = (self.array.way.runtime(), self.at(page));
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
        let ranks = u64::from(self.array.way.runtime().size());
        self.most.at(Rank((page.0 % ranks) as u32), (page.0 / ranks) as usize)
    }
}

impl<T: Plain> fmt::Debug for Uses<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uses({} pages)", self.own.len())
    }
}
