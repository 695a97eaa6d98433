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
    let header = ["bar", "is to be", "median", "min", "trip", "met"];
    let table = text::table(&header, bars.into_iter().map(Bar::line));
    let by_bytes = match by_bytes {
        true => {
            "  bytes: not met, nor can it be: the page's bytes travel once either way, take as much\n\
             \x20 of the time as the line says, and what is asked besides is a trip or two without any\n"
        }
        false => "",
    };
    format!(
        "\n{table}  met: by the median; min: by the quietest batches; moved: the cores did, measure again\n{by_bytes}"
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
