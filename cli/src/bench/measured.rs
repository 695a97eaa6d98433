//! Contenders measured by turns, between two measurements of the cache-line trip.

use super::line::trip_ns;
use super::row::Row;
use super::sample::{Budget, Contender, sample};
use crate::args;
use crate::failure::Failure;
use crate::summary::{self, Summary};
use std::time::Duration;

/// Rows of contenders that were measured by turns.
#[derive(Clone, Debug)]
pub struct Measured {
    pub rows: Vec<Row>,
    /// The time by which the first takes longer than the second.
    pub over: Option<Over>,
}

/// Differences of two batches of the same round: the median, and the 1st and 99th
/// percentiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Over {
    pub p1: f64,
    pub median: f64,
    pub p99: f64,
}

/// The time or number of operations for each row.
pub fn budget(measure: &args::MeasureArgs) -> Budget {
    match (measure.ops, measure.quick) {
        (Some(ops), _) => Budget::Operations(ops),
        (None, false) => Budget::Time(Duration::from_millis(1000)),
        (None, true) => Budget::Time(Duration::from_millis(100)),
    }
}

/// Measures `contenders`, each with batches of `ops` operations, between two
/// measurements of the cache-line trip.
pub fn measure(
    figure: &str,
    params: &str,
    budget: Budget,
    ops: u64,
    contenders: &mut [Contender<'_>],
) -> Result<Measured, Failure> {
    let line_ns_before = trip_ns();
    let mut samples = sample(budget, ops, contenders)?;
    let line_ns_after = trip_ns();
    let over = match &samples[..] {
        [first, second] => Some(over(first, second)),
        _ => None,
    };
    let rows = contenders.iter().zip(&mut samples).map(|(contender, samples)| Row {
        figure: figure.to_owned(),
        system: contender.system.to_owned(),
        name: contender.name.to_owned(),
        params: params.to_owned(),
        unit: "ns".to_owned(),
        summary: Summary::of(samples).expect("at least one batch ran"),
        line_ns_before,
        line_ns_after,
    });
    Ok(Measured { rows: rows.collect(), over })
}

/// The differences between `first` and `second`, round by round.
fn over(first: &[f64], second: &[f64]) -> Over {
    let mut more: Vec<f64> =
        first.iter().zip(second).map(|(first, second)| first - second).collect();
    more.sort_unstable_by(f64::total_cmp);
    let quantile = |percent| summary::quantile(&more, percent);
    Over { p1: quantile(1), median: quantile(50), p99: quantile(99) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overhead_is_the_difference_within_a_round() {
        // A drift of the machine that affects both does not appear.
        let first: Vec<f64> = (0..1000).map(|round| f64::from(round) + 2.5).collect();
        let second: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(over(&first, &second), Over { p1: 2.5, median: 2.5, p99: 2.5 });
    }

    #[test]
    fn contenders_have_a_row_each() {
        let contender = |system, name| Contender { system, name, batch: Box::new(|| Ok(1)) };
        let mut contenders = [contender("tsumugi", "get8"), contender("bare", "bare_get8")];
        let measured = measure("rma", "", Budget::Operations(2), 1, &mut contenders).unwrap();
        let names: Vec<&str> = measured.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!((names, measured.over.is_some()), (vec!["get8", "bare_get8"], true));
        let measured = measure("rma", "", Budget::Operations(2), 1, &mut contenders[..1]).unwrap();
        assert_eq!((measured.rows.len(), measured.over), (1, None));
    }
}
