//! One measured number, in the form of the files that other programs read.

use crate::summary::Summary;
use serde::{Deserialize, Serialize};

/// One measured number: operation, system, samples, and the distance of the cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The figure to which the row belongs: `rma`.
    pub figure: String,
    /// The system that did the work: `tsumugi`, or `bare` for a loop without it.
    pub system: String,
    /// The operation: `get8`.
    pub name: String,
    /// The conditions of the measurement.
    pub params: String,
    /// The unit of `min`, `median` and `p99`.
    pub unit: String,
    /// The samples, each the mean of one short batch, summarized.
    #[serde(flatten)]
    pub summary: Summary,
    /// One-way trip of a cache line between two cores just before the measurement,
    /// in ns; `None` on a machine with one core.
    pub line_ns_before: Option<f64>,
    /// The same trip just after the measurement.
    pub line_ns_after: Option<f64>,
}

impl Row {
    /// Whether the distance of the cores stayed the same: if it changed, a number
    /// that crosses cores means nothing.
    pub fn is_steady(&self) -> bool {
        match (self.line_ns_before, self.line_ns_after) {
            (Some(before), Some(after)) => before.max(after) <= before.min(after) * DRIFT_MAX,
            _ => true,
        }
    }

    /// The one-way trip during the measurement; `None` if the distance of the cores
    /// changed.
    pub fn trip_ns(&self) -> Option<f64> {
        match (self.line_ns_before, self.line_ns_after) {
            (Some(before), Some(after)) if self.is_steady() => Some((before + after) / 2.0),
            _ => None,
        }
    }

    /// A number among the parameters: `threads` of `threads=4 bytes=8`.
    pub fn number(&self, parameter: &str) -> Option<u64> {
        self.word(parameter)?.parse().ok()
    }

    /// A word among the parameters: `path` of `threads=4 path=offload`.
    pub fn word(&self, parameter: &str) -> Option<&str> {
        let value = |word: &'_ str| word.split_once('=').is_some_and(|(name, _)| name == parameter);
        self.params.split(' ').find(|word| value(word))?.split_once('=').map(|(_, value)| value)
    }
}

/// The first line of a CSV file.
pub const CSV_HEADER: &str =
    "figure,system,name,params,unit,n,min,median,low,high,p99,line_ns_before,line_ns_after\n";

/// The row as a line of CSV.
pub fn csv(row: &Row) -> String {
    let Summary { n, min, median, low, high, p99 } = row.summary;
    let trip = |ns: Option<f64>| ns.map_or_else(String::new, |ns| ns.to_string());
    let mut text = String::new();
    for word in [&row.figure, &row.system, &row.name, &row.params, &row.unit] {
        text += &field(word);
        text.push(',');
    }
    let (before, after) = (trip(row.line_ns_before), trip(row.line_ns_after));
    text + &format!("{n},{min},{median},{low},{high},{p99},{before},{after}\n")
}

/// A field in the form of RFC 4180.
fn field(word: &str) -> String {
    match word.contains([',', '"', '\n']) {
        true => format!("\"{}\"", word.replace('"', "\"\"")),
        false => word.to_owned(),
    }
}

/// The row as JSON, in one line.
pub fn json(row: &Row) -> String {
    serde_json::to_string(row).expect("a row has string keys")
}

/// The rows of a JSON array.
pub fn of_json(text: &str) -> Result<Vec<Row>, serde_json::Error> {
    serde_json::from_str(text)
}

/// Greater than the drift by a noisy neighbour, less than that by a move of a core.
const DRIFT_MAX: f64 = 1.5;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row named `name` of `system` with the median `median`.
    pub fn row(system: &str, name: &str, median: f64) -> Row {
        Row {
            figure: "rma".into(),
            system: system.into(),
            name: name.into(),
            params: "targets=4096".into(),
            unit: "ns".into(),
            summary: Summary {
                n: 10,
                min: median / 2.0,
                median,
                low: median,
                high: median,
                p99: median * 2.0,
            },
            line_ns_before: Some(31.0),
            line_ns_after: Some(33.0),
        }
    }

    #[test]
    fn an_object_has_these_keys() {
        let row = Row { line_ns_after: None, ..row("tsumugi", "get8", 3.0) };
        let value: serde_json::Value = serde_json::from_str(&json(&row)).unwrap();
        let first = value.as_object().unwrap();
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
            "low",
            "high",
            "p99",
            "line_ns_before",
            "line_ns_after",
        ];
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(first["median"], 3.0);
        assert!(value["line_ns_after"].is_null());
    }

    #[test]
    fn a_line_of_the_csv_is_a_row() {
        let row = Row { params: "threads=4, or \"so\"".into(), ..row("tsumugi", "get8", 3.0) };
        assert_eq!(CSV_HEADER.split(',').count(), 13);
        assert_eq!(
            csv(&row),
            "rma,tsumugi,get8,\"threads=4, or \"\"so\"\"\",ns,10,1.5,3,3,3,6,31,33\n"
        );
    }

    #[test]
    fn parameters_have_names() {
        let row = Row { params: "threads=4 path=offload".into(), ..row("tsumugi", "get8", 3.0) };
        assert_eq!((row.number("threads"), row.word("path")), (Some(4), Some("offload")));
        assert_eq!((row.number("path"), row.word("bytes")), (None, None));
    }

    #[test]
    fn a_row_is_not_steady_if_a_core_has_moved() {
        assert!(row("a", "b", 1.0).is_steady());
        assert!(!Row { line_ns_after: Some(165.0), ..row("a", "b", 1.0) }.is_steady());
        assert!(Row { line_ns_before: None, ..row("a", "b", 1.0) }.is_steady());
    }
}
