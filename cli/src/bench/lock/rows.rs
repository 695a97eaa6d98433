//! Rows of this figure.

use crate::bench::row::Row;
use crate::summary::Summary;

/// A row of samples; `None` if there are none.
pub fn made(
    system: &str,
    name: &str,
    params: &str,
    samples: &mut [f64],
    [line_ns_before, line_ns_after]: [Option<f64>; 2],
) -> Option<Row> {
    Some(Row {
        figure: "lock".to_owned(),
        system: system.to_owned(),
        name: name.to_owned(),
        params: params.to_owned(),
        unit: "ns".to_owned(),
        summary: Summary::of(samples)?,
        line_ns_before,
        line_ns_after,
    })
}

/// The parameters of a row.
pub fn params(ranks: u32, algorithm: &str) -> String {
    format!("ranks={ranks} algorithm={algorithm}")
}
