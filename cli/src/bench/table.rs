//! The rows as a table for people.

use super::measured::{Measured, Over};
use super::plot::{Plot, Series};
use super::row::Row;
use crate::text;

/// A line for each row; a row is marked if the distance of the cores changed during
/// it.
pub fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let header = ["what", "of", "by", "n", "min", "median", "p99", "unit", "trip before", "after"];
    let lines = rows.iter().map(|row| {
        let mark = if row.is_steady() { "" } else { " *" };
        vec![
            format!("{}{mark}", row.name),
            peculiarities(row, rows),
            row.system.clone(),
            text::count(row.summary.n),
            number(row.summary.min),
            number(row.summary.median),
            number(row.summary.p99),
            row.unit.clone(),
            trip(row.line_ns_before),
            trip(row.line_ns_after),
        ]
    });
    let mut shown = text::table(&header, lines);
    if rows.iter().any(|row| !row.is_steady()) {
        shown.push_str(
            "  * the distance of the cores changed meanwhile (see the trips): measure again\n",
        );
    }
    shown
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

/// The overhead of each of our rows over its bare loop, round by round.
pub fn overheads(measured: &[Measured]) -> String {
    let line = |measured: &Measured| {
        let ([ours, bare], Some(over)) = (&measured.rows[..], measured.over) else { return None };
        let Over { p1, median, p99 } = over;
        Some(format!(
            "  {} over {}: {median:+.2} {} (p1 {p1:+.2}, p99 {p99:+.2})\n",
            ours.name, bare.name, ours.unit
        ))
    };
    measured.iter().filter_map(line).collect()
}

/// The parameters of a row that other rows of the same name do not share.
fn peculiarities(row: &Row, rows: &[Row]) -> String {
    let has = |other: &Row, word: &str| other.params.split(' ').any(|have| have == word);
    let is_shared =
        |word: &&str| rows.iter().filter(|other| other.name == row.name).all(|r| has(r, word));
    row.params.split(' ').filter(|word| !is_shared(word)).collect::<Vec<_>>().join(" ")
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
    fn a_row_is_a_line_of_the_table() {
        let shown = table(&[row("tsumugi", "get8", 3.25)]);
        let words: Vec<&str> = shown.lines().nth(1).unwrap().split_whitespace().collect();
        let expected = "get8 tsumugi 10 1.62 3.25 6.50 ns 31 ns 33 ns";
        assert_eq!(words.join(" "), expected);
        assert!(!shown.contains('*') && !shown.contains('\u{1b}'));
    }

    #[test]
    fn rows_of_one_name_show_the_parameters_that_differ() {
        let of = |params: &str| Row { params: params.into(), ..row("tsumugi", "rate", 3.0) };
        let shown = table(&[of("threads=1 bytes=8"), of("threads=2 bytes=8")]);
        assert!(shown.contains("threads=2") && !shown.contains("bytes=8"), "{shown}");
    }

    #[test]
    fn a_moved_core_is_marked_and_explained() {
        let moved = Row { line_ns_after: Some(160.0), ..row("bare", "bare_get8", 1.0) };
        let shown = table(&[moved]);
        assert!(shown.contains("bare_get8 *") && shown.contains("measure again"), "{shown}");
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
    fn overheads_are_differences_of_rounds() {
        let rows = vec![row("tsumugi", "get8", 3.25), row("bare", "bare_get8", 0.75)];
        let over = Some(Over { p1: -0.25, median: 2.5, p99: 9.0 });
        let measured = Measured { rows, over };
        assert_eq!(
            overheads(std::slice::from_ref(&measured)),
            "  get8 over bare_get8: +2.50 ns (p1 -0.25, p99 +9.00)\n"
        );
        assert_eq!(overheads(&[Measured { over: None, ..measured }]), "");
    }
}
