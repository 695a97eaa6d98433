//! Operations as values, over networks without faults and with many.

use super::run;
use crate as api;

#[allow(clippy::duplicate_mod)]
#[path = "../../../tests/deferred/cases.rs"]
mod cases;

#[test]
fn every_operation_works_in_every_way_between_nodes() {
    run(&[1, 2], None, |rt, _| cases::play(rt));
    run(&[1, 1, 2], None, |rt, _| cases::play(rt));
}

#[test]
fn every_operation_works_in_every_way_over_bad_networks() {
    for seed in [1, 3, 5, 36] {
        run(&[1, 2], Some(seed), |rt, _| cases::play(rt));
    }
}
