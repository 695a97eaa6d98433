//! How many emulated operations are under way with each rank.

use tsumugi_core::mem::Rank;

/// The counts of the ranks with which operations are under way, by rank.
#[derive(Debug, Default)]
pub(super) struct RankCounts(Vec<(Rank, u32)>);

impl RankCounts {
    /// The number of `rank`.
    pub(super) fn of(&self, rank: Rank) -> u32 {
        self.place(rank).map_or(0, |place| self.0[place].1)
    }

    /// Counts one more.
    pub(super) fn add(&mut self, rank: Rank) {
        match self.place(rank) {
            Ok(place) => self.0[place].1 += 1,
            Err(place) => self.0.insert(place, (rank, 1)),
        }
    }

    /// Counts one less, unless there is none.
    pub(super) fn take(&mut self, rank: Rank) {
        let Ok(place) = self.place(rank) else { return };
        self.0[place].1 -= 1;
        if self.0[place].1 == 0 {
            self.0.remove(place);
        }
    }

    /// Forgets the counts of ranks for which `keeps` returns false.
    pub(super) fn retain(&mut self, keeps: impl Fn(Rank) -> bool) {
        self.0.retain(|(rank, _)| keeps(*rank));
    }

    fn place(&self, rank: Rank) -> Result<usize, usize> {
        self.0.binary_search_by_key(&rank, |(of, _)| *of)
    }
}
