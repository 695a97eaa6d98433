//! Conformance suites: one generic suite per seam trait, which every implementation
//! calls.
//!
//! A backend writes a fixture, passes it to the macro of the seam, and gets one
//! `#[test]` per promise:
//!
//! ```ignore
//! tsumugi_conformance::load_store!(MyFixture);
//! tsumugi_conformance::endpoint!(MyFixture);
//! tsumugi_conformance::sleep!(MyFixture);
//! ```
//!
//! A promise that a new backend needs is added here, so that all backends keep it.

pub mod cases;
pub mod corpus;
pub mod endpoint;
pub mod history;
mod left_out;
pub mod load_store;
pub mod once;
pub mod planted;
pub mod port;
pub mod sleep;

pub use left_out::left_out;

/// Pseudo-random numbers for tests, the same in every run: splitmix64.
#[derive(Clone, Debug)]
pub struct Seeded(pub u64);

impl Seeded {
    /// The next number.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of `0 .. bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
