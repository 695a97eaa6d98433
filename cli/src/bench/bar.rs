//! Bars: the targets of measured numbers, and whether they are met.

use crate::text;

/// One bar with its measurement.
#[derive(Clone, Debug)]
pub struct Bar {
    pub what: String,
    pub limit: String,
    pub median: String,
    pub min: String,
    pub trip: Option<f64>,
    pub met: Met,
}

/// Whether a bar is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    Yes,
    /// Only the minima meet it.
    Min,
    No,
    /// Not met, and out of reach because of the time that the bytes take.
    Bytes,
    Moved,
}

impl Met {
    pub fn of(by_median: bool, by_min: bool) -> Self {
        match (by_median, by_min) {
            (true, _) => Self::Yes,
            (false, true) => Self::Min,
            (false, false) => Self::No,
        }
    }
}

/// A table with a line for each bar; empty if there are none.
pub fn table(bars: Vec<Bar>) -> String {
    if bars.is_empty() {
        return String::new();
    }
    let by_bytes = bars.iter().any(|bar| bar.met == Met::Bytes);
    let header = ["target", "limit", "median", "min", "trip", "met"];
    let table = text::table(&header, bars.into_iter().map(Bar::line));
    let by_bytes = match by_bytes {
        true => {
            "  bytes: not met and not reachable: both gets transfer the page's bytes once, which\n\
             \x20 takes the stated part of the time; a miss adds only a trip or two without bytes\n"
        }
        false => "",
    };
    format!(
        "\n{table}  a, of b: a as a multiple of b; met: by the median; min: only by the fastest\n\
         \x20 batches; moved: the distance of the cores changed, measure again\n{by_bytes}"
    )
}

impl Bar {
    fn line(self) -> Vec<String> {
        let trip = self.trip.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0} ns"));
        let met = match self.met {
            Met::Yes => "yes",
            Met::Min => "min",
            Met::No => "no",
            Met::Bytes => "bytes",
            Met::Moved => "moved",
        };
        vec![self.what, self.limit, self.median, self.min, trip, met.to_owned()]
    }
}
