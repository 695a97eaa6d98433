//! Pseudo-random numbers from a seed, the same in every run: SplitMix64.
//!
//! ```text
//!  state ──+ INCREMENT──► state ──+ INCREMENT──► state ...
//!                           │ finalize             │ finalize
//!                           ▼                      ▼
//!                         number                 number
//! ```
//!
//! # Example
//!
//! ```
//! use tsumugi_core::random::SplitMix64;
//!
//! let mut random = SplitMix64::new(1_234_567);
//! assert_eq!(random.next(), 6_457_827_717_110_365_317);
//! assert!(random.below(6) < 6);
//! ```
//!
//! # References
//!
//! G. L. Steele, D. Lea, C. H. Flood: Fast splittable pseudorandom number
//! generators. OOPSLA 2014.

/// A generator of pseudo-random numbers. Every seed is equally good.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator that starts from `seed`.
    #[inline]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub const fn next(&mut self) -> u64 {
        advance(&mut self.0)
    }

    /// A number of `0 .. bound`; 0 if `bound` is 0. The bias is below 2^-32 for
    /// bounds up to 2^32.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    /// A number of `least ..= most`.
    #[inline]
    pub const fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least).saturating_add(1))
    }

    /// True with a probability of `per_mille` in a thousand. A rate of 0 draws no
    /// number.
    #[inline]
    pub const fn chance(&mut self, per_mille: u16) -> bool {
        per_mille > 0 && self.below(1000) < per_mille as u64
    }
}

/// Returns the first number of the generator that starts from `seed`.
#[inline]
pub const fn first(seed: u64) -> u64 {
    SplitMix64::new(seed).next()
}

/// Advances the state of a generator and returns the next number.
#[inline]
pub const fn advance(state: &mut u64) -> u64 {
    *state = state.wrapping_add(INCREMENT);
    finalize(*state)
}

/// Makes a number of a state. Different states make different numbers.
#[inline]
pub const fn finalize(state: u64) -> u64 {
    let mut mixed = state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The difference between two states that follow each other: 2^64 divided by the golden
/// ratio.
pub const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_published_ones() {
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
        assert_eq!(first(1_234_567), 6_457_827_717_110_365_317);
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let mut random = SplitMix64::new(0);
        assert!((0..1000).all(|_| random.below(7) < 7));
        assert!((0..1000).all(|_| (3..=5).contains(&random.between(3, 5))));
        assert_eq!((random.below(0), random.below(1)), (0, 0));
        let hits = (0..10_000).filter(|_| random.chance(250)).count();
        assert!((2_000..3_000).contains(&hits), "{hits} of 10,000 at 250 per mille");
        assert!(!random.chance(0) && random.chance(1000));
    }
}
