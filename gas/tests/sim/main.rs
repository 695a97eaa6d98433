//! The global memory on simulated networks with all faults, with a thousand seeds; planted defects
//! are found.
#![cfg(not(tsumugi_loom))]

mod asked;
mod channel;
mod containers;
mod copies;
mod crowd;
mod desk;
mod everything;
mod heap;
mod rank;
mod tables;

use tsumugi_conformance::Seeded;
use tsumugi_core::sim::{Seeds, SimConfig};

/// The seeds that every commit tries anew.
const SEEDS: Seeds = Seeds::new(1000);
/// The seeds that catch each planted defect: always the same.
#[cfg(debug_assertions)]
const PLANTED: std::ops::Range<u64> = 0..1000;

/// A network drawn from the seed. Half of them complete puts before they have
/// landed; then each queue keeps its order.
fn config(ranks: u32, seed: u64) -> SimConfig {
    let mut config = SimConfig::drawn(ranks, seed);
    if Seeded(seed).below(2) == 0 {
        (config.early, config.reorder) = (500, false);
    }
    config
}

/// Each of these defects makes some seed fail.
#[cfg(debug_assertions)]
fn assert_caught(mutants: &[&'static str], run: impl Fn(u64) + std::panic::RefUnwindSafe) {
    use std::panic::catch_unwind;
    for &mutant in mutants {
        let caught = tsumugi_core::sync::with_mutant(mutant, || {
            PLANTED.into_iter().find(|&seed| catch_unwind(|| run(seed)).is_err())
        });
        let seed = caught.unwrap_or_else(|| panic!("the mutant {mutant} was not caught"));
        println!("{mutant}: seed {seed} catches it");
    }
}
