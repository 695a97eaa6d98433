//! Where pages are, and moving them.

use super::{ArrayError, DirectoryEntry, GlobalArray, PageId};
use crate::{Plain, Rank};
use std::ops::Range;

impl<T: Plain> GlobalArray<T> {
    /// The rank that owns an element, as its home has stored. The owner may have
    /// changed since.
    ///
    /// # Errors
    ///
    /// [`ArrayError::OutOfRange`] if the array has no such element;
    /// [`ArrayError::Addr`] if the home of its page has died.
    pub fn owner(&self, index: usize) -> Result<Rank, ArrayError> {
        self.check(index, 1)?;
        Ok(self.engine.entry(self.page(index))?.owner)
    }

    /// The home of an element: the rank that stores where the element is. It never
    /// changes.
    ///
    /// # Errors
    ///
    /// [`ArrayError::OutOfRange`] if the array has no such element.
    pub fn home(&self, index: usize) -> Result<Rank, ArrayError> {
        self.check(index, 1)?;
        Ok(self.engine.home(self.page(index)))
    }

    /// The rank that had an element at first.
    ///
    /// # Errors
    ///
    /// [`ArrayError::OutOfRange`] if the array has no such element.
    pub fn first_owner(&self, index: usize) -> Result<Rank, ArrayError> {
        self.check(index, 1)?;
        Ok(self.engine.first_owner(self.page(index), self.first))
    }

    /// The metadata of a page, as its home has stored: the rank that owns the page,
    /// the frame at that rank, and how often the page has moved. While the page
    /// moves, this is the place from which it comes.
    ///
    /// # Errors
    ///
    /// [`ArrayError::NoPage`] if the array has no such page; [`ArrayError::Addr`]
    /// if the home of the page has died.
    pub fn entry(&self, page: PageId) -> Result<DirectoryEntry, ArrayError> {
        self.check_page(page)?;
        Ok(self.engine.entry(page)?)
    }

    /// Brings the pages of these elements to this rank, one after the other.
    /// Returns how many have moved. A move that a dead rank has left unfinished is
    /// taken over.
    ///
    /// # Errors
    ///
    /// [`ArrayError::OutOfRange`] if the array does not have all of the elements.
    /// [`ArrayError::Full`] if this rank has no room for another page, and
    /// [`ArrayError::Addr`] if the owner or the home of a page has died, or if another
    /// rank took this rank for dead and has taken its move over: then the pages before
    /// the one that failed have moved.
    pub fn own(&self, range: Range<usize>) -> Result<usize, ArrayError> {
        self.check(range.start, range.len())?;
        if range.is_empty() {
            return Ok(0);
        }
        let pages = self.page(range.start).0..self.page(range.end - 1).0 + 1;
        self.engine.own(pages.map(PageId))
    }

    /// Brings pages to this rank, in the order of `pages`. Returns how many have
    /// moved.
    ///
    /// # Errors
    ///
    /// [`ArrayError::NoPage`] if the array does not have one of the pages: then
    /// none has moved. [`ArrayError::Full`] and [`ArrayError::Addr`] as for
    /// [`own`](Self::own).
    pub fn own_pages(&self, pages: impl IntoIterator<Item = PageId>) -> Result<usize, ArrayError> {
        let pages: Vec<_> = pages.into_iter().collect();
        pages.iter().try_for_each(|page| self.check_page(*page))?;
        self.engine.own(pages)
    }

    /// Brings a page to any rank; the program of that rank takes no part. Returns
    /// whether the page has moved. A move that a dead rank has left unfinished is
    /// taken over.
    ///
    /// # Errors
    ///
    /// [`ArrayError::NoPage`] if the array has no such page;
    /// [`ArrayError::NotByMessages`] with
    /// [`Directory::Messages`](super::Directory::Messages); [`ArrayError::Full`] if
    /// `to` has no room for another page; [`ArrayError::Addr`] with
    /// [`AddrError::NoSuchRank`](crate::AddrError::NoSuchRank) if the job has no
    /// such rank, and with [`AddrError::PeerLost`](crate::AddrError::PeerLost) if
    /// `to`, the owner or the home has died.
    pub fn relocate(&self, page: PageId, to: Rank) -> Result<bool, ArrayError> {
        self.check_page(page)?;
        self.engine.relocate(page, to)
    }

    fn check_page(&self, page: PageId) -> Result<(), ArrayError> {
        let pages = self.len.div_ceil(self.page_len) as u64;
        match page.0 < pages {
            true => Ok(()),
            false => Err(ArrayError::NoPage { page, pages }),
        }
    }
}
