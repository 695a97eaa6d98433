//! The rows as lines of a table for people, and figures as tables.

use super::measured::{Measured, Over};
use super::plot::{Plot, Series};
use super::row::Row;
use crate::summary::Summary;
use crate::text;

/// The names of the columns of [`line`].
pub fn header() -> String {
    columns(["what", "by", "n", "min", "median", "p99", "trip before", "after", "unit", "of"])
}

/// A row as a line. The columns have fixed widths, as the rows after it are not known; a
/// longer word moves the rest of its line. Its parameters are those that `before`, the
/// row of the line before, does not have. The row is marked if the distance of the cores
/// changed during it.
pub fn line(row: &Row, before: Option<&Row>) -> String {
    let mark = if row.is_steady() { "" } else { " *" };
    let (name, n) = (format!("{}{mark}", row.name), text::count(row.summary.n));
    let Summary { min, median, p99, .. } = row.summary;
    let [min, median, p99] = [min, median, p99].map(number);
    let trips = [row.line_ns_before, row.line_ns_after].map(trip);
    let [trip_before, trip_after] = &trips;
    let params = new_params(row, before);
    columns([
        &name,
        &row.system,
        &n,
        &min,
        &median,
        &p99,
        trip_before,
        trip_after,
        &row.unit,
        &params,
    ])
}

/// The explanation of the mark.
pub const UNSTEADY: &str =
    "  * the distance of the cores changed meanwhile (see the trips): measure again\n";

fn columns(words: [&str; 10]) -> String {
    let [name, system, n, min, median, p99, before, after, unit, params] = words;
    let line = format!(
        "  {name:<22} {system:<10} {n:>9} {min:>12} {median:>12} {p99:>12} {before:>11} {after:>8}  \
         {unit:<6}  {params}"
    );
    line.trim_end().to_owned() + "\n"
}

/// A line for each place on the x axis, a column for each series: the medians.
pub fn figure(name: &str, plot: &Plot) -> String {
    let mut places: Vec<f64> =
        plot.series.iter().flat_map(|series| series.points.iter().map(|point| point.x)).collect();
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    let names = plot.series.iter().map(|series| series.name.as_str());
    let header: Vec<&str> = std::iter::once(plot.x.name.as_str()).chain(names).collect();
    let lines = places.into_iter().map(|x| {
        let cell = |series: &Series| {
            let point = series.points.iter().find(|point| point.x == x);
            point.map_or_else(String::new, |point| significant(point.y))
        };
        let cells = plot.series.iter().map(cell);
        std::iter::once(text::count(x as u64)).chain(cells).collect()
    });
    let table = text::table(&header, lines);
    format!("\n{name}: {}, {}\n{table}", plot.title, plot.y.name)
}

/// The overhead of our row over its bare loop, round by round; empty if the measurement
/// has no such pair.
pub fn overhead(measured: &Measured) -> String {
    let ([ours, bare], Some(over)) = (&measured.rows[..], measured.over) else {
        return String::new();
    };
    let Over { p1, median, p99 } = over;
    format!(
        "  {} over {}: {median:+.2} {} (p1 {p1:+.2}, p99 {p99:+.2})\n",
        ours.name, bare.name, ours.unit
    )
}

/// The parameters that differ from those of the row before; all of them if that row has
/// others, or none of this name.
fn new_params(row: &Row, before: Option<&Row>) -> String {
    let keys = |row: &Row| -> Vec<String> {
        let key = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
        row.params.split(' ').map(key).collect()
    };
    let before = before.filter(|before| keys(before) == keys(row));
    let is_new = |word: &&str| {
        before.is_none_or(|before| !before.params.split(' ').any(|known| known == *word))
    };
    row.params.split(' ').filter(is_new).collect::<Vec<_>>().join(" ")
}

fn number(value: f64) -> String {
    format!("{value:.2}")
}

/// A number with at least three significant digits.
fn significant(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}

fn trip(ns: Option<f64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0} ns"))
}

#[cfg(test)]
mod tests {
    use super::super::plot::{Axis, Point};
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn a_row_is_a_line_under_the_header() {
        let shown = line(&row("tsumugi", "get8", 3.25), None);
        let words: Vec<&str> = shown.split_whitespace().collect();
        let expected = "get8 tsumugi 10 1.62 3.25 6.50 31 ns 33 ns ns targets=4096";
        assert_eq!(words.join(" "), expected);
        assert!(!shown.contains('*') && !shown.contains('\u{1b}'));
        for (column, value) in [("median", " 3.25"), ("trip before", " 31 ns"), ("p99", " 6.50")] {
            let end = |text: &str, word: &str| text.find(word).unwrap() + word.len();
            assert_eq!(end(&header(), column), end(&shown, value), "{column}");
        }
    }

    #[test]
    fn a_line_shows_the_parameters_that_are_new() {
        let of = |params: &str| Row { params: params.into(), ..row("tsumugi", "rate", 3.0) };
        let first = of("threads=1 bytes=8");
        assert!(line(&first, None).ends_with("  threads=1 bytes=8\n"));
        assert!(line(&of("threads=2 bytes=8"), Some(&first)).ends_with("  threads=2\n"));
        assert!(line(&of("bytes=8"), Some(&first)).ends_with("  bytes=8\n"));
        assert!(line(&first, Some(&first)).ends_with("  ns\n"));
    }

    #[test]
    fn a_moved_core_is_marked() {
        let moved = Row { line_ns_after: Some(160.0), ..row("bare", "bare_get8", 1.0) };
        assert!(line(&moved, None).contains("bare_get8 *"));
    }

    #[test]
    fn a_figure_has_a_line_for_each_place() {
        let series = |name: &str, places: &[f64]| Series {
            name: name.to_owned(),
            points: places
                .iter()
                .map(|x| Point { x: *x, y: x / 4.0, low: 0.0, high: 9.0 })
                .collect(),
        };
        let axis = |name: &str| Axis { name: name.to_owned(), is_log: true };
        let plot = Plot {
            title: "Latency".to_owned(),
            x: axis("bytes"),
            y: axis("microseconds"),
            series: vec![series("1 thread", &[8.0, 1024.0]), series("2 threads", &[1.0, 8.0])],
        };
        let shown = figure("fig5a", &plot);
        let words = |line: usize| {
            let line = shown.lines().nth(line).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(1), "fig5a: Latency, microseconds");
        assert_eq!([words(3), words(4), words(5)], ["1 0.2500", "8 2.00 2.00", "1,024 256"]);
    }

    #[test]
    fn an_overhead_is_a_difference_of_rounds() {
        let rows = vec![row("tsumugi", "get8", 3.25), row("bare", "bare_get8", 0.75)];
        let over = Some(Over { p1: -0.25, median: 2.5, p99: 9.0 });
        let measured = Measured { rows, over };
        assert_eq!(overhead(&measured), "  get8 over bare_get8: +2.50 ns (p1 -0.25, p99 +9.00)\n");
        assert_eq!(overhead(&Measured { over: None, ..measured }), "");
    }
}
