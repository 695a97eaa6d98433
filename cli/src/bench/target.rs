//! Random places in the memory of all ranks, which the compiler cannot predict.

use tsumugi_core::random::SplitMix64;

/// A place: an 8-byte word of a region of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WordTarget {
    /// `0 .. Extent::ranks`.
    pub rank: u32,
    /// `0 .. Extent::regions`.
    pub region: u32,
    /// `0 .. Extent::words`.
    pub word: u64,
}

/// The memory from which places are chosen.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Ranks.
    pub ranks: u32,
    /// Regions of each rank.
    pub regions: u32,
    /// 8-byte words of each region.
    pub words: u64,
}

/// This number of places is enough to defeat branch prediction on the rank, and the
/// list of them still fits into the first two levels of cache.
pub const TARGETS: usize = 4096;

/// [`TARGETS`] places, the same on every machine. The caller gets the seed from
/// outside the program, so that the compiler knows no place.
pub fn targets(extent: Extent, seed: u64) -> Vec<WordTarget> {
    let mut random = SplitMix64::new(seed);
    let target = |_| WordTarget {
        rank: random.below(extent.ranks.into()) as u32,
        region: random.below(extent.regions.into()) as u32,
        word: random.below(extent.words),
    };
    (0..TARGETS).map(target).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_range_and_cover_it() {
        let extent = Extent { ranks: 2, regions: 3, words: 512 };
        let targets = targets(extent, 1);
        assert_eq!(targets.len(), TARGETS);
        for rank in 0..2 {
            for region in 0..3 {
                assert!(targets.iter().any(|t| (t.rank, t.region) == (rank, region)));
            }
        }
        assert!(targets.iter().all(|t| t.rank < 2 && t.region < 3 && t.word < 512));
    }

    #[test]
    fn the_same_seed_gives_the_same_places() {
        let extent = Extent { ranks: 2, regions: 2, words: 512 };
        assert_eq!(targets(extent, 7), targets(extent, 7));
        assert_ne!(targets(extent, 7), targets(extent, 8));
    }
}
