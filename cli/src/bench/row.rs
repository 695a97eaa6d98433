//! One measured number, as it is written to files that other programs read.

use crate::summary::Summary;
use serde::Serialize;

/// One measured number: what, on what, how often, and how near the cores were.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which figure it belongs to: `rma`.
    pub figure: String,
    /// Who did the work: `tsumugi`, or `bare` for a loop without it.
    pub system: String,
    /// What was done: `get8`.
    pub name: String,
    /// Under which conditions.
    pub params: String,
    /// Of `min`, `median` and `p99`.
    pub unit: String,
    /// Samples, each the mean of one short batch, and their spread.
    #[serde(flatten)]
    pub summary: Summary,
    /// One-way cache-line trip between two cores just before, in ns; none on
    /// a machine with one core.
    pub line_ns_before: Option<f64>,
    /// The same, just after.
    pub line_ns_after: Option<f64>,
}

impl Row {
    /// Whether the cores stayed as near to each other as they were: where
    /// they did not, a number that crosses cores means nothing.
    pub fn is_steady(&self) -> bool {
        match (self.line_ns_before, self.line_ns_after) {
            (Some(before), Some(after)) => before.max(after) <= before.min(after) * DRIFT_MAX,
            _ => true,
        }
    }
}

/// The rows as a JSON array.
pub fn json(rows: &[Row]) -> String {
    serde_json::to_string_pretty(rows).expect("a row has string keys") + "\n"
}

/// More than a noisy neighbour does, less than a move of a core.
const DRIFT_MAX: f64 = 1.5;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row named `name` of `system` with that median.
    pub fn row(system: &str, name: &str, median: f64) -> Row {
        Row {
            figure: "rma".into(),
            system: system.into(),
            name: name.into(),
            params: "targets=4096".into(),
            unit: "ns".into(),
            summary: Summary { n: 10, min: median / 2.0, median, p99: median * 2.0 },
            line_ns_before: Some(31.0),
            line_ns_after: Some(33.0),
        }
    }

    #[test]
    fn the_file_is_an_array_with_these_keys() {
        let rows = [row("tsumugi", "get8", 3.0), Row { line_ns_after: None, ..row("b", "c", 1.0) }];
        let value: serde_json::Value = serde_json::from_str(&json(&rows)).unwrap();
        let first = value[0].as_object().unwrap();
        let mut keys: Vec<&str> = first.keys().map(String::as_str).collect();
        keys.sort_unstable();
        let mut expected = [
            "figure",
            "system",
            "name",
            "params",
            "unit",
            "n",
            "min",
            "median",
            "p99",
            "line_ns_before",
            "line_ns_after",
        ];
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(first["median"], 3.0);
        assert!(value[1]["line_ns_after"].is_null());
    }

    #[test]
    fn a_row_across_a_move_of_a_core_is_not_steady() {
        assert!(row("a", "b", 1.0).is_steady());
        assert!(!Row { line_ns_after: Some(165.0), ..row("a", "b", 1.0) }.is_steady());
        assert!(Row { line_ns_before: None, ..row("a", "b", 1.0) }.is_steady());
    }
}
