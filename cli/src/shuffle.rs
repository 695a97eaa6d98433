//! Pseudorandom numbers, the same on every machine for the same seed.
//!
//! # References
//!
//! G. Steele, D. Lea, C. Flood, *Fast Splittable Pseudorandom Number
//! Generators*, OOPSLA 2014 (the finaliser and the increment).

/// A stream of pseudorandom numbers.
#[derive(Clone, Debug)]
pub struct Shuffle(u64);

impl Shuffle {
    /// The stream of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// The next number in `0 .. end`; `end` is at least 1.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        let mut shuffle = Shuffle::new(1_234_567);
        assert_eq!(shuffle.bits(), 6_457_827_717_110_365_317);
        assert_eq!(shuffle.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_stay_below_the_end() {
        let mut shuffle = Shuffle::new(3);
        assert!((0..1000).all(|_| shuffle.below(7) < 7));
        assert_eq!(shuffle.below(1), 0);
    }
}
