//! Plots of rows: which rows are points, of which line, and in which unit.

use crate::bench::plot::{Axis, Plot, Point, Series};
use crate::bench::row::Row;

/// The unit of a vertical axis, of rows in ns.
#[derive(Clone, Copy, Debug)]
pub enum Quantity {
    Microseconds,
    /// Of rows with a parameter of bytes.
    MegabytesPerSecond(&'static str),
    MillionsPerSecond,
}

impl Quantity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Microseconds => "microseconds",
            Self::MegabytesPerSecond(_) => "MB a second",
            Self::MillionsPerSecond => "million a second",
        }
    }

    fn of(self, row: &Row, ns: f64) -> Option<f64> {
        match self {
            Self::Microseconds => Some(ns / 1e3),
            Self::MegabytesPerSecond(bytes) => Some(row.number(bytes)? as f64 / ns * 1e3),
            Self::MillionsPerSecond => Some(1e3 / ns),
        }
    }
}

/// How a plot is made of rows.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    pub title: &'static str,
    /// The parameter along the horizontal axis, and the axis's name.
    pub x: (&'static str, &'static str),
    pub y: Quantity,
    /// The name of the line to which a row belongs.
    pub line: fn(&Row) -> Option<String>,
}

impl Lines {
    /// The plots of these rows: none without rows, and several if there are more lines than a
    /// reader can tell apart.
    pub fn plots(&self, rows: &[Row]) -> Vec<Plot> {
        let mut series: Vec<Series> = Vec::new();
        for row in rows.iter().filter(|row| row.unit == "ns") {
            let (Some(name), Some(point)) = ((self.line)(row), self.point(row)) else { continue };
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                None => series.push(Series { name, points: vec![point] }),
            }
        }
        for series in &mut series {
            series.points.sort_by(|one, other| one.x.total_cmp(&other.x));
        }
        let several = series.len() > SERIES_MAX;
        // A logarithmic axis has no zero.
        let points = series.iter().flat_map(|series| &series.points);
        let (x_is_log, y_is_log) =
            points.fold((true, true), |(x, y), at| (x && at.x > 0.0, y && at.low > 0.0));
        let plot = |(index, series): (usize, &[Series])| Plot {
            title: match several {
                true => format!("{}, part {}", self.title, index + 1),
                false => self.title.to_owned(),
            },
            x: Axis { name: self.x.1.to_owned(), is_log: x_is_log },
            y: Axis { name: self.y.name().to_owned(), is_log: y_is_log },
            series: series.to_vec(),
        };
        series.chunks(SERIES_MAX).enumerate().map(plot).collect()
    }

    fn point(&self, row: &Row) -> Option<Point> {
        let of = |ns| self.y.of(row, ns);
        let (y, ends) = (of(row.summary.median)?, [of(row.summary.low)?, of(row.summary.high)?]);
        let [low, high] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
        Some(Point { x: row.number(self.x.0)? as f64, y, low, high })
    }
}

/// The most lines of a plot.
const SERIES_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::tests::row;

    const BY_BYTES: Lines = Lines {
        title: "Put",
        x: ("bytes", "bytes"),
        y: Quantity::MegabytesPerSecond("bytes"),
        line: |row| (row.name == "put").then(|| row.system.clone()),
    };

    fn of(system: &str, bytes: u64) -> Row {
        Row { params: format!("bytes={bytes}"), ..row(system, "put", 1000.0) }
    }

    #[test]
    fn a_line_has_its_rows_from_left_to_right() {
        let rows = [of("a", 4000), of("b", 8), of("a", 2000), row("a", "get", 3.0)];
        let plots = BY_BYTES.plots(&rows);
        let [plot] = &plots[..] else { panic!("{} plots", plots.len()) };
        let names: Vec<_> = plot.series.iter().map(|series| &*series.name).collect();
        assert_eq!(names, ["a", "b"]);
        let points: Vec<_> = plot.series[0].points.iter().map(|at| (at.x, at.y)).collect();
        assert_eq!(points, [(2000.0, 2000.0), (4000.0, 4000.0)]);
    }

    #[test]
    fn an_axis_with_a_zero_is_linear() {
        let plots = BY_BYTES.plots(&[of("a", 0), of("a", 8)]);
        assert_eq!((plots[0].x.is_log, plots[0].y.is_log), (false, false));
        let plots = BY_BYTES.plots(&[of("a", 8)]);
        assert_eq!((plots[0].x.is_log, plots[0].y.is_log), (true, true));
    }

    #[test]
    fn many_lines_have_several_plots() {
        let rows: Vec<Row> = (0..7).map(|system| of(&format!("s{system}"), 8)).collect();
        let plots = BY_BYTES.plots(&rows);
        let counts: Vec<_> = plots.iter().map(|plot| plot.series.len()).collect();
        assert_eq!((counts, &*plots[1].title), (vec![5, 2], "Put, part 2"));
        assert!(BY_BYTES.plots(&[]).is_empty());
    }
}
