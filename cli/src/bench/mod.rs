//! `tsumugi bench`: numbers, with what is needed to judge them.
//!
//! ```text
//!  line trip ─► batches of one row ─► line trip ─► Row ─► table, JSON
//! ```

mod bare;
mod line;
mod rma;
mod row;
mod sample;
mod table;
mod target;

use self::row::Row;
use self::sample::Budget;
use crate::args::{self, Figure};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::summary::Summary;
use std::time::Duration;

pub use self::line::trip_ns;

/// Measures, and returns the tables.
pub fn bench(bench: &args::Bench) -> Result<String, Failure> {
    let (measure, rows) = match &bench.figure {
        Figure::Rma(measure) => (measure, rma::rows(measure)?),
    };
    if let Some(path) = &measure.json {
        std::fs::write(path, row::json(&rows)).map_err(|error| Failure::write(path, &error))?;
    }
    Ok(table::table(&rows) + &table::overheads(&rows))
}

/// Which rows are wanted, of a catalogue of (group, name).
fn chosen(
    only: Option<&str>,
    catalogue: &[(&'static str, &'static str)],
) -> Result<Vec<&'static str>, Failure> {
    let Some(only) = only else { return Ok(catalogue.iter().map(|(_, name)| *name).collect()) };
    let wanted = catalogue.iter().filter(|(group, name)| only == *group || only == *name);
    let wanted: Vec<&str> = wanted.map(|(_, name)| *name).collect();
    if wanted.is_empty() {
        let mut known: Vec<&str> =
            catalogue.iter().flat_map(|(group, name)| [*group, *name]).collect();
        known.sort_unstable();
        known.dedup();
        let known = known.join(", ");
        return Err(Failure::Usage(format!("--only '{only}': no such row; there are {known}")));
    }
    Ok(wanted)
}

/// How long each row goes on.
fn budget(measure: &args::Measure) -> Budget {
    match (measure.ops, measure.quick) {
        (Some(ops), _) => Budget::Operations(ops),
        (None, false) => Budget::Time(Duration::from_millis(1000)),
        (None, true) => Budget::Time(Duration::from_millis(100)),
    }
}

/// One row: `measure` between two trips of a line.
fn row(
    figure: &str,
    system: &str,
    name: &str,
    params: String,
    measure: impl FnOnce() -> Summary,
) -> Row {
    let line_ns_before = trip_ns();
    let summary = measure();
    Row {
        figure: figure.to_owned(),
        system: system.to_owned(),
        name: name.to_owned(),
        params,
        unit: "ns".to_owned(),
        summary,
        line_ns_before,
        line_ns_after: trip_ns(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOGUE: &[(&str, &str)] = &[("direct", "get8"), ("direct", "put8"), ("ring", "push")];

    #[test]
    fn a_row_or_a_group_may_be_chosen() {
        assert_eq!(chosen(None, CATALOGUE).unwrap(), ["get8", "put8", "push"]);
        assert_eq!(chosen(Some("direct"), CATALOGUE).unwrap(), ["get8", "put8"]);
        assert_eq!(chosen(Some("push"), CATALOGUE).unwrap(), ["push"]);
    }

    #[test]
    fn an_unknown_row_brings_the_known_ones() {
        let failure = chosen(Some("get9"), CATALOGUE).unwrap_err();
        assert_eq!(failure.exit_code(), 2);
        let said = failure.to_string();
        assert!(said.contains("'get9'") && said.contains("direct, get8, push, put8, ring"));
    }
}
