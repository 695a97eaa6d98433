//! Numbers drawn from a seed, the same in every run: splitmix64.
//!
//! # References
//!
//! G. L. Steele, D. Lea, C. H. Flood: Fast splittable pseudorandom number
//! generators. OOPSLA 2014.

/// A generator of random numbers. Every seed is equally good.
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// A generator that starts from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[allow(clippy::should_implement_trait)]
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of `0 .. bound`; 0 if `bound` is 0. The bias is below 2^-32 for the
    /// bounds in use.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    /// A number of `least ..= most`.
    pub const fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least).saturating_add(1))
    }

    /// True with a probability of `per_mille` in a thousand. A rate of 0 draws no
    /// number.
    pub const fn chance(&mut self, per_mille: u16) -> bool {
        per_mille > 0 && self.below(1000) < per_mille as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut draw = Draw::new(0);
        assert!((0..1000).all(|_| draw.below(7) < 7));
        assert!((0..1000).all(|_| (3..=5).contains(&draw.between(3, 5))));
        assert_eq!(draw.below(0), 0);
        let hits = (0..10_000).filter(|_| draw.chance(250)).count();
        assert!((2_000..3_000).contains(&hits), "{hits} of 10,000 at 250 per mille");
        assert!(!draw.chance(0) && draw.chance(1000));
    }
}
