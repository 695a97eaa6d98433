//! Conformance suites: one generic suite per seam trait, which every implementation
//! calls.
//!
//! An implementation writes a fixture, passes it to the macro of its seam, and gets
//! one `#[test]` per promise. Memory uses `load_store!`, a device `endpoint!`, a
//! scheduler `sleep!`:
//!
//! ```ignore
//! tsumugi_conformance::load_store!(MyFixture);
//! tsumugi_conformance::endpoint!(MyFixture);
//! tsumugi_conformance::sleep!(MyFixture);
//! ```
//!
//! A network whose ranks are processes cannot use the macro, because its test binary
//! needs its own `main`: it lists the functions of `endpoint` as `cases`
//! (`backends/tests/ofi/main.rs` and `backends/tests/verbs/main.rs`, macro `suite!`),
//! beside the promises of all networks in `backends/tests/net/particulars.rs`.
//!
//! A promise that a new implementation needs is added to the suite of its seam, so
//! that all implementations keep it. It must also be added to the lists of promises:
//! in the macro, and in the `suite!` of each network.

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

use tsumugi_core::random;

/// Pseudo-random numbers for tests, the same in every run.
#[derive(Clone, Debug)]
pub struct Seeded(pub u64);

impl Seeded {
    /// The next number.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        random::advance(&mut self.0)
    }

    /// A number of `0 .. bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
