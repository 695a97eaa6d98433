//! Containers over plain memory: compared with those of std by random calls, and used by many
//! threads at once.

mod held;
mod keyed;
mod list;
mod plain;
mod sequence;
mod together;

/// Pseudo-random numbers that are the same in every run.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }

    pub(crate) fn bytes(&mut self, most: u64) -> Vec<u8> {
        let count = self.below(most + 1);
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}
