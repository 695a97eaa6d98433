//! Every group must measure the rows of its catalogue.

use super::*;
use crate::bench::row::Row;

fn measured(names: &'static [&'static str]) -> Vec<Vec<Row>> {
    let measure = MeasureArgs { ops: Some(1), quick: true, ..MeasureArgs::default() };
    let ranks = tsumugi::run_ranks(2, |rt| rank(rt, names, &measure)).unwrap();
    assert!(ranks[1].is_empty());
    let rows = |measured: &Measured| measured.rows.clone();
    ranks[0].iter().map(rows).collect()
}

fn names(measured: &[Vec<Row>]) -> Vec<Vec<&str>> {
    measured.iter().map(|rows| rows.iter().map(|row| row.name.as_str()).collect()).collect()
}

#[test]
fn each_row_is_measured_once_beside_its_bare_loop() {
    let expected = [["get8", "bare_get8"], ["put8", "bare_put8"], ["fadd8", "bare_fadd8"]];
    let rows = measured(direct::GROUP.rows);
    assert_eq!(names(&rows), expected);
    assert!(rows.concat().iter().all(|row| row.summary.min > 0.0));
    assert_eq!(names(&measured(&["bare_put8"])), [["bare_put8"]]);
}

#[test]
fn the_delegate_is_measured_beside_the_memory() {
    let rows = measured(delegate::GROUP.rows);
    let expected = [["delegate_get8", "direct_get8"], ["delegate_alone", "delegate_contended"]];
    assert_eq!(names(&rows), expected);
}

#[test]
fn the_offload_group_has_its_four_rows() {
    let rows = measured(offload::GROUP.rows);
    assert_eq!(names(&rows).concat(), offload::GROUP.rows);
}

#[test]
fn both_kinds_of_requesters_have_a_rate() {
    let rows = measured(requesters::GROUP.rows).concat();
    let of = |kind| rows.iter().filter(|row| row.word("kind") == Some(kind)).count();
    assert_eq!((of("thread"), of("ult")), (4, 4));
}

#[test]
fn every_variant_is_measured_in_three_ways() {
    let rows = measured(variants::GROUP.rows);
    assert!(rows.iter().all(|rows| rows.len() == 3), "{rows:?}");
    assert_eq!(rows.len(), 2 * variants::GROUP.rows.len());
}

#[test]
fn one_rank_alone_cannot_measure() {
    let measure = MeasureArgs { ops: Some(1), quick: true, ..MeasureArgs::default() };
    let failed = tsumugi::run_ranks(1, |rt| rank(rt, &[], &measure));
    assert!(failed.unwrap_err().to_string().contains("2 ranks"));
}
