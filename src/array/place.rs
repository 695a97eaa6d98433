//! Where pages are, and bringing them elsewhere.

use super::{ArrayError, Entry, GlobalArray, PageId};
use crate::{Plain, Rank};
use std::ops::Range;

impl<T: Plain> GlobalArray<T> {
    /// The rank that has an element, as its home says. It may be another by
    /// now.
    ///
    /// # Errors
    ///
    /// [`ArrayError`].
    pub fn owner(&self, index: usize) -> Result<Rank, ArrayError> {
        self.check(index, 1)?;
        Ok(self.way.entry(self.page(index))?.owner)
    }

    /// The rank that knows where an element is. It never changes.
    ///
    /// # Errors
    ///
    /// [`ArrayError::OutOfRange`].
    pub fn home(&self, index: usize) -> Result<Rank, ArrayError> {
        self.check(index, 1)?;
        Ok(self.way.home(self.page(index)))
    }

    /// The rank that had an element at first.
    ///
    /// # Errors
    ///
    /// [`ArrayError::OutOfRange`].
    pub fn first_owner(&self, index: usize) -> Result<Rank, ArrayError> {
        self.check(index, 1)?;
        Ok(self.way.first_owner(self.page(index), self.first))
    }

    /// The metadata of a page, as its home says: the rank that has it, which of
    /// that rank's frames, and how often it has moved. Of a page that is on its
    /// way, where it comes from.
    ///
    /// # Errors
    ///
    /// [`ArrayError`].
    pub fn entry(&self, page: PageId) -> Result<Entry, ArrayError> {
        self.check_page(page)?;
        Ok(self.way.entry(page)?)
    }

    /// Brings the pages of these elements here, one after the other. Returns
    /// how many have moved.
    ///
    /// # Errors
    ///
    /// [`ArrayError`]; those before the one that failed have come.
    pub fn own(&self, range: Range<usize>) -> Result<usize, ArrayError> {
        self.check(range.start, range.len())?;
        if range.is_empty() {
            return Ok(0);
        }
        let pages = self.page(range.start).0..self.page(range.end - 1).0 + 1;
        self.way.own(pages.map(PageId))
    }

    /// Brings pages here, in the order in which they come. Returns how many
    /// have moved.
    ///
    /// # Errors
    ///
    /// [`ArrayError`]; those before the one that failed have come.
    pub fn own_pages(&self, pages: impl IntoIterator<Item = PageId>) -> Result<usize, ArrayError> {
        let pages: Vec<_> = pages.into_iter().collect();
        pages.iter().try_for_each(|page| self.check_page(*page))?;
        self.way.own(pages)
    }

    /// Brings a page to any rank, whose program takes no part. Returns whether
    /// it has moved.
    ///
    /// # Errors
    ///
    /// [`ArrayError`]; [`AddrError::NoSuchRank`](crate::AddrError::NoSuchRank) for a
    /// rank that there is not.
    pub fn relocate(&self, page: PageId, to: Rank) -> Result<bool, ArrayError> {
        self.check_page(page)?;
        self.way.relocate(page, to)
    }

    fn check_page(&self, page: PageId) -> Result<(), ArrayError> {
        let pages = self.len.div_ceil(self.page_len) as u64;
        match page.0 < pages {
            true => Ok(()),
            false => Err(ArrayError::NoPage { page, pages }),
        }
    }
}
