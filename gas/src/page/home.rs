//! The home of each page, by a rule that never changes; and the rank that owns each
//! page at first.

use super::PageId;
use core::ops::Range;
use tsumugi_core::mem::Rank;

/// How pages are distributed to ranks at first.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Distribution {
    /// Contiguous runs of pages: rank 0 has the first run.
    #[default]
    Block,
    /// One page after the other, rank by rank.
    Cyclic,
    /// By a function of the program, which must return the same rank for a page each
    /// time and on each rank. The homes are distributed as by `Cyclic`.
    By(fn(PageId) -> Rank),
}

/// The static rule that gives each page its home rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Homes {
    ranks: u32,
    pages: u64,
    is_block: bool,
}

impl Homes {
    /// The rule for `pages` pages on `ranks` ranks.
    ///
    /// # Panics
    ///
    /// If there are no ranks.
    pub const fn new(ranks: u32, pages: u64, first: Distribution) -> Self {
        assert!(ranks > 0, "pages need at least one rank");
        Self { ranks, pages, is_block: matches!(first, Distribution::Block) }
    }

    /// The home of a page, and the index of the page among the pages of that home.
    #[inline]
    pub const fn home(&self, page: PageId) -> (Rank, u64) {
        let (ranks, each) = (self.ranks as u64, self.each());
        match self.is_block {
            true => (Rank((page.0 / each) as u32), page.0 % each),
            false => (Rank((page.0 % ranks) as u32), page.0 / ranks),
        }
    }

    /// A number for a page that no other page has at `rank`. The pages of which
    /// `rank` is the home have the numbers from 0 on.
    pub(super) const fn place(&self, page: PageId, rank: Rank) -> u64 {
        let ((home, index), ranks) = (self.home(page), self.ranks as u64);
        (home.0 as u64 + ranks - rank.0 as u64) % ranks * self.each() + index
    }

    /// The largest number of pages of which one rank is the home.
    pub const fn each(&self) -> u64 {
        let each = self.pages.div_ceil(self.ranks as u64);
        if each == 0 { 1 } else { each }
    }

    /// The number of ranks.
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The number of pages, of all ranks together.
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// The rank that owns a page at first.
    pub fn first_owner(&self, page: PageId, first: Distribution) -> Rank {
        match first {
            Distribution::By(owner) => owner(page),
            Distribution::Block | Distribution::Cyclic => self.home(page).0,
        }
    }

    /// The first page that the program's function gives to a rank that does not exist,
    /// and that rank.
    pub fn stray(&self, first: Distribution) -> Option<(PageId, Rank)> {
        let Distribution::By(owner) = first else { return None };
        let owned = (0..self.pages).map(|page| (PageId(page), owner(PageId(page))));
        owned.into_iter().find(|(_, rank)| rank.0 >= self.ranks)
    }

    /// The pages that `rank` owns at first, in ascending order. With
    /// [`Distribution::By`], the program's function is called for every page.
    pub fn first_of(self, rank: Rank, first: Distribution) -> impl Iterator<Item = PageId> + use<> {
        let (each, pages, ranks) = (self.each(), self.pages, u64::from(self.ranks));
        let (Range { start, end }, step) = match first {
            Distribution::Block => {
                let start = (u64::from(rank.0) * each).min(pages);
                (start..(start + each).min(pages), 1)
            }
            Distribution::Cyclic => (u64::from(rank.0).min(pages)..pages, ranks),
            Distribution::By(_) => (0..pages, 1),
        };
        let is_its = move |page: &PageId| match first {
            Distribution::By(owner) => owner(*page) == rank,
            Distribution::Block | Distribution::Cyclic => true,
        };
        (start..end).step_by(step as usize).map(PageId).filter(is_its)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_page_has_one_home_and_one_first_owner() {
        let by = Distribution::By(|page| Rank((page.0 * 7 % 3) as u32));
        for first in [Distribution::Block, Distribution::Cyclic, by] {
            for (ranks, pages) in [(3, 0), (3, 1), (3, 10), (4, 4), (5, 3), (7, 100)] {
                let homes = Homes::new(ranks, pages, first);
                let places: HashSet<_> = (0..pages).map(|page| homes.home(PageId(page))).collect();
                assert_eq!(places.len() as u64, pages, "{homes:?}: two pages in one place");
                assert!(places.iter().all(|&(rank, at)| rank.0 < ranks && at < homes.each()));
                for rank in (0..ranks).map(Rank) {
                    let place = |page| homes.place(PageId(page), rank);
                    let at: HashSet<_> = (0..pages).map(place).collect();
                    assert_eq!(at.len() as u64, pages, "{homes:?}: two pages in one place");
                    let own = (0..pages).filter(|page| homes.home(PageId(*page)).0 == rank);
                    assert!(own.map(place).zip(0..).all(|(at, count)| at == count), "{homes:?}");
                }
                let owned: usize =
                    (0..ranks).map(|rank| homes.first_of(Rank(rank), first).count()).sum();
                assert_eq!(owned as u64, pages, "{homes:?}");
            }
        }
    }

    #[test]
    fn a_function_may_only_name_ranks_that_exist() {
        let by = Distribution::By(|page| Rank(if page.0 < 7 { 2 } else { 3 }));
        assert_eq!(Homes::new(3, 10, by).stray(by), Some((PageId(7), Rank(3))));
        assert_eq!(Homes::new(4, 10, by).stray(by), None);
        assert_eq!(Homes::new(3, 7, by).stray(by), None);
        for first in [Distribution::Block, Distribution::Cyclic] {
            assert_eq!(Homes::new(1, 10, first).stray(first), None);
        }
    }

    #[test]
    fn the_first_owner_is_the_home_unless_the_program_chooses_another() {
        for first in [Distribution::Block, Distribution::Cyclic] {
            let homes = Homes::new(4, 30, first);
            for rank in (0..4).map(Rank) {
                assert!(homes.first_of(rank, first).all(|page| homes.home(page).0 == rank));
            }
        }
    }
}
