//! Every group must measure the rows of its catalogue.

use super::*;

fn measured(names: &'static [&'static str]) -> Vec<Row> {
    let measure = MeasureArgs { ops: Some(1), quick: true, ..MeasureArgs::default() };
    let mut ranks = tsumugi::run_ranks(2, |rt| rank(rt, names, &measure)).unwrap();
    assert!(ranks[1].is_empty());
    ranks.swap_remove(0)
}

fn names(measured: &[Row]) -> Vec<&str> {
    measured.iter().map(|row| row.name.as_str()).collect()
}

#[test]
fn each_row_is_measured_once_beside_its_bare_loop() {
    let rows = measured(direct::GROUP.rows);
    assert_eq!(names(&rows), ["get8", "bare_get8", "put8", "bare_put8", "fadd8", "bare_fadd8"]);
    assert!(rows.iter().all(|row| row.summary.min > 0.0));
    assert_eq!(names(&measured(&["bare_put8"])), ["bare_put8"]);
}

#[test]
fn the_delegate_is_measured_beside_the_memory() {
    let rows = measured(delegate::GROUP.rows);
    let expected = ["delegate_get8", "direct_get8", "delegate_alone", "delegate_contended"];
    assert_eq!(names(&rows), expected);
}

#[test]
fn the_offload_group_has_its_four_rows() {
    let rows = measured(offload::GROUP.rows);
    assert_eq!(names(&rows), offload::GROUP.rows);
}

#[test]
fn both_kinds_of_requesters_have_a_rate() {
    let rows = measured(requesters::GROUP.rows);
    let of = |kind| rows.iter().filter(|row| row.word("kind") == Some(kind)).count();
    assert_eq!((of("thread"), of("ult")), (4, 4));
}

#[test]
fn every_variant_is_measured_in_three_ways() {
    let rows = measured(variants::GROUP.rows);
    for kind in ["latency", "overhead", "rate"] {
        let count = rows.iter().filter(|row| row.word("of") == Some(kind)).count();
        assert_eq!(count, 2 * variants::GROUP.rows.len(), "{kind}: {rows:?}");
    }
}

#[test]
fn one_rank_alone_cannot_measure() {
    let measure = MeasureArgs { ops: Some(1), quick: true, ..MeasureArgs::default() };
    let failed = tsumugi::run_ranks(1, |rt| rank(rt, &[], &measure));
    assert!(failed.unwrap_err().to_string().contains("2 ranks"));
}
